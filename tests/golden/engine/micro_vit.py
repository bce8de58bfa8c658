#!/usr/bin/env python3
"""micro_vit.py [FOLDER]: writes micro_vit_token.safetensors and micro_vit_avg.safetensors, what
two small Vision Transformers of timm do in double precision (README.md lists the tensors).

Ran with Python 3.11.7, torch 2.11.0+cu130 on a CPU with AVX-512 (one thread), timm 1.0.31,
safetensors 0.8.0, numpy 2.4.6.
"""

import copy
import json
import math
import platform
import sys
from pathlib import Path

import safetensors
import timm
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from timm.models.vision_transformer import VisionTransformer

from draws import Rng, as_stored, draw_weights

STEPS = 10
BATCH = 8
SMOOTHING = 0.1
MAX_NORM = 3.0  # bites in the first steps and no more in the last
DECAY = 0.05  # of every parameter: these goldens spare neither biases nor norms nor tokens

MODELS = {
    "micro_vit_token": dict(img_size=16, patch_size=4, embed_dim=32, depth=2, num_heads=2,
                            mlp_ratio=2, num_classes=10, global_pool="token"),
    "micro_vit_avg": dict(img_size=12, patch_size=4, embed_dim=24, depth=1, num_heads=3,
                          mlp_ratio=4, num_classes=1, global_pool="avg"),
}

OPTIMIZERS = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, weight_decay=DECAY, foreach=False),
    "adamw_eps4": lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=DECAY, eps=1e-4,
                                              foreach=False),
    "adamw_eps8": lambda p: torch.optim.AdamW(p, lr=1e-3, weight_decay=DECAY, eps=1e-8,
                                              foreach=False),
}


def std_of(name, shape):
    """About what keeps activations near 1; nothing is 0, so that no gradient is."""
    is_matrix = len(shape) >= 2 and name.endswith("weight")
    return 1.0 / math.sqrt(math.prod(shape[1:])) if is_matrix else 0.1


def loss_of(logits, labels, smoothing=0.0):
    """Mean loss: cross entropy of class numbers, BCE with logits of labels that are 0.0 or 1.0."""
    if labels.is_floating_point():
        return F.binary_cross_entropy_with_logits(logits, labels.to(logits.dtype))
    return F.cross_entropy(logits, labels, label_smoothing=smoothing)


def gradients(model, images, labels, smoothing=0.0, micro_batches=1):
    """Leaves the gradients of the mean loss in `model`; returns that loss."""
    model.zero_grad()
    total = 0.0
    for part, wanted in zip(images.chunk(micro_batches), labels.chunk(micro_batches)):
        loss = loss_of(model(part), wanted, smoothing) / micro_batches
        loss.backward()
        total += loss.detach()
    return total


def trained(model, images, labels, optimizer, max_norm=None, micro_batches=1):
    """A copy of `model` after STEPS steps on the same batch, the loss before each step and the
    norm of each step's gradient before clipping.
    """
    model = copy.deepcopy(model)
    stepper = OPTIMIZERS[optimizer](model.parameters())
    losses, norms = [], []
    for _ in range(STEPS):
        losses.append(gradients(model, images, labels, micro_batches=micro_batches))
        limit = math.inf if max_norm is None else max_norm
        norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), limit, foreach=False))
        stepper.step()
    return model, torch.stack(losses), torch.stack(norms)


def with_thirds(model):
    """Name and values of each parameter, and of q, k and v of each qkv.bias by themselves: its k
    third has a gradient of 0 but for rounding, which Adam's eps of 1e-8 blows up.
    """
    for name, values in model.named_parameters():
        yield name, values.detach().double()
        if name.endswith("qkv.bias"):
            yield from ((f"{name}.{third}", part.detach().double())
                        for third, part in zip("qkv", values.chunk(3)))


def errors(model, reference):
    """max|a-b| / max|b| of all that with_thirds names."""
    wanted = dict(with_thirds(reference))
    return {name: (values - wanted[name]).abs().max() / wanted[name].abs().max()
            for name, values in with_thirds(model)}


def fp32_errors(model, images, labels, optimizer, reference):
    """What the same run in fp32 gets wrong: with the images as they are, and at worst of all
    BATCH rotations of their order, which is the same sum in another order.
    """
    runs = []
    for turn in range(BATCH):
        after, _, _ = trained(copy.deepcopy(model).float(), images.float().roll(turn, 0),
                              labels.roll(turn, 0), optimizer)
        runs.append(errors(after, reference))
    plain = {f"fp32_error/{optimizer}/{name}": error for name, error in runs[0].items()}
    worst = {f"fp32_error_worst/{optimizer}/{name}": torch.stack([run[name] for run in runs]).max()
             for name in runs[0]}
    return plain | worst


def inputs(name, config):
    """Images [8, 3, side, side] f64 (exact in f32), and labels [8] i64 or [8, 1] f64."""
    rng = Rng(2)
    side = config["img_size"]
    images = as_stored(rng.normals(BATCH, 3, side, side))
    classes = config["num_classes"]
    if classes == 1:
        return images, torch.from_numpy(rng.uniforms(BATCH)).lt(0.5).double().reshape(BATCH, 1)
    return images, (torch.from_numpy(rng.uniforms(BATCH)) * classes).long()


def parameters(prefix, model):
    return {f"{prefix}/{name}": values.detach() for name, values in model.named_parameters()}


def forward_and_backward(model, images, labels):
    """Logits, losses and gradients; those of label smoothing where there are classes."""
    loss = gradients(model, images, labels)
    golden = {"output/logits": model(images).detach(), "output/loss": loss}
    golden |= {f"gradient/{name}": p.grad for name, p in model.named_parameters()}
    if not labels.is_floating_point():
        # A copy, as the next backward clears the gradients above.
        smoothed = copy.deepcopy(model)
        golden["output/loss_smoothed"] = gradients(smoothed, images, labels, SMOOTHING)
        golden |= {f"gradient_smoothed/{name}": p.grad for name, p in smoothed.named_parameters()}
    return golden


def after_training(model, images, labels):
    """Parameters after STEPS steps of each optimizer, with the losses on the way."""
    golden = {}
    runs = {name: dict(optimizer=name) for name in OPTIMIZERS}
    if not labels.is_floating_point():
        runs["adamw_clipped"] = dict(optimizer="adamw_eps4", max_norm=MAX_NORM)
    for name, how in runs.items():
        model_after, losses, norms = trained(model, images, labels, **how)
        golden |= parameters(f"after/{name}", model_after)
        golden |= {f"losses/{name}": losses, f"norms/{name}": norms}
        split, _, _ = trained(model, images, labels, **how, micro_batches=2)
        worst = max(errors(split, model_after).values())
        print(f"  {name}: loss {losses[0]:.6f} -> {losses[-1]:.6f}, norm {norms[0]:.3f} -> "
              f"{norms[-1]:.3f}; two micro-batches differ by {worst:.1e}")
        assert worst < 1e-9, "accumulation is not the mean of the micro-batches"
        if name == "adamw_eps8":
            golden |= fp32_errors(model, images, labels, name, model_after)
    return golden


def about(config):
    """What the file says of itself. One entry: safetensors keeps several in no fixed order."""
    return {"about": json.dumps({
        "config": config, "class_token": True, "qkv_bias": True, "layer_norm_eps": 1e-6,
        "gelu": "erf", "precision": "f64", "steps": STEPS, "batch": BATCH,
        "loss": "bce_with_logits, mean" if config["num_classes"] == 1 else "cross_entropy, mean",
        "label_smoothing": SMOOTHING, "weight_decay": f"{DECAY} on every parameter",
        "sgd": "lr 0.05, momentum 0.9, decay added to the gradient",
        "adamw_eps4": "lr 1e-3, betas 0.9 0.999, eps 1e-4, decoupled decay",
        "adamw_eps8": "lr 1e-3, betas 0.9 0.999, eps 1e-8, decoupled decay",
        "adamw_clipped": f"adamw_eps4 with gradients clipped to a norm of {MAX_NORM}",
        "made_with": {"python": platform.python_version(), "torch": torch.__version__,
                      "timm": timm.__version__, "safetensors": safetensors.__version__},
    }, sort_keys=True)}


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    for name, config in MODELS.items():
        print(name)
        model = VisionTransformer(**config).double()
        draw_weights(model, Rng(1), std_of)
        images, labels = inputs(name, config)
        golden = {"input/images": images.float(), "input/labels": labels}
        golden |= {key: values.float() for key, values in parameters("weight", model).items()}
        golden |= forward_and_backward(model, images, labels)
        golden |= after_training(model, images, labels)
        save_file({key: values.contiguous() for key, values in golden.items()},
                  folder / f"{name}.safetensors", about(config))


if __name__ == "__main__":
    main()
