"""A small tree of files in a temporary folder, for tests of the tools that read the repository."""

import subprocess
import tempfile
import unittest
from pathlib import Path

TOOLS = Path(__file__).resolve().parent.parent.parent / "tools"


class TreeTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)

    def write(self, name, text, mode=0o644):
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        path.chmod(mode)

    def run_tool(self, tool, *arguments, **options):
        return subprocess.run([TOOLS / tool, *arguments], capture_output=True, text=True,
                              check=False, stdin=subprocess.DEVNULL, **options)

    def problems(self, tool):
        """What `tool` finds in the tree, line by line; [] when it is content."""
        ran = self.run_tool(tool, str(self.root))
        self.assertEqual(ran.stderr, "")
        return ran.stdout.splitlines() if ran.returncode else []
