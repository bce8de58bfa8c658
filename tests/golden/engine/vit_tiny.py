#!/usr/bin/env python3
"""vit_tiny.py [FOLDER]: writes vit_tiny_logits.safetensors, what timm's vit_tiny_patch16_224
says in double precision to two images, with weights that a test draws for itself.

Weights: one Rng of seed 1, in the order of the state_dict (timm_keys.txt), 0.05 times a normal
draw, plus 1 for the scales of LayerNorm, rounded to f32. Images: an Rng of seed 2, normal
draws, rounded to f32: [2, 3, 224, 224].

Ran with Python 3.11.7, torch 2.11.0+cu130 on a CPU with AVX-512 (one thread), timm 1.0.31,
safetensors 0.8.0, numpy 2.4.6.
"""

import sys
from pathlib import Path

import timm
import torch
from safetensors.torch import save_file

from draws import Rng, as_stored, draw_weights

STD = 0.05


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    torch.set_num_threads(1)
    model = timm.create_model("vit_tiny_patch16_224").double().eval()
    draw_weights(model, Rng(1), lambda name, shape: STD)
    images = as_stored(Rng(2).normals(2, 3, 224, 224))
    with torch.no_grad():
        logits = model(images)
    print(f"logits {logits.min().item():.3f} .. {logits.max().item():.3f}; the images differ by "
          f"{(logits[0] - logits[1]).abs().max().item():.3f}")
    # First and last draws, for a test to see that it draws the same.
    weights = [model.cls_token.detach().flatten()[0], model.head.bias.detach()[-1]]
    pixels = images.flatten()[[0, -1]]
    save_file({"logits": logits, "weights": torch.stack(weights), "pixels": pixels},
              folder / "vit_tiny_logits.safetensors", {"timm": timm.__version__})


if __name__ == "__main__":
    main()
