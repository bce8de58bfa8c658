#!/usr/bin/env python3
"""picture_seeds.py FOLDER: writes the inputs that fuzzing the decoders and EXIF began with, in
FOLDER/decode_jpeg, FOLDER/decode_png and FOLDER/exif.

Small pictures of tests/golden/data/decode, and each way in which such a file is known to break.
"""

import struct
import sys
import zlib
from pathlib import Path

GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "data" / "decode"
EXIF = b"MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0"


def golden(name):
    return (GOLDEN / name).read_bytes()


def jpegs():
    for kind in ("grey", "444", "420", "progressive", "restarts", "cmyk", "ycck", "turned_6"):
        yield kind, golden(f"{kind}.jpg")
    whole, slow = golden("420.jpg"), golden("progressive.jpg")
    yield "cut", whole[:len(whole) * 6 // 10]
    yield "cut_progressive", slow[:len(slow) * 6 // 10]
    yield "cut_closed", whole[:len(whole) * 9 // 10] + b"\xff\xd9"
    frame = whole.index(b"\xff\xc0")
    yield "header_only", whole[:frame + 19]
    yield "height_lie", whole[:frame + 5] + b"\x01\xdc" + whole[frame + 7:]
    yield "twelve_bits", whole[:frame + 4] + b"\x0c" + whole[frame + 5:]
    yield "lossless", whole[:frame + 1] + b"\xc3" + whole[frame + 2:]
    yield "arithmetic", whole[:frame + 1] + b"\xc9" + whole[frame + 2:]
    scan = slow.index(b"\xff\xda")
    one = slow[scan:slow.index(b"\xff\xc4", scan)]
    yield "many_scans", slow[:-2] + one * 20 + b"\xff\xd9"
    yield "junk_behind", whole + b"junk"
    yield "junk_between", whole[:frame] + b"junk" + whole[frame:]
    yield "nothing", b""


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width, height, depth, colour, interlaced, data, *chunks):
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, interlaced)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunks) +
            chunk(b"IDAT", zlib.compress(data, 9)) + chunk(b"IEND", b""))


def pngs():
    for kind in ("grey1", "grey16_key", "palette2", "palette8_alpha", "rgb8_key", "rgb8_turned",
                 "rgb16_alpha"):
        yield kind, golden(f"{kind}.png")
    whole = golden("rgb8.png")
    at = whole.index(b"IDAT")
    yield "cut", whole[:len(whole) * 6 // 10]
    yield "no_end", whole[:-12]
    yield "wrong_sum", whole[:at + 10] + bytes([whole[at + 10] ^ 1]) + whole[at + 11:]
    yield "no_pixels", whole[:at - 4] + whole[-12:]
    yield "interlaced", png(2, 2, 8, 6, 1, b"\0abcd\0efgh\0ijklmnop")
    yield "no_palette", png(2, 1, 8, 3, 0, b"\0\0\1")
    yield "short_palette", png(2, 1, 8, 3, 0, b"\0\0\1", chunk(b"PLTE", b"abc"))
    yield "few_rows", png(2, 9, 8, 0, 0, b"\0ab")
    yield "many_pixels", png(30000, 30000, 1, 0, 0, b"")
    text = chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(100000), 9))
    yield "text_bomb", png(1, 1, 8, 0, 0, b"\0a", text, chunk(b"eXIf", EXIF))


def exifs():
    yield "big", EXIF
    yield "prefixed", b"Exif\0\0" + EXIF
    yield "little", struct.pack("<2sHIHHHIII", b"II", 42, 8, 1, 0x112, 3, 1, 8, 0)
    yield "long", struct.pack(">2sHIHHHIII", b"MM", 42, 8, 1, 0x112, 4, 1, 3, 0)
    yield "offset", EXIF[:4] + b"\xff" * 4 + EXIF[8:]
    yield "count", EXIF[:8] + b"\xff\xff" + EXIF[10:]
    yield "type", EXIF[:12] + b"\0\x63" + EXIF[14:]
    yield "nothing", b""


def main():
    for folder, seeds in (("decode_jpeg", jpegs), ("decode_png", pngs), ("exif", exifs)):
        into = Path(sys.argv[1]) / folder
        into.mkdir(parents=True, exist_ok=True)
        for name, data in seeds():
            (into / name).write_bytes(data)


if __name__ == "__main__":
    main()
