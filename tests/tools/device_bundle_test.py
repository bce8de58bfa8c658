"""tools/device-bundle with the programs of this build: an archive that is small enough, and whose
programs run from wherever it is unpacked.
"""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

TOOL = "tools/device-bundle"
BUILD = sys.argv.pop(1)


class DeviceBundle(unittest.TestCase):
    def test_its_programs_run_where_it_is_unpacked(self):
        with tempfile.TemporaryDirectory() as folder:
            archive = Path(folder) / "bundle.tar.xz"
            made = subprocess.run([TOOL, BUILD, archive, "halfwatt", "test_cuda_backend"],
                                  capture_output=True, text=True, check=False)
            self.assertEqual(made.returncode, 0, made.stderr)
            self.assertIn("MiB", made.stdout)
            subprocess.run(["tar", "-C", folder, "-xJf", archive], check=True)
            run = Path(folder) / "halfwatt-bundle/run"
            version = subprocess.run([run, "halfwatt", "--version"], capture_output=True,
                                     text=True, check=False)
            self.assertEqual(version.returncode, 0, version.stderr)
            self.assertIn("halfwatt", version.stdout)

    def test_a_program_that_is_not_built_is_named(self):
        made = subprocess.run([TOOL, BUILD, "/tmp/never.tar.xz", "no_such_program"],
                              capture_output=True, text=True, check=False)
        self.assertEqual(made.returncode, 1)
        self.assertIn("no_such_program is not built", made.stderr)


if __name__ == "__main__":
    unittest.main()
