#!/usr/bin/env python3
"""photos.py PACKAGES FOLDER: JPEGs to try beside_pillow.py with, of the sample photos in the
packages scikit-learn and scikit-image that lie unpacked in PACKAGES. Quality 90, 4:2:0: six of
500x375, as ImageNet's are on average, and two of 2000x1500 that are mosaics of these, so that
their detail is as fine as a photo's and not that of an enlargement. Needs Pillow.
"""

import pathlib
import random
import sys

from PIL import Image, ImageOps

SIZE = (500, 375)
TILES = 4
PHOTOS = ("sklearn/datasets/images/china.jpg", "sklearn/datasets/images/flower.jpg",
          "skimage/data/astronaut.png", "skimage/data/coffee.png",
          "skimage/data/motorcycle_left.png", "skimage/data/rocket.jpg")


def mosaic(photos, seed):
    draw = random.Random(seed)
    made = Image.new("RGB", (TILES * SIZE[0], TILES * SIZE[1]))
    for tile in range(TILES * TILES):
        photo = draw.choice(photos)
        photo = ImageOps.mirror(photo) if draw.random() < 0.5 else photo
        made.paste(photo, (tile % TILES * SIZE[0], tile // TILES * SIZE[1]))
    return made


def main():
    packages, folder = map(pathlib.Path, sys.argv[1:3])
    folder.mkdir(parents=True, exist_ok=True)
    photos = [ImageOps.fit(Image.open(packages / name).convert("RGB"), SIZE) for name in PHOTOS]
    made = {f"small-{pathlib.Path(name).stem}": photo for name, photo in zip(PHOTOS, photos)}
    made |= {f"large-{seed}": mosaic(photos, seed) for seed in (1, 2)}
    for name, image in made.items():
        image.save(folder / f"{name}.jpg", quality=90)


if __name__ == "__main__":
    main()
