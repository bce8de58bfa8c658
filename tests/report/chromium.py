"""Drives a headless Chromium through its DevTools pipe; needs the standard library only."""

import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new",
    "--no-sandbox",  # CI runs as root, which Chromium refuses with its sandbox
    "--remote-debugging-pipe",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--hide-scrollbars",
)


class Failed(Exception):
    """Chromium is not there any more, does not answer, or refused a command."""


def find():
    """The path of an installed Chromium, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Chromium:
    """One page of one browser, with a profile of its own; both are gone after `with`."""

    def __init__(self, program, seconds):
        self.deadline = time.monotonic() + seconds
        self.events = []
        self.buffer = b""
        self.last_id = 0
        self.session = None
        self.process = None
        self.pipes = []
        self.profile = tempfile.mkdtemp(prefix="halfwatt-chromium-")
        try:
            self._start(program)
            target = self.call("Target.createTarget", url="about:blank")["targetId"]
            attached = self.call("Target.attachToTarget", targetId=target, flatten=True)
            self.session = attached["sessionId"]
            for domain in ("Page", "Runtime", "Network", "Log"):
                self.call(domain + ".enable")
        except BaseException:
            self.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def _start(self, program):
        # The browser reads commands from descriptor 3 and writes answers to 4.
        commands_out, self.commands = self._high_pipe()
        self.answers, answers_in = self._high_pipe()
        self.pipes = [self.commands, self.answers]

        def number_pipes():
            os.dup2(commands_out, 3)
            os.dup2(answers_in, 4)

        self.process = subprocess.Popen(
            [program, *FLAGS, "--user-data-dir=" + self.profile, "about:blank"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            preexec_fn=number_pipes, pass_fds=(3, 4), start_new_session=True)
        os.close(commands_out)
        os.close(answers_in)

    @staticmethod
    def _high_pipe():
        """A pipe above the numbers 3 and 4, which dup2 is going to overwrite in the child."""
        ends = os.pipe()
        high = tuple(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 10) for fd in ends)
        for fd in ends:
            os.close(fd)
        return high

    def close(self):
        if self.process is not None:
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()
            self.process = None
        while self.pipes:
            os.close(self.pipes.pop())
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **parameters):
        """Sends one command and returns its result."""
        self.last_id += 1
        message = {"id": self.last_id, "method": method, "params": parameters}
        if self.session is not None:
            message["sessionId"] = self.session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self.commands, data):]
        while True:
            answer = self._read()
            if answer.get("id") != self.last_id:
                self.events.append(answer)
            elif "error" in answer:
                raise Failed(f"{method}: {answer['error'].get('message')}")
            else:
                return answer["result"]

    def wait_for(self, method):
        """Reads events until one is called `method`; earlier ones count, and are kept."""
        while not any(event.get("method") == method for event in self.events):
            self.events.append(self._read())

    def evaluate(self, expression):
        """The value of a JavaScript expression, awaited where it is a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise Failed(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def _read(self):
        while b"\0" not in self.buffer:
            left = self.deadline - time.monotonic()
            if left <= 0 or not select.select([self.answers], [], [], left)[0]:
                raise Failed("Chromium did not answer in time")
            data = os.read(self.answers, 1 << 16)
            if not data:
                raise Failed("Chromium ended by itself")
            self.buffer += data
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)
