"""tools/install-packages on made-up machines: a PATH of stand-ins that write down their call."""

import os
import shutil
import unittest

from tree import TOOLS, TreeTest

LIST = """# all
[build]  # this
cmake
g++      # that
[test]
chromium
"""


class InstallPackages(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("tools/packages.txt", LIST)
        shutil.copy(TOOLS / "install-packages", self.root / "tools")
        for tool in ("sh", "awk", "grep", "env", "dirname"):
            (self.root / "bin").mkdir(exist_ok=True)
            (self.root / "bin" / tool).symlink_to(shutil.which(tool))
        self.stand_in("dpkg-query", '[ "$4" = cmake ] && printf installed')
        self.stand_in("apt-get", f'echo "$@" >>{self.root}/apt-get.log')
        self.stand_in("apt-cache", '[ "$2" = chromium ] || echo "Package: $2"')

    def stand_in(self, name, script):
        self.write(f"bin/{name}", f"#!/bin/sh\n{script}\n", 0o755)

    def install(self, *sections, user=0):
        self.stand_in("id", f"echo {user}")
        # Only the stand-ins: the tool's own additions to PATH hold no apt-get and no sudo.
        ran = self.run_tool(self.root / "tools/install-packages", *sections,
                            env={"PATH": str(self.root / "bin")}, cwd=self.root)
        log = self.root / "apt-get.log"
        calls = log.read_text().splitlines() if log.exists() else []
        return ran, calls

    def test_as_root_installs_what_is_missing_and_no_more(self):
        ran, calls = self.install("build")
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertEqual(calls, [
            "-q update",
            "-q -o DPkg::Lock::Timeout=300 install -y --no-install-recommends g++"])

    def test_is_silent_when_nothing_is_missing(self):
        self.stand_in("dpkg-query", "printf installed")
        ran, calls = self.install("build", "test")
        self.assertEqual((ran.returncode, ran.stdout, ran.stderr, calls), (0, "", "", []))

    def test_leaves_out_what_the_archive_does_not_have(self):
        ran, calls = self.install("build", "test")
        self.assertIn("not in this machine's archive: chromium", ran.stderr)
        self.assertTrue(calls[-1].endswith("--no-install-recommends g++"))

    def test_without_root_or_sudo_prints_the_one_line_and_goes_on(self):
        ran, calls = self.install("build", "test", user=1000)
        self.assertEqual(ran.returncode, 0)
        self.assertEqual(calls, [])
        self.assertEqual(ran.stdout, "apt-get update && "
                         "apt-get install -y --no-install-recommends g++ chromium\n")

    def test_uses_sudo_that_asks_for_no_password(self):
        self.stand_in("sudo", '[ "$1" = -n ] && shift; exec "$@"')
        self.write("bin/true", "#!/bin/sh\n", 0o755)
        _, calls = self.install("build", user=1000)
        self.assertEqual(len(calls), 2)

    def test_does_not_hang_on_a_sudo_that_would_ask(self):
        self.stand_in("sudo", "exit 1")
        ran, calls = self.install("build", user=1000)
        self.assertEqual((ran.returncode, calls), (0, []))
        self.assertIn("apt-get install", ran.stdout)

    def test_goes_on_when_apt_get_fails(self):
        self.stand_in("apt-get", "exit 100")
        ran, _ = self.install("build")
        self.assertEqual(ran.returncode, 0)
        self.assertIn("apt-get install", ran.stdout)

    def test_refuses_a_section_that_is_not_there(self):
        ran, _ = self.install("biuld")
        self.assertEqual(ran.returncode, 2)
        self.assertIn("no section [biuld]", ran.stderr)


if __name__ == "__main__":
    unittest.main()
