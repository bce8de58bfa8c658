#!/usr/bin/env python3
"""decode.py [FOLDER]: writes small pictures of every kind that is decoded, each NAME.jpg or
NAME.png with NAME.ppm beside it, what Pillow makes of it under our policy.

The policy is Pillow's convert("RGB") after ImageOps.exif_transpose, with two differences: what
is transparent is pasted over white, and 16 bits are v * 255 / 65535 rounded (numpy, here).

Ran with Pillow 13.0.0 (libjpeg-turbo 3.2.0) and numpy 2.4.6.
"""

import io
import struct
import sys
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageOps

WIDTH, HEIGHT = 19, 13  # no multiple of a JPEG's blocks, nor of a byte's bits


def picture(channels, high=256, seed=0):
    """A ramp with noise: [13, 19, channels] of 0 to high - 1."""
    rng = np.random.default_rng(seed)
    y, x, c = np.mgrid[0:HEIGHT, 0:WIDTH, 0:channels]
    ramp = (x / WIDTH + y / HEIGHT + c / channels) % 1
    noisy = ramp + rng.normal(0, 0.08, ramp.shape)
    return np.clip(noisy * high, 0, high - 1).astype(np.uint16 if high > 256 else np.uint8)


def encoded(image, kind, **options):
    into = io.BytesIO()
    image.save(into, kind, **options)
    return into.getvalue()


def jpeg(array_or_image, **options):
    image = array_or_image
    if isinstance(image, np.ndarray):
        image = Image.fromarray(image.squeeze())
    return encoded(image, "JPEG", **{"quality": 85, **options})


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(depth, colour, rows, *chunks):
    """Rows of packed bytes as a PNG; `chunks` go before its data."""
    header = struct.pack(">IIBBBBB", WIDTH, len(rows), depth, colour, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + bytes(row) for row in rows), 9)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunks) +
            chunk(b"IDAT", data) + chunk(b"IEND", b""))


def packed(values, depth):
    """[13, 19] values of `depth` bits as a PNG's rows."""
    bits = (values[..., None] >> np.arange(depth - 1, -1, -1)) & 1
    return [np.packbits(row.reshape(-1)) for row in bits.astype(np.uint8)]


def wide(values):
    """[13, 19, C] values of 16 bits as a PNG's rows."""
    return [row.astype(">u2").tobytes() for row in values]


def exif(orientation, order=">", kind=3):
    mark, value = (b"MM", orientation << 16) if order == ">" else (b"II", orientation)
    if kind == 4:
        value = orientation
    return mark + struct.pack(order + "HIHHHIII", 42, 8, 1, 0x112, kind, 1, value, 0)


PALETTE = np.random.default_rng(7).integers(0, 256, (256, 3), dtype=np.uint8)


def jpegs():
    colour, grey = picture(3), picture(1)
    inks = Image.frombytes("CMYK", (WIDTH, HEIGHT), picture(4).tobytes())
    yield "grey", jpeg(grey)
    yield "444", jpeg(colour, subsampling=0)
    yield "422", jpeg(colour, subsampling=1)
    yield "420", jpeg(colour, subsampling=2)
    yield "rgb", jpeg(colour, keep_rgb=True)
    yield "progressive", jpeg(colour, progressive=True)
    yield "progressive_grey", jpeg(grey, progressive=True)
    yield "restarts", jpeg(colour, restart_marker_blocks=1)
    cmyk = jpeg(inks)
    yield "cmyk", cmyk
    yield "cmyk_progressive", jpeg(inks, progressive=True)
    # Adobe's marker ends in the transform: 0 is CMYK, 2 is YCCK.
    adobe = cmyk.index(b"Adobe") + 11
    assert cmyk[adobe] == 0
    yield "ycck", cmyk[:adobe] + b"\x02" + cmyk[adobe + 1:]
    for orientation in range(1, 9):
        order = ">" if orientation % 2 else "<"
        yield f"turned_{orientation}", jpeg(colour, exif=b"Exif\0\0" + exif(orientation, order))
    yield "turned_long", jpeg(colour, exif=b"Exif\0\0" + exif(6, ">", 4))


def pngs():
    """Name, file and, where Pillow's way is not ours, the expected pixels."""
    for depth in (1, 2, 4):
        grey = picture(1, 1 << depth)[..., 0]
        yield f"grey{depth}", png(depth, 0, packed(grey, depth)), None
        palette = chunk(b"PLTE", PALETTE[:1 << depth].tobytes())
        yield f"palette{depth}", png(depth, 3, packed(grey, depth), palette), None
    grey, alpha = picture(1), picture(1, seed=5)
    alpha[0, :3] = [[0], [255], [128]]
    yield "grey8", png(8, 0, grey), None
    yield "grey8_alpha", png(8, 4, np.concatenate([grey, alpha], -1).reshape(HEIGHT, -1)), None
    key = int(grey[3, 3, 0])
    yield "grey8_key", png(8, 0, grey, chunk(b"tRNS", struct.pack(">H", key))), None
    palette = chunk(b"PLTE", PALETTE.tobytes())
    yield "palette8", png(8, 3, grey, palette), None
    some = chunk(b"tRNS", PALETTE[:200, 0].tobytes())  # the other entries are opaque
    yield "palette8_alpha", png(8, 3, grey, palette, some), None
    colour = picture(3)
    yield "rgb8", png(8, 2, colour.reshape(HEIGHT, -1)), None
    key = struct.pack(">HHH", *colour[3, 3].tolist())
    yield "rgb8_key", png(8, 2, colour.reshape(HEIGHT, -1), chunk(b"tRNS", key)), None
    rgba = np.concatenate([colour, alpha], -1)
    yield "rgb8_alpha", png(8, 6, rgba.reshape(HEIGHT, -1)), None
    turned = chunk(b"eXIf", exif(6))
    yield "rgb8_turned", png(8, 2, colour.reshape(HEIGHT, -1), turned), None
    yield from wide_pngs()


def eight(values):
    """v * 255 / 65535, rounded; 65535 is odd times odd, so that no half can come up."""
    return (values.astype(np.int64) * 255 * 2 + 65535) // (2 * 65535)


def wide_pngs():
    grey, colour, alpha = picture(1, 65536), picture(3, 65536), picture(1, 65536, seed=5)
    yield "grey16", png(16, 0, wide(grey)), eight(grey).repeat(3, -1)
    yield "rgb16", png(16, 2, wide(colour)), eight(colour)
    a, c = eight(alpha), eight(colour)
    over = ((c * a + 255 * (255 - a)) * 2 + 255) // 510
    yield "rgb16_alpha", png(16, 6, wide(np.concatenate([colour, alpha], -1))), over
    # Of two values of which only one is the key, and both have its high byte.
    near = grey.copy()
    near[0, :2, 0] = [0x1234, 0x1235]
    expected = eight(near).repeat(3, -1)
    expected[near[..., 0] == 0x1234] = 255
    yield "grey16_key", png(16, 0, wide(near), chunk(b"tRNS", b"\x12\x34")), expected


def decoded(data):
    image = ImageOps.exif_transpose(Image.open(io.BytesIO(data)))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        white = Image.new("RGB", image.size, (255, 255, 255))
        white.paste(image, mask=image.getchannel("A"))
        return white
    return image.convert("RGB")


def main():
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).with_suffix(""))
    folder.mkdir(exist_ok=True)
    for name, data in jpegs():
        (folder / f"{name}.jpg").write_bytes(data)
        decoded(data).save(folder / f"{name}.ppm")
    for name, data, expected in pngs():
        (folder / f"{name}.png").write_bytes(data)
        image = decoded(data) if expected is None else Image.fromarray(expected.astype(np.uint8))
        image.save(folder / f"{name}.ppm")


if __name__ == "__main__":
    main()
