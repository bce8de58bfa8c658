#!/usr/bin/env python3
"""scaler.py [FOLDER]: writes scaler.json, how loss scales move as steps overflow.

The traces of torch are those of torch.amp.GradScaler, driving an optimizer on the CPU; those of
DeepSpeed are computed here by the rules of its dynamic loss scaler.

Ran with Python 3.11.7, torch 2.11.0+cu130.
"""

import json
import math
import sys
from pathlib import Path

import torch

MIXED = "FFFIFFIIFFFFFF"  # F: gradients are finite, I: one is infinite


def torch_trace(name, steps, scale, interval):
    """Scale and tracker after each step's update(), and whether the step was applied."""
    parameter = torch.nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.SGD([parameter], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=interval)
    trace = {"name": name, "scaler": "torch", "interval": interval, "growth": 2.0, "backoff": 0.5,
             "initial_scale": scale, "steps": steps, "scale": [], "tracker": [], "applied": ""}
    for step in steps:
        scaler.scale(torch.zeros(()))  # what creates the scale on the device
        parameter.grad = torch.tensor([1.0, math.inf if step == "I" else 1.0])
        before = parameter.detach().clone()
        scaler.step(optimizer)
        scaler.update()
        trace["applied"] += "n" if torch.equal(before, parameter.detach()) else "y"
        trace["scale"].append(scaler.get_scale())
        trace["tracker"].append(scaler.state_dict()["_growth_tracker"])
    return trace


def deepspeed_trace(name, steps, scale, window, hysteresis):
    """Scale and patience left after each step. An overflow uses up patience before it halves the
    scale. The scale doubles at a good step if the good steps *before* it since the last overflow
    (since the start, if none) are a multiple of `window` and not 0: one step later than torch's.
    """
    good, patience = 0, hysteresis
    trace = {"name": name, "scaler": "deepspeed", "window": window, "hysteresis": hysteresis,
             "minimum": 1.0, "initial_scale": scale, "steps": steps, "scale": [], "patience": []}
    for step in steps:
        if step == "I":
            good = 0
            if patience == 1:
                scale = max(scale / 2, 1.0)
            else:
                patience -= 1
        else:
            if good > 0 and good % window == 0:
                scale *= 2
                patience = hysteresis
            good += 1
        trace["scale"].append(scale)
        trace["patience"].append(patience)
    return trace


def inverse(scale):
    """What torch multiplies gradients by, as GradScaler.unscale_ computes it: f32."""
    gradient = torch.nn.Parameter(torch.zeros(1))
    gradient.grad = torch.ones(1)
    scaler = torch.amp.GradScaler("cpu", init_scale=scale)
    scaler.scale(torch.zeros(()))
    scaler.unscale_(torch.optim.SGD([gradient], lr=1.0))
    return gradient.grad.item()


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    traces = [
        torch_trace("a mix of good steps and overflows", MIXED, 2.0**16, 3),
        torch_trace("a scale that would leave f32 does not grow", "FFF", 2.0**127, 3),
        torch_trace("nothing stops the fall to 0", "I" * 166, 2.0**16, 2000),
        deepspeed_trace("a mix of good steps and overflows", MIXED, 2.0**16, 3, 2),
        deepspeed_trace("no patience", MIXED, 2.0**16, 3, 1),
    ]
    inverses = [{"scale": scale, "inverse": inverse(scale)} for scale in (65536.0, 3.0)]
    lines = [",\n  ".join(json.dumps(row) for row in rows) for rows in (traces, inverses)]
    (folder / "scaler.json").write_text(
        f'{{"made_with": "torch {torch.__version__}",\n "traces": [\n  {lines[0]}],\n'
        f' "inverses": [\n  {lines[1]}]}}\n', "utf-8")


if __name__ == "__main__":
    main()
