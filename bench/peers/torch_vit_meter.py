"""What a card drew and how fast it was clocked, read while others compute on it: by NVML's Python
package, or else by nvidia-smi. Where there is neither, everything is unknown."""

import itertools
import shutil
import statistics
import subprocess
import threading
import time

# The counter moves every 100 ms, and one reading of it may take 10 ms of the driver's time.
PERIOD_S = 0.05


def counter_watts(samples, seconds):
    """Mean power from where the energy counter moved to where it last moved; None where that is
    less than half of `seconds`, in which a step of the counter would be too much of it."""
    moved = [after for before, after in itertools.pairwise(samples)
             if None not in (before["joules"], after["joules"])
             and after["joules"] != before["joules"]]
    if len(moved) < 2 or moved[-1]["at_s"] - moved[0]["at_s"] < seconds / 2:
        return None
    return (moved[-1]["joules"] - moved[0]["joules"]) / (moved[-1]["at_s"] - moved[0]["at_s"])


def mean(samples, field):
    found = [sample[field] for sample in samples if sample[field] is not None]
    return statistics.fmean(found) if found else None


def metered(samples, begin_s, end_s):
    """Watts, joules, clock and power limit from one time to another; None for what is unknown."""
    inside = [sample for sample in samples if begin_s <= sample["at_s"] <= end_s]
    watts = counter_watts(inside, end_s - begin_s)
    if watts is None:
        watts = mean(inside, "watts")
    return {"watts": watts, "joules": None if watts is None else watts * (end_s - begin_s),
            "sm_mhz": mean(inside, "sm_mhz"), "limit_w": mean(inside[-1:], "limit_w")}


class Meter:
    """Reads a card, by NVML's number, in a thread of its own; None: there is none to be read.
    `about` has the names of card and driver."""

    def __init__(self, card):
        self.about = {"card": "unknown", "driver": "unknown"}
        self._samples = []
        self._over = threading.Event()
        self._thread = None
        read = None if card is None else self._by_nvml(card) or self._by_nvidia_smi(card)
        if read:
            self._thread = threading.Thread(target=self._run, args=(read,), daemon=True)
            self._thread.start()

    def take(self, begin_s, end_s):
        """As metered(); what was read before is forgotten."""
        samples, self._samples = self._samples, []
        return metered(samples, begin_s, end_s)

    def close(self):
        self._over.set()
        if self._thread:
            self._thread.join()

    def _run(self, read):
        while not self._over.wait(PERIOD_S):
            self._samples.append({"at_s": time.monotonic(), **read()})

    def _by_nvml(self, card):
        try:
            import pynvml  # pylint: disable=import-outside-toplevel,import-error
            pynvml.nvmlInit()
            handle = pynvml.nvmlDeviceGetHandleByIndex(card)
            self.about = {"card": pynvml.nvmlDeviceGetName(handle),
                          "driver": pynvml.nvmlSystemGetDriverVersion()}
        except Exception:  # pylint: disable=broad-exception-caught
            return None  # no package, no driver, no such card: NVML has an exception for each

        def asked(function, unit, *words):
            try:
                return function(handle, *words) / unit
            except pynvml.NVMLError:
                return None

        return lambda: {
            "joules": asked(pynvml.nvmlDeviceGetTotalEnergyConsumption, 1000),
            "watts": asked(pynvml.nvmlDeviceGetPowerUsage, 1000),
            "sm_mhz": asked(pynvml.nvmlDeviceGetClockInfo, 1, pynvml.NVML_CLOCK_SM),
            "limit_w": asked(pynvml.nvmlDeviceGetEnforcedPowerLimit, 1000)}

    def _by_nvidia_smi(self, card):
        if not shutil.which("nvidia-smi"):
            return None

        def asked(*fields):
            done = subprocess.run(
                ["nvidia-smi", f"--id={card}", f"--query-gpu={','.join(fields)}",
                 "--format=csv,noheader,nounits"], capture_output=True, text=True, check=False)
            words = [word.strip() for word in done.stdout.strip().split(",")]
            return words if done.returncode == 0 and len(words) == len(fields) else None

        def number(word):
            try:
                return float(word)
            except ValueError:
                return None  # "[N/A]"

        about = asked("name", "driver_version")
        if not about:
            return None
        self.about = dict(zip(("card", "driver"), about))

        def read():
            words = asked("power.draw", "clocks.sm", "power.limit") or [""] * 3
            return {"joules": None,
                    **dict(zip(("watts", "sm_mhz", "limit_w"), map(number, words)))}
        return read
