#!/usr/bin/env python3
"""sudo_test.py HALFWATT FAKE-NVML: the real sudo, which asks a user for a password. User, rules
and driver are of this test's own mount namespace; the machine sees none of them."""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

from shell import Shell, wait_for

USER, NUMBER, PASSWORD = "halfwatt-tester", 64242, "pass-word-1"
SKIPPED = 77
LIBRARIES = "/usr/lib/x86_64-linux-gnu"


def skip(why):
    print(f"skipped: {why}")
    sys.exit(SKIPPED)


def enter_room(folder):
    """Remounts, for this process and those it starts, what a user and a driver consist of."""
    def mount(*words):
        subprocess.run(["mount", *words], check=True, capture_output=True)

    mount("--make-rprivate", "/")
    mount("-t", "tmpfs", "none", folder)
    os.chmod(folder, 0o755)
    for number, place in enumerate((LIBRARIES, "/etc")):
        upper, work = (os.path.join(folder, f"{kind}{number}") for kind in ("upper", "work"))
        os.mkdir(upper)
        os.mkdir(work)
        mount("-t", "overlay", "overlay",
              "-o", f"lowerdir={place},upperdir={upper},workdir={work}", place)
    for place in ("/run", "/var/lib"):
        mount("-t", "tmpfs", "none", place)


def furnish(folder, nvml):
    """The user, what sudo lets him do, and a card that only root may set."""
    home = os.path.join(folder, "home")
    os.mkdir(home)
    os.chown(home, NUMBER, NUMBER)
    for file, line in (("passwd", f"{USER}:x:{NUMBER}:{NUMBER}::{home}:/bin/bash"),
                       ("group", f"{USER}:x:{NUMBER}:"), ("shadow", f"{USER}:!:1:0:99999:7:::")):
        with open(f"/etc/{file}", "a") as out:
            out.write(line + "\n")
    subprocess.run(["chpasswd"], input=f"{USER}:{PASSWORD}", text=True, check=True)
    with open(f"/etc/sudoers.d/{USER}", "w") as out:
        out.write(f'{USER} ALL=(ALL:ALL) ALL\nDefaults:{USER} env_keep += "HALFWATT_FAKE_NVML"\n')
    os.chmod(f"/etc/sudoers.d/{USER}", 0o440)
    shutil.copy(nvml, f"{LIBRARIES}/libnvidia-ml.so.1")
    script = os.path.join(folder, "script.json")
    with open(script, "w") as out:
        out.write('{"cards": [{"found_mw": 350000}], "anyone_may_set": false}')
    os.environ["HALFWATT_FAKE_NVML"] = script
    limit()  # makes the file of the card's state
    os.chmod(script + ".state", 0o666)


def limit():
    done = subprocess.run([HALFWATT, "limit"], capture_output=True, text=True, check=True)
    return done.stdout.split(": ")[1].split(" W")[0]


def uid_of(pid):
    with open(f"/proc/{pid}/status") as file:
        return [line.split()[1] for line in file if line.startswith("Uid:")][0]


def processes(pattern):
    done = subprocess.run(["pgrep", "-f", pattern], capture_output=True, text=True)
    return [int(word) for word in done.stdout.split()]


def become_user():
    os.initgroups(USER, NUMBER)
    os.setgid(NUMBER)
    os.setuid(NUMBER)
    os.chdir(HOME)
    os.environ.update(HOME=HOME, USER=USER, LOGNAME=USER)


class ByPassword(unittest.TestCase):
    def setUp(self):
        self.shell = Shell(become_user)
        self.addCleanup(self.shell.close)
        self.shell.type("sudo -K\r", "ready> ")

    def start(self, then, before=""):
        return self.shell.type(f"{before}{HALFWATT} run --limit 200 -- sh -c 'id -u; echo on''set; "
                               "exec sleep 600'; echo s''t $?\r", then)

    def give_password(self):
        return self.shell.type(PASSWORD + "\r", "onset")

    def test_it_is_asked_for_once_and_only_the_guardian_is_root(self):
        asked = self.start("password for")
        self.assertNotIn("a password is required", asked)
        self.assertIn(str(NUMBER), self.give_password())
        self.assertEqual(limit(), "200")
        self.assertEqual({uid_of(pid) for pid in processes(f"^{HALFWATT} run")}, {str(NUMBER)})
        self.assertEqual({uid_of(pid) for pid in processes(f"^{HALFWATT} __guardian")}, {"0"})
        self.shell.type("\x03", "st 130")
        self.assertEqual(limit(), "350")
        self.assertNotIn("password for", self.start("onset"))
        self.shell.type("\x03", "st 130")

    def test_the_job_can_be_stopped_and_continued(self):
        self.start("password for")
        self.give_password()
        self.shell.type("\x1a", "Stopped")
        self.shell.type("fg\r", "run --")
        self.shell.type("\x03", "ready> ")
        self.assertEqual(limit(), "350")

    def test_kill_9_of_halfwatt_puts_the_limit_back(self):
        self.start("password for")
        self.give_password()
        os.kill(min(processes(f"^{HALFWATT} run")), 9)
        self.shell.wait("st 137")
        wait_for("the limit", lambda: limit() == "350")
        for pid in processes("^sleep 600$"):  # the job goes on, as it shall
            if uid_of(pid) == str(NUMBER):
                os.kill(pid, 9)

    def test_wrong_passwords_start_no_job(self):
        self.start("password for")
        for _ in range(2):
            self.shell.type("wrong\r", "try again")
        said = self.shell.type("wrong\r", "st 125")
        self.assertEqual(said.count("halfwatt: "), 1, said)
        self.assertIn("no permission", said)
        self.assertNotIn("onset", said)
        self.assertEqual(limit(), "350")

    def test_the_state_folder_of_the_environment_reaches_the_guardian(self):
        self.start("password for", f"HALFWATT_STATE_DIR={HOME}/state ")
        self.give_password()
        self.assertTrue([name for name in os.listdir(f"{HOME}/state") if name.endswith("json")])
        self.shell.type("\x03", "st 130")


class StartedBySudo(unittest.TestCase):
    def setUp(self):
        self.shell = Shell(become_user)
        self.addCleanup(self.shell.close)
        self.shell.type("sudo -v\r", "password for")
        self.shell.type(PASSWORD + "\r", "ready> ")

    def test_the_command_of_run_is_the_users(self):
        said = self.shell.type(f"sudo {HALFWATT} run --limit 200 -- sh -c "
                               "'id -u; id -G; echo $HOME; touch made'; echo s''t $?\r", "st 0")
        self.assertIn(f"\n{NUMBER}\r\n{NUMBER}\r\n{HOME}\r", said)
        self.assertEqual(os.stat(f"{HOME}/made").st_uid, NUMBER)
        self.assertEqual(limit(), "350")

    def test_the_command_of_sweep_is_the_users_and_can_tell_its_steps(self):
        job = ("touch copied; test -w $HALFWATT_PROGRESS && test -w $HALFWATT_SOCKET && "
               "touch told; exec sleep 600")
        self.shell.type(f"sudo {HALFWATT} sweep --limits 200,300 --record run.jsonl -- "
                        f"sh -c '{job}'; echo s''t $?\r", "Ctrl-C is safe")
        wait_for("what takes its steps", lambda: os.path.exists(f"{HOME}/told"))
        self.shell.type("\x03", "st 5")
        for name in ("copied", "run.jsonl"):
            self.assertEqual(os.stat(f"{HOME}/{name}").st_uid, NUMBER)
        self.assertEqual(limit(), "350")


def main():
    global HALFWATT, HOME
    if os.geteuid() != 0:
        skip("not root, who alone may make a user and mount")
    for program in ("sudo", "unshare", "mount", "chpasswd", "bash", "pgrep"):
        if shutil.which(program) is None:
            skip(f"{program} is not installed")
    if not os.path.isdir(LIBRARIES):
        skip(f"{LIBRARIES} is not where this machine has its libraries")
    if os.environ.get("HALFWATT_TEST_ROOM") is None:
        if subprocess.run(["unshare", "-m", "true"], capture_output=True).returncode != 0:
            skip("no mount namespaces here")
        os.environ["HALFWATT_TEST_ROOM"] = "1"
        os.execvp("unshare", ["unshare", "-m", sys.executable, *sys.argv])
    folder = tempfile.mkdtemp(prefix="halfwatt-test-")
    try:
        try:
            enter_room(folder)
        except subprocess.CalledProcessError as failed:
            skip(f"{' '.join(failed.cmd)}: {failed.stderr.decode().strip()}")
        # Where the user can get at it, whatever the folders above the build allow.
        HALFWATT = shutil.copy(sys.argv[1], os.path.join(folder, "halfwatt"))
        HOME = os.path.join(folder, "home")
        furnish(folder, sys.argv[2])
        outcome = unittest.main(argv=sys.argv[:1], exit=False).result
        return 0 if outcome.wasSuccessful() else 1
    finally:
        subprocess.run(["umount", "-l", folder], capture_output=True)
        os.rmdir(folder)


if __name__ == "__main__":
    sys.exit(main())
