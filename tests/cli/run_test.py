#!/usr/bin/env python3
"""run_test.py HALFWATT ODD_JOB: `halfwatt run` is transparent, on a terminal and without one."""

import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from shell import PATIENCE, Shell, state_of, wait_for

HALFWATT, ODD_JOB = sys.argv[1], sys.argv[2]


def run(*words, **more):
    return subprocess.run([HALFWATT, *words], capture_output=True, timeout=60, **more)


def guardian_of(pid):
    """The guardian that the halfwatt `pid` started."""
    for entry in os.listdir("/proc"):
        try:
            with open(f"/proc/{entry}/stat") as file:
                parent = int(file.read().rsplit(")", 1)[1].split()[1])
            with open(f"/proc/{entry}/cmdline") as file:
                words = file.read()
        except (OSError, ValueError):
            continue
        if parent == pid and "guardian" in words:
            return int(entry)
    raise AssertionError(f"{pid} has no guardian")


class OnTerminal(unittest.TestCase):
    def setUp(self):
        if shutil.which("bash") is None:
            self.skipTest("bash is not installed")
        try:
            for file in pty.openpty():
                os.close(file)
        except OSError as none:
            self.skipTest(f"no pseudo terminals here: {none}")
        self.shell = Shell()
        self.addCleanup(self.shell.close)

    def test_the_job_reads_from_the_terminal(self):
        self.shell.type(f"{HALFWATT} run -- head -n1; echo status $?\r", "head")
        self.shell.type("some words\r", "status 0")
        self.assertEqual(self.shell.seen.count(b"some words"), 2)  # typed, and printed

    def test_ctrl_c_ends_the_job_and_the_shell_goes_on(self):
        self.shell.type(f"{HALFWATT} run -- sh -c 'echo on''set; exec sleep 1000'; echo st $?\r",
                        "onset")
        self.shell.type("\x03", "st 130")

    def test_a_second_ctrl_c_kills_a_job_that_ignores_the_first(self):
        command = 'trap "" INT TERM; echo on""set; while :; do sleep 1; done'
        self.shell.type(f"{HALFWATT} run -- bash -c '{command}'; echo st $?\r", "onset")
        os.write(self.shell.file, b"\x03")
        time.sleep(0.3)  # two signals at once would be one
        self.shell.type("\x03", "st 137")

    def test_ctrl_z_stops_the_job_and_fg_continues_it(self):
        self.shell.type(f"{HALFWATT} run -- sh -c 'echo on''set; read x; echo got $x'\r",
                        "onset")
        self.shell.type("\x1a", "Stopped")
        self.shell.type("echo bet''ween\r", "between")
        self.shell.type("fg\r", "run --")
        self.shell.type("hello\r", "got hello")
        self.shell.type("echo st $?\r", "st 0")

    def test_one_interrupt_by_kill_is_one_and_the_job_may_handle_it(self):
        command = 'trap "echo he""ard; exit 9" INT; echo $PPID on""set; while :; do sleep .1; done'
        self.shell.type(f"{HALFWATT} run -- bash -c '{command}'; echo s''t $?\r", " onset")
        halfwatt = int(self.shell.seen.split(b" onset")[-2].split()[-1])
        os.kill(halfwatt, signal.SIGINT)
        self.shell.wait("st 9")
        self.assertIn(b"heard", self.shell.seen)

    def test_a_job_that_is_slowed_in_turns_stays_stopped_after_ctrl_z(self):
        folder = tempfile.mkdtemp(prefix="halfwatt-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        self.shell.type(f"{HALFWATT} run --limit 250 --device sim:duty --state-dir {folder} -- "
                        "sh -c 'echo $$ on''set; while :; do :; done'\r", " onset")
        job = int(self.shell.seen.split(b" onset")[-2].split()[-1])
        for _ in range(PATIENCE):  # one that comes where the job is just off is lost
            os.write(self.shell.file, b"\x1a")
            try:
                self.shell.wait("Stopped", patience=1)
                break
            except AssertionError:
                pass
        states = {state_of(job) for _ in range(100) if time.sleep(0.002) is None}
        self.assertEqual(states, {"T"})
        self.shell.type("fg\r", "run --")
        wait_for("the job to go on", lambda: state_of(job) in "RS")
        self.shell.type("\x03", "ready> ")

    def test_a_job_in_the_background_does_not_take_the_terminal(self):
        self.shell.type(f"{HALFWATT} run -- sleep 1000 & echo st''art\r", "start")
        self.shell.type("echo still ''here\r", "still here")
        self.shell.type("kill %1; wait %1; echo st $?\r", "st 143")

    def test_the_modes_of_the_terminal_come_back_when_the_job_is_killed(self):
        before = self.shell.modes()
        self.shell.type(
            f"{HALFWATT} run -- sh -c 'stty raw -echo; kill -9 $$'; echo s''t $?\r", "st 137")
        wait_for("the modes that were found", lambda: self.shell.modes()[3] == before[3])

    def test_a_pipeline_works(self):
        self.shell.type(f"{HALFWATT} run -- echo some thing | tr a-z A-Z\r", "SOME THING")


class WithoutTerminal(unittest.TestCase):
    def test_input_and_output_pass_through_to_the_byte(self):
        data = bytes(range(256)) * 1000
        done = run("run", "--", ODD_JOB, "copy", input=data)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, data, b""))

    def test_the_status_is_the_commands_own(self):
        for status in (0, 1, 2, 77, 255):
            self.assertEqual(run("run", "--", ODD_JOB, "exit", str(status)).returncode, status)
        self.assertEqual(run("run", "--", ODD_JOB, "kill", "11").returncode, 139)

    def test_a_command_that_is_not_started_is_told_in_one_line(self):
        for words, status in ((["--", "no-such-command"], 127), (["--", "/"], 126), ([], 125),
                              (["--limit", "x", "--", "true"], 125),
                              (["--bad", "--", "true"], 125), (["true"], 125),
                              (["--keep", "95", "--", "true"], 125)):
            done = run("run", *words)
            self.assertEqual(done.returncode, status, words)
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)

    def test_signals_go_to_the_job(self):
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130),
                               (signal.SIGHUP, 129), (signal.SIGUSR1, 138)):
            child = subprocess.Popen([HALFWATT, "run", "--", "sh", "-c", "echo on; exec sleep 99"],
                                     stdout=subprocess.PIPE, start_new_session=True)
            child.stdout.readline()
            child.send_signal(number)
            self.assertEqual(child.wait(PATIENCE), status)
            child.stdout.close()

    def test_the_job_does_not_suffer_from_a_standard_error_that_is_closed_or_full(self):
        folder = tempfile.mkdtemp(prefix="halfwatt-test-")
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        for elsewhere in ("2>&-", "<&- >&- 2>&-", "2>/dev/full"):
            done = subprocess.run(
                ["sh", "-c", f'exec "$@" {elsewhere}', "sh", HALFWATT, "run", "--limit", "200",
                 "--device", "sim:duty", "--state-dir", folder, "--", "sh", "-c", "exit 7"],
                timeout=60)
            self.assertEqual(done.returncode, 7, elsewhere)

    def test_orphans_of_the_job_leave_no_zombies(self):
        child = subprocess.Popen([HALFWATT, "run", "--", "sh", "-c",
                                  "for i in 1 2 3; do (sleep 0.1 &); done; exec sleep 99"])
        def left():
            children = f"/proc/{child.pid}/task/{child.pid}/children"
            with open(children) as file:
                return len(file.read().split())
        wait_for("the orphans", lambda: left() > 1)
        wait_for("their end", lambda: left() == 1)
        child.terminate()
        self.assertEqual(child.wait(PATIENCE), 143)

    def test_nohup_reaches_the_job(self):
        done = run("run", "--", ODD_JOB, "surroundings",
                   preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        self.assertIn(b"ignored 1\n", done.stdout)
        self.assertIn(b"files 0\n", done.stdout)


class UnderLimit(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="halfwatt-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.flags = ["--device", "sim:duty", "--state-dir", self.folder]

    def test_the_status_is_the_commands_own(self):
        done = run("run", "--limit", "50%", *self.flags, "--", ODD_JOB, "exit", "7")
        self.assertEqual(done.returncode, 7, done.stderr)
        self.assertIn(b"175 W while the command runs, then 350 W again", done.stderr)

    def test_a_lower_limit_slows_an_unmodified_command(self):
        def seconds(limit):
            begin = time.monotonic()
            done = run("run", "--limit", limit, *self.flags, "--", ODD_JOB, "steps", "25", "10")
            self.assertEqual(done.returncode, 0, done.stderr)
            return time.monotonic() - begin
        self.assertGreater(seconds("100") / seconds("350"), 1.2)

    def test_a_limit_outside_the_range_is_refused_before_the_command_starts(self):
        for limit in ("99", "351"):
            done = run("run", "--limit", limit, *self.flags, "--", "echo", "started")
            self.assertEqual((done.returncode, done.stdout), (125, b""))
            self.assertEqual(done.stderr.count(b"\n"), 1, done.stderr)

    def test_the_job_keeps_its_limit_when_the_guardian_is_killed(self):
        child = subprocess.Popen(
            [HALFWATT, "run", "--limit", "100", *self.flags, "--", "sh", "-c",
             "echo on; exec sleep 1000"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        child.stdout.readline()
        os.kill(guardian_of(child.pid), signal.SIGKILL)
        seen = b""
        while seen.count(b"100 W while the command runs") < 2:
            line = child.stderr.readline()
            self.assertTrue(line, seen)
            seen += line
        self.assertIn(b"the guardian died, and another one was started", seen)
        child.terminate()
        child.wait()
        child.stdout.close()
        child.stderr.close()

    def test_a_job_goes_on_when_halfwatt_is_killed(self):
        child = subprocess.Popen(
            [HALFWATT, "run", "--limit", "100", *self.flags, "--", "sh", "-c",
             "echo $$; exec sleep 1000"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
        job = int(child.stdout.readline())
        child.kill()
        child.wait()
        child.stdout.close()

        def state():
            with open(f"/proc/{job}/stat") as file:
                return file.read().rsplit(")", 1)[1].split()[0]
        wait_for("the guardian's SIGCONT", lambda: state() == "S")
        time.sleep(0.1)
        self.assertEqual(state(), "S")
        os.kill(job, signal.SIGKILL)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
