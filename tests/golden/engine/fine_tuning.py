#!/usr/bin/env python3
"""fine_tuning.py [FOLDER]: writes what timm does to a model that is fine-tuned.

positions.safetensors: position embeddings of one size and resample_abs_pos_embed() of them to
another. layer_decay.txt: the share of the rate and the decay of every parameter, as
param_groups_layer_decay() deals them out.

Ran with Python 3.11.7, torch 2.11.0+cu130, timm 1.0.31.
"""

import sys
from pathlib import Path

import timm
import torch
from safetensors.torch import save_file
from timm.layers import resample_abs_pos_embed
from timm.optim import param_groups_layer_decay

# Sides in patches: enlarged, shrunk, by a whole factor and not, and to a single patch.
SIDES = [(14, 24), (24, 14), (4, 8), (7, 2), (3, 1), (1, 3), (5, 6)]
WIDTH = 6
MODELS = [("vit_tiny_patch16_224", {}), ("vit_tiny_patch16_224", {"global_pool": "avg"})]


def positions():
    torch.manual_seed(1)
    tensors = {}
    for old, new in SIDES:
        grid = torch.randn(1, 1 + old * old, WIDTH)
        tensors[f"{old}to{new}/from"] = grid
        tensors[f"{old}to{new}/to"] = resample_abs_pos_embed(grid, [new, new]).contiguous()
    return tensors


def layer_decay(name, changes):
    model = timm.create_model(name, **changes)
    names = {id(values): key for key, values in model.named_parameters()}
    rows = {}
    for group in param_groups_layer_decay(model, weight_decay=0.05, layer_decay=0.75,
                                          no_weight_decay_list=model.no_weight_decay()):
        for values in group["params"]:
            rows[names[id(values)]] = (group["lr_scale"], group["weight_decay"])
    arguments = "".join(f" {key}={value}" for key, value in changes.items())
    lines = [f"{key} {rows[key][0]!r} {rows[key][1]}" for key in model.state_dict()]
    return "\n".join([f"{name}{arguments}", *lines, ""])


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    save_file(positions(), folder / "positions.safetensors")
    text = "\n".join(layer_decay(name, changes) for name, changes in MODELS)
    (folder / "layer_decay.txt").write_text(f"# timm {timm.__version__}\n\n{text}", "utf-8")


if __name__ == "__main__":
    main()
