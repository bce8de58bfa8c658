#!/usr/bin/env python3
"""stop_test.py HALFWATT ODD_JOB: Ctrl-Z, Ctrl-C and Ctrl-\\ while a throw-away copy is measured
on sim:duty, and stops that halfwatt cannot see coming."""

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

from shell import PATIENCE, Shell, lives, state_of, wait_for

HALFWATT, ODD_JOB = sys.argv[1], sys.argv[2]
PRESET = 350  # W, of sim:duty


def states(pid):
    return {state_of(pid) for _ in range(50) if time.sleep(0.005) is None}


def notes(record):
    with open(record) as file:
        return [json.loads(line)["notes"] for line in list(file)[1:]]


class StopTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="halfwatt-test-")
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.record = os.path.join(self.folder, "run.jsonl")
        self.job_file = os.path.join(self.folder, "job")
        job = f"echo $$ > {self.job_file}; exec {ODD_JOB} steps 9999999 2"
        self.words = [HALFWATT, "sweep", "--device", "sim:duty", "--state-dir", self.folder,
                      "--progress", "tqdm", "--record", self.record, "--limits", "250,350",
                      "--", "sh", "-c", job]

    def job(self):
        wait_for("the job", lambda: os.path.exists(self.job_file)
                 and os.path.getsize(self.job_file) > 1)
        with open(self.job_file) as file:
            return int(file.read())

    def windows(self):
        try:
            return len(notes(self.record))
        except (FileNotFoundError, json.JSONDecodeError):
            return 0

    def assert_limit_is_back(self):
        done = subprocess.run([HALFWATT, "run", "--device", "sim:duty", "--state-dir",
                               self.folder, "--limit", "100%", "--", "true"],
                              capture_output=True, text=True, timeout=60)
        self.assertIn(f"then {PRESET} W again", done.stderr)


class OnTerminal(StopTest):
    def setUp(self):
        super().setUp()
        if shutil.which("bash") is None:
            self.skipTest("bash is not installed")
        try:
            for file in os.openpty():
                os.close(file)
        except OSError as none:
            self.skipTest(f"no pseudo terminals here: {none}")
        self.shell = Shell()
        self.addCleanup(self.shell.close)

    def start(self):
        words = " ".join(f"'{word}'" for word in self.words)
        self.shell.type(f"{words}; echo s''t $?\r", "Ctrl-C is safe")
        return self.job()

    def test_ctrl_z_stops_the_copy_and_halfwatt_and_fg_continues_both(self):
        job = self.start()
        time.sleep(1)
        self.shell.type("\x1a", "Stopped")
        self.assertEqual(states(job), {"T"})
        self.shell.type("fg\r", "sweep")
        wait_for("the job to go on", lambda: state_of(job) in "RS")
        self.shell.type("\x03", "ready> ")
        wait_for("its end", lambda: not lives(job))
        self.assert_limit_is_back()

    def test_kill_9_while_stopped_leaves_no_stopped_copy_and_no_limit(self):
        job = self.start()
        self.shell.type("\x1a", "Stopped")
        self.shell.type("kill -9 %1\r", "ready> ")
        wait_for("its end", lambda: not lives(job))
        self.assert_limit_is_back()

    def test_ctrl_c_twice_ends_all_at_once(self):
        job = self.start()
        os.write(self.shell.file, b"\x03")
        time.sleep(0.05)
        self.shell.type("\x03", "ready> ")
        wait_for("its end", lambda: not lives(job))
        self.assert_limit_is_back()

    def test_ctrl_backslash_ends_in_order(self):
        job = self.start()
        self.shell.type("\x1c", "st 5")
        self.assertFalse(lives(job))
        self.assert_limit_is_back()


class Unseen(StopTest):
    def test_a_window_in_which_halfwatt_alone_was_stopped_is_void(self):
        child = subprocess.Popen(self.words, stdout=subprocess.DEVNULL,
                                 stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(child.wait)
        self.addCleanup(child.kill)
        self.job()
        for window in range(1, 4):  # until one is hit and not what comes before it
            wait_for("a window", lambda: self.windows() >= window)
            time.sleep(4)  # settling is over; a window takes at least as long again
            child.send_signal(signal.SIGSTOP)
            time.sleep(0.3)
            child.send_signal(signal.SIGCONT)
            wait_for("the next one", lambda: self.windows() > window)
            if "suspended" in notes(self.record)[window]:
                break
        else:
            self.fail(f"no window is void: {notes(self.record)}")
        child.send_signal(signal.SIGTERM)
        self.assertEqual(child.wait(PATIENCE), 5)
        self.assert_limit_is_back()


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
