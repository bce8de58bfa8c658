"""The pictures of the goldens: SplitMix64 as in src/base/rng.cpp, so that a test in C++ can draw
the same ones. A third of the bytes is 0, a third 255, so that bicubic sums leave the range.
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "engine"))
from draws import Rng  # noqa: E402


def drawn(seed, width, height):
    """[height, width, 3] u8."""
    draws = Rng(seed).uniforms(width * height * 3)
    return np.clip((draws * 765).astype(np.int64) - 255, 0, 255).astype(np.uint8).reshape(
        height, width, 3)


def picture(seed, width, height):
    return Image.fromarray(drawn(seed, width, height))


def fnv1a(data):
    """FNV-1a, 64 bits, of bytes: `halfwatt::fnv1a`."""
    value = 0xCBF29CE484222325
    for byte in data:
        value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value
