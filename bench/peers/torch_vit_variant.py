"""torch_vit_variant.py VARIANT MODEL train|infer PRECISION BATCH cpu|gpu:N WEIGHTS DATA, or
torch_vit_variant.py make MODEL BATCH WEIGHTS DATA: PyTorch's side of torch_vit.py, in a process
that stays. VARIANT: eager, compiled or max-autotune. Answers the line `first` (does the first step)
and each line `window SECONDS` of its input with a line of JSON, as bench_vit_rows does; ends with
the input. `make` writes the files that both sides read: timm's first weights of MODEL with one
logit, and BATCH random normal images with labels."""

import contextlib
import json
import math
import os
import sys
import time

import safetensors.torch
import timm
import torch

import torch_modes as modes

# The lead-in of a window, which is not timed: vit_rows.cpp has the same.
LEAD_SECONDS = 0.25
LEAD_STEPS = 3
# More logits than these say nothing new.
MOST_FIRST = 64

# The rate of the study: vit_rows.cpp has the same.
RATE = 1e-5
COMPILE_MODE = {"compiled": "default", "max-autotune": "max-autotune"}


def model_named(name):
    return timm.create_model(name, pretrained=False, num_classes=1)


def make(name, batch, weights, data):
    """Writes both files."""
    torch.manual_seed(1)
    model = model_named(name)
    safetensors.torch.save_file(model.state_dict(), weights)
    images = torch.randn(int(batch), *model.default_cfg["input_size"])
    labels = torch.randint(0, 2, (int(batch), 1)).float()
    safetensors.torch.save_file({"images": images, "labels": labels}, data)


def all_finite(tensors):
    return bool(torch.stack([torch.isfinite(each).all() for each in tensors]).all())


class Row:  # pylint: disable=too-few-public-methods
    """A model and a batch on the device, ready for steps. After a step `last` is its loss, or the
    logits; nobody has waited for them."""

    def __init__(self, variant, name, precision, device, files):
        self.device = device
        self.precision = precision
        model = model_named(name)
        model.load_state_dict(safetensors.torch.load_file(files[0]))
        data = safetensors.torch.load_file(files[1])
        dtype = modes.stored_as(precision)
        self.model = model.to(device, dtype)
        self.images = data["images"].to(device, dtype)
        self.labels = data["labels"].to(device)
        self.forward = self.model if variant == "eager" else torch.compile(
            self.model, mode=COMPILE_MODE[variant], dynamic=False)
        self.last = None

    def autocast(self):
        return modes.autocast(self.device, self.precision)


class Inference(Row):
    """Forward passes to logits."""

    def __init__(self, *words):
        super().__init__(*words)
        self.model.eval()

    @contextlib.contextmanager
    def around_steps(self):
        with torch.inference_mode(), self.autocast():
            yield

    def step(self):
        self.last = self.forward(self.images)

    def applied(self):
        return 0

    def state(self, _steps, _applied):
        return "live" if all_finite([self.last]) else "dead"


class Training(Row):
    """Forward, loss, backward and AdamW, with a loss scale in amp-fp16."""

    def __init__(self, *words):
        super().__init__(*words)
        self.model.train()
        self.optimizer = modes.adamw_for(self.model.parameters(), self.precision, RATE)
        self.scaler = modes.scaler_for(self.device, self.precision)

    def around_steps(self):
        return contextlib.nullcontext()

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with self.autocast():
            logits = self.forward(self.images)
            self.last = torch.nn.functional.binary_cross_entropy_with_logits(logits.float(),
                                                                             self.labels)
        self.scaler.scale(self.last).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()

    def applied(self):
        """Steps that changed the weights, of all so far."""
        states = list(self.optimizer.state.values())
        return int(states[0]["step"].item()) if states else 0

    def state(self, steps, applied):
        # A step that was skipped may have any loss: what it leaves alone are the weights.
        skips = applied < steps
        if not (skips or all_finite([self.last])) or not all_finite(self.model.parameters()):
            return "dead"
        return "skipping" if 2 * applied < steps else "live"


def wait(device):
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def numbers(row):
    values = row.last.detach().double().flatten()[:MOST_FIRST].tolist()
    return [value if math.isfinite(value) else None for value in values]


def lead_in(row):
    """Seconds of the fastest of some steps, each waited for."""
    fastest = math.inf
    begin = time.monotonic()
    steps = 0
    while steps < LEAD_STEPS or time.monotonic() < begin + LEAD_SECONDS:
        before = time.monotonic()
        row.step()
        wait(row.device)
        fastest = min(fastest, time.monotonic() - before)
        steps += 1
    return fastest


def window(row, seconds):
    """What about that many seconds of steps gave; they are waited for once, at the end."""
    steps = max(1, round(seconds / lead_in(row)))
    applied = row.applied()
    on_card = row.device.type == "cuda"
    if on_card:
        torch.cuda.reset_peak_memory_stats(row.device)
    begin = time.monotonic()
    for _ in range(steps):
        row.step()
    wait(row.device)
    end = time.monotonic()
    peak = torch.cuda.max_memory_allocated(row.device) if on_card else None
    state = row.state(steps, row.applied() - applied)
    if on_card:
        torch.cuda.empty_cache()  # the other variants need the memory in their windows
    return {"steps": steps, "begin_s": begin, "end_s": end, "state": state, "last": numbers(row),
            "peak_bytes": peak}


def answer(row, line):
    """What a line of the input asks for."""
    word, *rest = line.split()
    with row.around_steps():
        if word == "first":
            row.step()
            return {"first": numbers(row), "versions": modes.versions()}
        return window(row, float(rest[0]))


def main():
    if sys.argv[1] == "make":
        make(*sys.argv[2:])
        return
    # Whatever libraries print goes to stderr: stdout is for answers.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    variant, name, mode, precision, _, place, *files = sys.argv[1:]
    modes.choose_products(precision)
    kind = Training if mode == "train" else Inference
    row = kind(variant, name, precision, modes.device_at(place), files)
    for line in sys.stdin:
        print(json.dumps(answer(row, line)), file=answers, flush=True)


main()
