#!/usr/bin/env python3
"""autocast_edges.py FILE: writes the dtypes on the edges of timm's Vision Transformer under
PyTorch's autocast for CUDA, forward and backward. Needs an NVIDIA GPU, PyTorch and timm.
FILE names the versions and the card it ran with.

    autocast_edges.py --try cpu   prints the same table for the CPU's autocast, to try the script:
                                  that has another list of operations, so it is no golden

Tried with Python 3.11.7, torch 2.11.0+cu130, timm 1.0.31.
"""

import sys
from pathlib import Path

import timm
import torch
import torch.nn.functional as F
from timm.models.vision_transformer import VisionTransformer

BATCH, SIDE = 4, 16
NAMES = {torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16", torch.float64: "f64"}

# The edges of a block: module, whether its input or its output, and what we call that edge.
BLOCK = [("norm1", "output", "norm1"), ("attn.qkv", "output", "qkv"),
         ("attn.proj", "input", "attention"), ("attn.proj", "output", "proj"),
         ("norm2", "input", "residual of attention"), ("norm2", "output", "norm2"),
         ("mlp.fc1", "output", "fc1"), ("mlp.act", "output", "gelu"),
         ("mlp.fc2", "output", "fc2"), ("", "output", "residual of mlp")]
AROUND = [("patch_embed.proj", "output", "patch_embed.proj"),
          ("blocks.0", "input", "tokens with positions")]
BEHIND = [("norm", "output", "norm"), ("fc_norm", "input", "pooled"),
          ("fc_norm", "output", "fc_norm"), ("head", "output", "head")]


def edges_of(model):
    """The rows of the table, in the order of the forward pass."""
    blocks = [(f"blocks.{i}{'.' if module else ''}{module}", side, f"blocks.{i} {edge}")
              for i in range(len(model.blocks)) for module, side, edge in BLOCK]
    skipped = "fc_norm" if model.global_pool == "token" else "norm"
    return AROUND + blocks + [row for row in BEHIND if row[2] != skipped]


class Recorder:
    """Dtypes of edges as hooks see them: {edge: [forward, gradient]}."""

    def __init__(self, model):
        self.seen = {}
        for module, side, edge in edges_of(model):
            submodule = model.get_submodule(module)
            if side == "output":
                submodule.register_forward_hook(
                    lambda _, args, out, edge=edge: self.see(edge, out))
            else:
                submodule.register_forward_pre_hook(
                    lambda _, args, edge=edge: self.see(edge, args[0]))

    def see(self, edge, values):
        """Notes the dtype of `values` now, and of its gradient once there is one."""
        assert edge not in self.seen, edge
        self.seen[edge] = [values.dtype, None]

        def see_gradient(gradient):
            self.seen[edge][1] = gradient.dtype
        values.register_hook(see_gradient)


def recorded(device, low, pool, classes):
    """One training step's forward and backward; the lines of its table."""
    torch.manual_seed(1)
    model = VisionTransformer(img_size=SIDE, patch_size=4, embed_dim=32, depth=2, num_heads=2,
                              num_classes=classes, global_pool=pool).to(device)
    assert all(block.attn.fused_attn for block in model.blocks), "wanted: fused attention"
    recorder = Recorder(model)
    images = torch.randn(BATCH, 3, SIDE, SIDE, device=device)
    with torch.autocast(device, dtype=low):
        logits = model(images)
        if classes == 1:
            loss = F.binary_cross_entropy_with_logits(logits, torch.ones(BATCH, 1, device=device))
        else:
            loss = F.cross_entropy(logits, torch.zeros(BATCH, dtype=torch.long, device=device))
        recorder.see("loss", loss)
    loss.backward()
    lines = [f"{edge}: {NAMES[forward]}, gradient {NAMES[gradient]}"
             for edge, (forward, gradient) in recorder.seen.items()]
    assert list(recorder.seen) == [edge for _, _, edge in edges_of(model)] + ["loss"]
    lines += [f"parameter {name}: {NAMES[values.dtype]}, gradient {NAMES[values.grad.dtype]}"
              for name, values in model.named_parameters()]
    return lines


def table(device):
    """Both low precisions, the class token with cross entropy and the mean of patches with BCE."""
    parts = []
    for low in (torch.float16, torch.bfloat16):
        for pool, classes in (("token", 10), ("avg", 1)):
            parts.append("\n".join([f"[{NAMES[low]}, {pool}, {classes} classes]",
                                    *recorded(device, low, pool, classes), ""]))
    return "\n".join(parts)


def main():
    if sys.argv[1:] == ["--try", "cpu"]:
        print(table("cpu"))
    elif len(sys.argv) != 2 or sys.argv[1].startswith("-"):
        sys.exit(__doc__)
    elif not torch.cuda.is_available():
        sys.exit("autocast_edges.py: found no GPU that PyTorch can use, and only one can tell")
    else:
        head = (f"# torch {torch.__version__}, timm {timm.__version__}, "
                f"{torch.cuda.get_device_name()}\n\n")
        Path(sys.argv[1]).write_text(head + table("cuda"), "utf-8")


if __name__ == "__main__":
    main()
