"""A shell with job control on a terminal of its own, and how to look at processes."""

import os
import pty
import select
import signal
import termios
import time

PATIENCE = 20  # seconds, until a test says that something never came


def state_of(pid):
    """The letter of `man 5 proc`: R, S, T for stopped, Z."""
    with open(f"/proc/{pid}/stat") as file:
        return file.read().rsplit(")", 1)[1].split()[0]


def lives(pid):
    try:
        return state_of(pid) not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for(what, condition):
    until = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > until:
            raise AssertionError(f"never came: {what}")
        time.sleep(0.01)


class Shell:
    """`before` is called in its process before bash begins."""

    def __init__(self, before=lambda: None):
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            try:
                before()
                os.environ["PS1"] = "ready> "
                os.execvp("bash", ["bash", "--norc", "--noprofile", "--noediting", "-i"])
            finally:
                os._exit(127)
        self.seen = b""
        self.wait("ready> ")

    def wait(self, text, from_start=0, patience=PATIENCE):
        until = time.monotonic() + patience
        while text.encode() not in self.seen[from_start:]:
            if time.monotonic() > until:
                raise AssertionError(f"never seen: {text!r}; seen: {self.seen[-2000:]!r}")
            if select.select([self.file], [], [], 0.1)[0]:
                self.seen += os.read(self.file, 65536)

    def type(self, text, then):
        """Returns what was seen from here on until `then`."""
        at = len(self.seen)
        os.write(self.file, text.encode())
        self.wait(then, at)
        return self.seen[at:].decode(errors="replace")

    def modes(self):
        return termios.tcgetattr(self.file)

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.file)
