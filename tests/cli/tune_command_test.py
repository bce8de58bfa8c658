#!/usr/bin/env python3
"""tune_command_test.py HALFWATT ODD_JOB [--slow]: tune and sweep with commands of all sorts on
sim:duty. Whatever the command does: one clear line, its limit back, nothing left running."""

import concurrent.futures
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HALFWATT, ODD_JOB = sys.argv[1], sys.argv[2]
SLOW = "--slow" in sys.argv
PRESET = 350  # W, of sim:duty


def processes(marker):
    """Those with `marker` in their environment: everything that a test started."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/environ", "rb") as file:
                if marker.encode() in file.read():
                    found.append(int(pid))
        except OSError:
            pass
    return found


def running(words):
    """Those that were started as `words`."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                if file.read() == "".join(word + "\0" for word in words).encode():
                    found.append(int(pid))
        except OSError:
            pass
    return found


class SideBySide(unittest.TestSuite):
    """Several at once: each of these tests waits for most of its time, in a folder of its own."""

    def run(self, result, debug=False):
        def alone(test):
            own = unittest.TestResult()
            test.run(own)
            return own

        with concurrent.futures.ThreadPoolExecutor(6) as pool:
            for own in pool.map(alone, list(self)):
                result.testsRun += own.testsRun
                for kind in ("errors", "failures", "skipped", "unexpectedSuccesses"):
                    getattr(result, kind).extend(getattr(own, kind))
        return result


def load_tests(loader, suites, _):
    return SideBySide(test for suite in suites for test in suite)


class CommandTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="halfwatt-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.record = os.path.join(self.folder, "run.jsonl")
        self.marker = f"HALFWATT_TEST_MARKER={self.folder}"
        self.environment = dict(os.environ, HALFWATT_TEST_MARKER=self.folder)

    def words(self, verb, command, *more):
        return [HALFWATT, verb, "--device", "sim:duty", "--state-dir", self.folder,
                "--progress", "tqdm", "--record", self.record, *more, "--", *command]

    def run_command(self, verb, command, *more):
        done = subprocess.run(self.words(verb, command, *more), capture_output=True, text=True,
                              errors="replace", timeout=150, env=self.environment)
        self.check_clean()
        return done

    def check_clean(self):
        until = time.monotonic() + 10
        while processes(self.marker) and time.monotonic() < until:
            time.sleep(0.02)
        self.assertEqual(processes(self.marker), [])
        found = subprocess.run([HALFWATT, "run", "--device", "sim:duty", "--state-dir",
                                self.folder, "--limit", "100%", "--", "true"],
                               capture_output=True, text=True)
        self.assertIn(f"then {PRESET} W again", found.stderr)

    def windows(self):
        with open(self.record) as file:
            return [json.loads(line) for line in file][1:]


@unittest.skipIf(SLOW, "the slow ones are asked for")
class BadCommands(CommandTest):
    def check_failure(self, command, words, *more):
        done = self.run_command("tune", command, *more)
        self.assertEqual(done.returncode, 4, done.stderr)
        last = done.stderr.strip().split("\n")[-1]
        self.assertIn(words, last)
        self.assertEqual(done.stdout, "")

    def test_one_that_does_not_exist(self):
        self.check_failure(["no-such-command"], "command not found")

    def test_one_that_exits_at_once(self):
        self.check_failure([ODD_JOB, "exit", "3"], "failed")

    def check_no_step(self, *command):
        self.check_failure(command, "no progress seen", "--patience", "0.3")

    def test_one_that_sleeps(self):
        self.check_no_step("sleep", "1000")

    def test_one_that_closes_its_output(self):
        self.check_no_step(ODD_JOB, "close")

    def test_one_that_says_the_same_for_ever(self):
        self.check_no_step("yes")

    def test_one_that_says_what_is_no_text(self):
        self.check_no_step("cat", "/dev/urandom")

    def test_one_that_shows_no_step_and_ignores_sigterm(self):
        self.check_no_step(ODD_JOB, "ignore-term", os.path.join(self.folder, "pid"))

    def test_one_that_shows_no_step_and_leaves_its_session(self):
        self.check_no_step(ODD_JOB, "fork-away", os.path.join(self.folder, "pid"))

    def test_one_that_hangs_after_some_steps(self):
        self.check_failure([ODD_JOB, "hang"], "did no step", "--patience", "1")

    def test_one_whose_step_numbers_go_back(self):
        done = self.run_command("sweep", [ODD_JOB, "count-back"], "--limits", "300",
                                "--patience", "1")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertRegex(done.stderr, r"no step in 1 s: its step numbers went back from 299 to ")

    def test_a_wrong_expression(self):
        done = subprocess.run(
            [HALFWATT, "tune", "--device", "sim:duty", "--state-dir", self.folder,
             "--progress-regex", "(", "--", "true"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2)
        self.assertIn("--progress-regex", done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1)

    def test_a_dry_run_says_the_plan_and_writes_nothing(self):
        done = subprocess.run(self.words("sweep", ["touch", os.path.join(self.folder, "started")],
                                         "--limits", "200,300", "--dry-run"),
                              capture_output=True, text=True, env=self.environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("a throw-away copy of `touch", done.stdout)
        self.assertIn("Ctrl-C is safe", done.stdout)
        self.assertEqual(os.listdir(self.folder), [])  # no lock, no journal, no record
        self.assertEqual(processes(self.marker), [])

    def test_an_interrupt(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            if os.path.exists(self.record):
                os.remove(self.record)
            child = subprocess.Popen(self.words("tune", [ODD_JOB, "steps", "9999999", "5"]),
                                     stderr=subprocess.PIPE, text=True, env=self.environment)
            child.stderr.readline()
            until = time.monotonic() + 20
            while len(processes(self.marker)) < 3 and time.monotonic() < until:
                time.sleep(0.02)
            child.send_signal(number)
            self.assertEqual(child.wait(20), 5)
            child.stderr.close()
            self.check_clean()

    def kill_halfwatt_over(self, command, is_there):
        child = subprocess.Popen(self.words("tune", command), stderr=subprocess.DEVNULL,
                                 env=self.environment)
        until = time.monotonic() + 20
        while not is_there() and time.monotonic() < until:
            time.sleep(0.02)
        self.assertTrue(is_there())
        child.kill()
        child.wait()

    def test_a_kill_of_halfwatt_itself(self):
        # halfwatt, its guardian, and the command
        self.kill_halfwatt_over([ODD_JOB, "steps", "9999999", "5"],
                                lambda: len(processes(self.marker)) >= 3)
        self.check_clean()

    def test_a_kill_of_halfwatt_ends_what_left_the_session_of_its_copy(self):
        away = ["sh", "-c", 'setsid sleep 1000 & setsid sh -c "trap \'\' TERM; sleep 1000" & '
                            'exec "$0" "$@"', ODD_JOB, "steps", "9999999", "5"]
        self.kill_halfwatt_over(away, lambda: len(processes(self.marker)) >= 6)
        self.check_clean()

    def test_a_kill_of_halfwatt_ends_what_cleared_its_environment_where_a_cgroup_holds_it(self):
        duration = str(100000 + os.getpid())  # by which it is known

        def sleepers():
            return running(["sleep", duration])

        away = ["sh", "-c", f'setsid env -i sleep {duration} & exec "$0" "$@"', ODD_JOB,
                "steps", "9999999", "5"]
        held = []

        def is_there():
            held[:] = sleepers()
            return len(held) == 1 and len(processes(self.marker)) >= 3

        self.kill_halfwatt_over(away, is_there)
        until = time.monotonic() + 10
        try:
            with open(f"/proc/{held[0]}/cgroup") as file:
                in_cgroup = "/halfwatt-" in file.read()
        except FileNotFoundError:
            in_cgroup = True  # it is gone already
        while in_cgroup and sleepers() and time.monotonic() < until:
            time.sleep(0.02)
        left = sleepers()
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        if not in_cgroup:
            self.skipTest("no cgroup of version 2 that may be written to")
        self.assertEqual(left, [])
        self.check_clean()


@unittest.skipIf(not SLOW, "slow")
class Measured(CommandTest):
    def test_limits_and_a_knob_are_measured(self):
        done = self.run_command("sweep", [ODD_JOB, "steps", "9999999", "{work}"],
                                "--knob", "work=10,20", "--limits", "120,350",
                                "--items", "{work}")
        self.assertEqual(done.returncode, 0, done.stderr)
        settings = [(each["setting"]["work"], each["setting"]["power_limit"])
                    for each in self.windows()]
        self.assertEqual(set(settings), {(10, 120), (10, 350), (20, 120), (20, 350)})
        works = [work for work, _ in settings]
        self.assertEqual(works, sorted(works))  # one start for each

    def test_a_dead_network_is_never_recommended(self):
        done = self.run_command("sweep", [ODD_JOB, "nan"], "--limits", "120,350",
                                "--loss-regex", r"loss=(?P<loss>\w+)")
        self.assertEqual(done.returncode, 4, done.stderr)
        self.assertIn("dead", done.stderr)
        self.assertEqual(done.stdout, "")

    def test_what_does_not_fit_is_left_out(self):
        done = self.run_command("sweep", [ODD_JOB, "no-memory", "{batch}"],
                                "--knob", "batch=16,1024", "--limits", "120,350")
        self.assertEqual(done.returncode, 0, done.stderr)
        large = [each for each in self.windows() if each["setting"]["batch"] == 1024]
        self.assertEqual([each["notes"] for each in large], [["does-not-fit"]])


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
