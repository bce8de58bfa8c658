#!/usr/bin/env python3
"""timm_keys.py [FOLDER]: writes timm_keys.txt, the names, dtypes and shapes of what timm's
Vision Transformers keep in their state_dict, in its order. The blocks of a model have all the
same tensors, so they are told once: `blocks.{0..11}.` stands for twelve.

Ran with Python 3.11.7, torch 2.11.0+cu130, timm 1.0.31.
"""

import re
import sys
from pathlib import Path

import timm
import torch

MODELS = [(name, {}) for name in (
    "vit_tiny_patch16_224", "vit_small_patch16_224", "vit_base_patch16_224",
    "vit_large_patch16_224", "vit_base_patch32_224", "vit_base_patch16_384",
    "vit_large_patch16_384")]
MODELS += [(f"vit_{size}_patch16_224", changes) for size in ("tiny", "small") for changes in (
    {"num_classes": 1}, {"global_pool": "avg"}, {"num_classes": 1, "global_pool": "avg"})]

DTYPES = {torch.float32: "f32"}


def described(name, changes):
    """A headline with the totals, then a line for each tensor."""
    with torch.device("meta"):
        state = timm.create_model(name, **changes).state_dict()
    rows = [(key, f"{DTYPES[values.dtype]} {'x'.join(map(str, values.shape))}")
            for key, values in state.items()]
    block = re.compile(r"blocks\.(\d+)\.(.*)")
    depth = 1 + max(int(found[1]) for key, _ in rows if (found := block.match(key)))
    first = [(key, row) for key, row in rows if key.startswith("blocks.0.")]
    folded = []
    for key, row in rows:
        found = block.match(key)
        if not found:
            folded.append(f"{key} {row}")
        elif found[1] == "0":
            folded.append(f"blocks.{{0..{depth - 1}}}.{found[2]} {row}")
        else:
            assert (f"blocks.0.{found[2]}", row) in first, key
    assert len(rows) == len(folded) + (depth - 1) * len(first)
    count = sum(values.numel() for values in state.values())
    arguments = "".join(f" {key}={value}" for key, value in changes.items())
    return "\n".join([f"{name}{arguments}: {len(rows)} tensors, {count} parameters", *folded, ""])


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    text = "\n".join(described(name, changes) for name, changes in MODELS)
    (folder / "timm_keys.txt").write_text(f"# timm {timm.__version__}\n\n{text}", "utf-8")


if __name__ == "__main__":
    main()
