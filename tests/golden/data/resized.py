#!/usr/bin/env python3
"""resized.py [FOLDER]: writes what Pillow makes of small pictures: resized.safetensors if it is
Pillow 12 or older, which does the rows first; else resized_pillow13.safetensors, with only those
pictures that lose more than twice as many rows as columns, for which Pillow 13 does the columns
first (python-pillow/Pillow#9549; the rule was found by trying 29,003 sizes, all of which keep it).

FROM/FILTER/WIDTHxHEIGHT is the picture FROM resized; FROM is SEED,WIDTHxHEIGHT, drawn as
pictures.py says, and may have a box, +LEFT+TOP+WIDTHxHEIGHT, that is cut out first.

Ran with Python 3.11.7, Pillow 12.3.0 and 13.0.0, numpy 2.4.6, safetensors 0.8.0.
"""

import sys
from pathlib import Path

import numpy as np
import PIL
from PIL import Image
from safetensors.numpy import save_file

from pictures import picture

FILTERS = {"box": Image.Resampling.BOX, "bilinear": Image.Resampling.BILINEAR,
           "bicubic": Image.Resampling.BICUBIC}

# From what to what: down and up, by whole numbers, halves and odd ones, one side each way, to and
# from a single pixel, not at all.
SIZES = [
    ((16, 16), (8, 8)), ((16, 16), (32, 32)), ((17, 13), (9, 7)), ((17, 13), (31, 29)),
    ((64, 48), (22, 37)), ((23, 37), (64, 11)), ((33, 19), (33, 7)), ((33, 19), (12, 19)),
    ((21, 15), (21, 15)), ((1, 1), (1, 1)), ((1, 1), (5, 3)), ((1, 40), (7, 9)),
    ((40, 1), (9, 7)), ((45, 31), (1, 1)), ((45, 31), (1, 20)), ((2, 3), (70, 50)),
    ((150, 100), (3, 2)), ((257, 6), (4, 3)), ((5, 301), (6, 2)), ((97, 89), (43, 21)),
    ((30, 30), (20, 20)), ((20, 20), (30, 30)), ((63, 65), (64, 64)), ((65, 63), (64, 64)),
    ((50, 120), (37, 93)), ((50, 120), (37, 94)),
]
BOXES = [((60, 40), (7, 3, 31, 29), (16, 16)), ((60, 40), (0, 0, 60, 40), (25, 25)),
         ((60, 40), (59, 39, 1, 1), (4, 4)), ((60, 40), (29, 0, 31, 40), (40, 50)),
         ((60, 40), (0, 39, 60, 1), (13, 2)), ((60, 40), (44, 25, 16, 15), (16, 15))]


def cases():
    for seed, (size, to) in enumerate(SIZES, 1):
        yield f"{seed},{size[0]}x{size[1]}", picture(seed, *size), to
    for seed, (size, (left, top, width, height), to) in enumerate(BOXES, 101):
        name = f"{seed},{size[0]}x{size[1]}+{left}+{top}+{width}x{height}"
        yield name, picture(seed, *size).crop((left, top, left + width, top + height)), to


def is_columns_first(picture, to):
    lost_columns, lost_rows = picture.width - to[0], picture.height - to[1]
    return lost_columns != 0 and lost_rows > max(0, 2 * lost_columns)


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent)
    new = int(PIL.__version__.split(".")[0]) >= 13
    tensors = {f"{name}/{word}/{to[0]}x{to[1]}": np.asarray(one.resize(to, how))
               for name, one, to in cases() for word, how in FILTERS.items()
               if not new or is_columns_first(one, to)}
    save_file(tensors, folder / f"resized{'_pillow13' if new else ''}.safetensors")


if __name__ == "__main__":
    main()
