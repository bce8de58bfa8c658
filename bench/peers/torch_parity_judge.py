"""What torch_parity.py holds a mode to, its verdict and the table; without PyTorch. README.md
beside this file has the fields of its record."""

import math

# Half the distance from 1 to the next number of what a mode computes in: one rounding's error.
HALF_ULP = {"fp32": 2**-24, "tf32": 2**-11, "amp-fp16": 2**-11, "fp16": 2**-11, "amp-bf16": 2**-8,
            "bf16": 2**-8, "fp8": 2**-4}
MODES = tuple(HALF_ULP)
WITHOUT_PEER = ("fp8",)  # PyTorch has none: held against fp32, ours and PyTorch's
OF_PYTORCHS_ERROR = 1.5
FEW_ROUNDINGS = 4  # which one of two that compute the same may have more
ROUNDINGS_OF_A_BLOCK = 10  # two norms, qkv, attention, proj, fc1, gelu, fc2, two sums
ROUNDINGS_BESIDE = 4  # embedding, position, norm, head
ROUNDED_OPERANDS = 8  # of a block, to fp8: two of each of qkv, proj, fc1, fc2
FIRST_STEPS = 5
WINDOW = 20  # of the moving mean


def own_error(mode, depth):
    """What a mode's roundings come to in a number that has passed `depth` blocks, of its size:
    independent errors that nothing damps or amplifies add up as their root."""
    if mode in WITHOUT_PEER:
        # Only operands are so coarse, and products add up many: what counts is not the largest
        # error of one but the root mean square, from 0 to half an ulp evenly.
        return HALF_ULP[mode] / math.sqrt(3) * math.sqrt(ROUNDED_OPERANDS * depth)
    return HALF_ULP[mode] * math.sqrt(ROUNDINGS_OF_A_BLOCK * depth + ROUNDINGS_BESIDE)


def allowed_error(mode, pytorchs):
    """How far logits or a gradient may be from the reference, where PyTorch's are `pytorchs`
    away."""
    return OF_PYTORCHS_ERROR * pytorchs + FEW_ROUNDINGS * HALF_ULP[mode]


def allowed_loss(mode, depth, batch):
    """How far the losses of the first steps may be apart, of their size: both sides have a mode's
    error, each step's update adds its own, and a loss is the mean of a batch."""
    return own_error(mode, depth) * math.sqrt(2 * FIRST_STEPS / batch)


def moving_means(losses):
    width = min(WINDOW, len(losses))
    return [sum(losses[at:at + width]) / width for at in range(len(losses) - width + 1)]


def smoothed_apart(losses, others):
    """How far two courses of losses come apart at most, but for what is of single batches."""
    return max(abs(a - b) for a, b in zip(moving_means(losses), moving_means(others)))


def first_apart(losses, others):
    """How far the losses of the first steps are apart at most, of their size."""
    pairs = list(zip(losses, others))[:FIRST_STEPS]
    return max(abs(a - b) / abs(b) for a, b in pairs)


def held(apart, allowed):
    """A figure beside what it may be. A number that is none is not held."""
    return {"is": apart, "may_be": allowed, "passed": bool(apart <= allowed)}


def held_losses(may_differ, losses, orders):
    """Losses of ours beside those of PyTorch: `orders` has its runs, first that of our order; the
    first losses of both may differ by that."""
    if not all(math.isfinite(loss) for run in [losses, *orders] for loss in run):
        return {"finite": held(math.nan, 0)}
    between_orders = max(smoothed_apart(run, orders[0]) for run in orders[1:])
    return {"first losses": held(first_apart(losses, orders[0]), may_differ),
            "smoothed losses": held(smoothed_apart(losses, orders[0]), between_orders)}


def held_errors(mode, depth, ours, pytorchs):
    """Logits and gradients of the first step, by their largest error to the reference; `pytorchs`
    None: PyTorch has no such mode, and an error is held to what the mode's roundings come to."""
    return {name: held(ours[name], own_error(mode, depth) if pytorchs is None
                       else allowed_error(mode, pytorchs[name])) for name in ours}


def held_overflow(ours, pytorchs, injected):
    """Scales and skips of ours beside GradScaler's, which must have skipped the `injected`
    steps."""
    apart = sum(a != b for key in ("scales", "skipped") for a, b in zip(ours[key], pytorchs[key]))
    missed = sum(not pytorchs["skipped"][step] for step in injected)
    return {"overflow": held(apart + missed, 0)}


def passed(figures):
    return all(figure["passed"] for figure in figures.values())


def table(records):
    """A line for each figure of each mode, and how far its smoothed loss came."""
    lines = [f"{'mode':9} {'what':24} {'is':>10} {'may be':>10}"]
    for record in records:
        for what, figure in record["held"].items():
            lines.append(f"{record['mode']:9} {what:24} {figure['is']:10.3g} "
                         f"{figure['may_be']:10.3g}  {'' if figure['passed'] else 'FAILED'}"
                         .rstrip())
        if record.get("losses"):
            means = moving_means(record["losses"])
            lines.append(f"{record['mode']:9} {'learnt':24} {means[0]:10.3g} to {means[-1]:.3g}")
        if record["failed"]:
            lines.append(f"{record['mode']:9} FAILED: {record['failed']}")
    return "\n".join(lines)
