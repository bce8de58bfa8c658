#!/usr/bin/env python3
"""torch_parity.py --output FILE [--modes fp32,...] [--device gpu:0] [--steps 200] [...]: whether
halfwatt's ViT computes what timm's does in PyTorch, on one device, from the same weights on the
same batches: logits and gradients of the first step beside PyTorch's own error in that mode, the
losses of a training beside PyTorch's in this and in other orders, and what a loss scale does where
gradients overflow. Prints a table, writes all figures to FILE, fails where a mode fails.

Needs torch and timm."""

import argparse
import datetime
import functools
import importlib.util
import json
import math
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import torch_parity_judge as judge
from torch_vit import ROOT, commit_here
from torch_vit_meter import Meter
from torch_vit_rows import BadInput

PROGRAM = ROOT / "build/release/bin/peers/bench_vit_parity"
LIMIT_S = 600  # of one training of ours
OTHER_ORDERS = (1, 2)  # seeds
# Of a loss scale. With GradScaler's own first one, 65536, the first gradients nearly overflow.
SCALING = {"scale": 8192, "interval": 2000}

# The training in which gradients overflow: short, with a scale that grows soon.
OVERFLOW_MODE = "amp-fp16"
OVERFLOW_STEPS = 20
OVERFLOWS = (3, 4, 18)  # steps, from 0
OVERFLOW_FACTOR = 1e6  # of images: they are infinite in fp16
OVERFLOW_SCALING = {"scale": 8192, "interval": 6}


class Failed(Exception):
    """Why there are no figures, in the program's own last words."""


class Study:
    """The trainings of both sides, each done once."""

    def __init__(self, options, folder):
        import torch_parity_peer as peer  # pylint: disable=import-outside-toplevel
        self.options = options
        self.folder = folder
        self.peer = peer.Peer(options, self.file("weights"))
        self.peer.write(self.file("data"), self.factors)
        self.halfwatt = "unknown"
        self.ours = functools.cache(self._ours)
        self.pytorchs = functools.cache(self._pytorchs)
        self.pytorchs_first = functools.cache(lambda mode: self.peer.first(mode, SCALING))

    def file(self, name):
        return os.path.join(self.folder, f"{name}.safetensors")

    @property
    def depth(self):
        return self.peer.depth

    @property
    def factors(self):
        return [1.0] * self.options.steps

    def our_training(self, mode, data, scaling):
        """What bench_vit_parity says of a training; its first step is in the file `ours`."""
        options = self.options
        command = [*options.program, options.model, mode, options.batch, options.device,
                   options.rate, scaling["scale"], scaling["interval"], self.file("weights"),
                   self.file(data), self.file("ours")]
        ran = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                             check=False, timeout=LIMIT_S,
                             env=dict(os.environ, CUDA_DEVICE_ORDER="PCI_BUS_ID"))
        if ran.returncode != 0:
            raise Failed(f"status {ran.returncode}: {ran.stderr.strip()[-300:]}")
        answer = json.loads(ran.stdout)
        self.halfwatt = answer["versions"]["halfwatt"]
        if answer["state"] != "live":
            raise Failed(f"the training is {answer['state']}")
        return answer

    def _ours(self, mode):
        """Losses, skipped steps and what the first step gave."""
        answer = self.our_training(mode, "data", SCALING)
        losses = [math.nan if loss is None else loss for loss in answer["losses"]]
        first = self.peer.read(self.file("ours"))
        return {"losses": losses, "skipped": sum(answer["skipped"]), "first": first}

    def _pytorchs(self, mode):
        """The same, with losses of all orders."""
        runs = [self.peer.train(mode, seed, SCALING, self.factors)
                for seed in (None, *OTHER_ORDERS)]
        return {"orders": [run["losses"] for run in runs], "skipped": sum(runs[0]["skipped"]),
                "first": self.pytorchs_first(mode)}

    def errors(self, first):
        """Of each tensor of a first step to PyTorch's in fp64."""
        return self.peer.errors(first, self.pytorchs_first("fp64"))

    def overflow(self):
        """The figure of the training in which gradients overflow, and all that it is from."""
        factors = [OVERFLOW_FACTOR if step in OVERFLOWS else 1.0
                   for step in range(OVERFLOW_STEPS)]
        self.peer.write(self.file("overflow"), factors)
        ours = self.our_training(OVERFLOW_MODE, "overflow", OVERFLOW_SCALING)
        ours["skipped"] = [bool(each) for each in ours["skipped"]]
        pytorchs = self.peer.train(OVERFLOW_MODE, None, OVERFLOW_SCALING, factors)
        kept = ("scales", "skipped")
        return judge.held_overflow(ours, pytorchs, OVERFLOWS), {
            "ours": {key: ours[key] for key in kept},
            "pytorch": {key: pytorchs[key] for key in kept}}

    def held_losses(self, mode, losses, orders):
        may_differ = judge.allowed_loss(mode, self.depth, self.options.batch)
        return judge.held_losses(may_differ, losses, orders)

    def of_mode(self, mode):
        """The record of a mode that both have."""
        ours, pytorchs = self.ours(mode), self.pytorchs(mode)
        errors = {"ours": self.errors(ours["first"]), "pytorch": self.errors(pytorchs["first"])}
        worst = {side: self.peer.worst(each) for side, each in errors.items()}
        figures = judge.held_errors(mode, self.depth, worst["ours"], worst["pytorch"])
        figures |= self.held_losses(mode, ours["losses"], pytorchs["orders"])
        record = {"errors": errors, "losses": ours["losses"], "orders": pytorchs["orders"],
                  "skipped": {"ours": ours["skipped"], "pytorch": pytorchs["skipped"]}}
        if mode == OVERFLOW_MODE:
            more, record["overflow"] = self.overflow()
            figures |= more
        return record | {"held": figures}

    def of_mode_without_peer(self, mode):
        """The record of a mode that PyTorch has not, held against fp32 of both."""
        ours = self.ours(mode)
        sides = {"our fp32": (self.ours("fp32")["first"],
                              [self.ours("fp32")["losses"], *self.pytorchs("fp32")["orders"][1:]]),
                 "PyTorch's": (self.pytorchs("fp32")["first"], self.pytorchs("fp32")["orders"])}
        figures, errors = {}, {}
        for side, (first, orders) in sides.items():
            errors[side] = self.peer.errors(ours["first"], first)
            found = judge.held_errors(mode, self.depth, self.peer.worst(errors[side]), None)
            found |= self.held_losses(mode, ours["losses"], orders)
            figures |= {f"{what}, {side}": figure for what, figure in found.items()}
        return {"errors": errors, "losses": ours["losses"], "held": figures}

    def record(self, mode):
        try:
            without = mode in judge.WITHOUT_PEER
            record = self.of_mode_without_peer(mode) if without else self.of_mode(mode)
        except (Failed, subprocess.TimeoutExpired) as reason:
            record = {"held": {}, "failed": str(reason)}
        record = {"mode": mode, "failed": None} | record
        record["passed"] = not record["failed"] and judge.passed(record["held"])
        return record


def check_options(options):
    """Raises BadInput."""
    if not re.fullmatch(r"cpu|gpu:\d{1,4}", options.device):
        raise BadInput(f"--device {options.device}: needed cpu, or gpu:N for a card")
    if not options.program or not shutil.which(options.program[0]):
        raise BadInput(f"--program {shlex.join(options.program)}: is no program; needed "
                       "bench_vit_parity, as a build with HALFWATT_BENCH makes it")
    if not all(importlib.util.find_spec(module) for module in ("torch", "timm")):
        raise BadInput("needs torch and timm, as `pip install torch timm` brings them")
    unknown = [mode for mode in options.modes if mode not in judge.MODES]
    if unknown:
        raise BadInput(f"--modes {', '.join(unknown)}: needed some of {', '.join(judge.MODES)}")
    if min(options.batch, options.batches, options.steps) < 1 or not 0 < options.rate <= 1:
        raise BadInput(f"--batch {options.batch} --batches {options.batches} --steps "
                       f"{options.steps} --rate {options.rate}: needed 1 or more, and a rate of "
                       "more than 0 up to 1")


def read_options():
    words = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    words.add_argument("--output", required=True, metavar="FILE", help="JSON of all figures")
    words.add_argument("--modes", default=",".join(judge.MODES),
                       type=lambda text: text.split(","))
    words.add_argument("--model", default="vit_tiny_patch16_224")
    words.add_argument("--device", default="gpu:0", help="gpu:N or cpu")
    words.add_argument("--steps", type=int, default=200)
    words.add_argument("--batch", type=int, default=16)
    words.add_argument("--batches", type=int, default=40,
                       help="that there are: the first comes again after the last")
    words.add_argument("--rate", type=float, default=1e-4, help="of AdamW")
    words.add_argument("--program", default=[str(PROGRAM)], type=shlex.split,
                       help="bench_vit_parity, or words that run it")
    words.add_argument("--commit", default=commit_here(), help="of halfwatt; default: git's")
    return words.parse_args()


def measure(options):
    """The record of all modes."""
    card = re.fullmatch(r"gpu:(\d+)", options.device)
    meter = Meter(int(card[1]) if card else None)
    meter.close()
    with tempfile.TemporaryDirectory() as folder:
        study = Study(options, folder)
        modes = []
        for mode in options.modes:
            modes.append(study.record(mode))
            print(judge.table(modes[-1:]), flush=True)
        versions = meter.about | study.peer.versions() | {"halfwatt": study.halfwatt}
    return {"measured": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
            "commit": options.commit, "versions": versions, "device": options.device,
            "model": options.model, "batch": options.batch, "batches": options.batches,
            "steps": options.steps, "rate": options.rate, "modes": modes,
            "passed": all(each["passed"] for each in modes)}


def writable(value):
    """The same without numbers that are none, which JSON has not."""
    if isinstance(value, dict):
        return {key: writable(each) for key, each in value.items()}
    if isinstance(value, list):
        return [writable(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def main():
    options = read_options()
    try:
        check_options(options)
    except BadInput as error:
        print(f"torch_parity.py: {error}", file=sys.stderr)
        return 2
    record = measure(options)
    with open(options.output, "w", encoding="utf-8") as file:
        json.dump(writable(record), file)
    print(judge.table(record["modes"]))
    print("passed" if record["passed"] else "FAILED")
    return 0 if record["passed"] else 1


if __name__ == "__main__":
    sys.exit(main())
