#!/usr/bin/env python3
"""safetensors_seeds.py FOLDER: writes the inputs that fuzzing the safetensors header began with.

Each is a small file of the format, or one that is broken in one way.
"""

import struct
import sys
from pathlib import Path

BYTE = b'"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}'


def framed(header, body=b"", length=None):
    return struct.pack("<Q", len(header) if length is None else length) + header + body


def tensor(dtype=b'"U8"', shape=b"[1]", offsets=b"[0,1]", rest=b""):
    return b'{"a":{"dtype":%s,"shape":%s,"data_offsets":%s%s}}' % (dtype, shape, offsets, rest)


DTYPES = ["BOOL", "U8", "I8", "F8_E5M2", "F8_E4M3", "I16", "U16", "F16", "BF16", "I32", "U32",
          "F32", "F64", "I64", "U64"]
ALL = b"{%s}" % b",".join(b'"%d":{"dtype":"%s","shape":[0,3],"data_offsets":[0,0]}'
                          % (i, name.encode()) for i, name in enumerate(DTYPES))

SEEDS = {
    "empty": framed(b"{}"),
    "one": framed(b"{%s}" % BYTE, b"x"),
    "padded": framed(b" {} \n\t  "),
    "all_dtypes": framed(ALL),
    "scalar": framed(tensor(b'"F32"', b"[]", b"[0,4]"), bytes(4)),
    "two_swapped": framed(b'{"b":{"dtype":"F32","shape":[1,1],"data_offsets":[1,5]},%s}' % BYTE,
                          bytes(5)),
    "metadata": framed(b'{"__metadata__":{"format":"pt","":""},%s}' % BYTE, b"x"),
    "unknown_field": framed(tensor(rest=b',"x":{"y":[1,{}],"z":null}'), b"x"),
    "names": framed(b'{"\\u0000\\n":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},'
                    b'"":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"\xc3\xa9":'
                    b'{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}'),
    "six_extents": framed(tensor(shape=b"[1,1,1,1,1,1]"), b"x"),
    "nothing": b"",
    "short": b"\x02",
    "length_2_63": framed(b"{}", length=1 << 63),
    "length_beyond": framed(b"{}", length=60),
    "openasr": bytes.fromhex("3c00000000ffffff") + b'{"a":{"dtype":"F32"}}',
    "body_ff": framed(b"\xff"),
    "body_brace": framed(b"{"),
    "bom": framed(b"\xef\xbb\xbf{}"),
    "nul_behind": framed(b"{}\0\0"),
    "not_utf8": framed(b'{"\xff":{}}'),
    "depth_bomb": framed(b"[" * 200),
    "depth_bomb_in_field": framed(tensor(rest=b',"x":' + b"[" * 200)),
    "duplicate": framed(b"{%s,%s}" % (BYTE, BYTE), b"x"),
    "duplicate_field": framed(tensor(rest=b',"dtype":"U8"'), b"x"),
    "duplicate_metadata": framed(b'{"__metadata__":{},"__metadata__":{}}'),
    "metadata_number": framed(b'{"__metadata__":{"a":1}}'),
    "hole": framed(tensor(offsets=b"[1,2]"), b"xx"),
    "overlap": framed(b'{"b":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},%s}' % BYTE, b"xx"),
    "trailing": framed(b"{%s}" % BYTE, b"xx"),
    "missing": framed(b"{%s}" % BYTE),
    "overflow": framed(tensor(shape=b"[2,18446744073709551614]")),
    "negative": framed(tensor(shape=b"[-1]"), b"x"),
    "fraction": framed(tensor(shape=b"[1.0]"), b"x"),
    "exponent": framed(tensor(shape=b"[1e0]"), b"x"),
    "offsets_back": framed(tensor(offsets=b"[1,0]"), b"x"),
    "unknown_dtype": framed(tensor(b'"C64"', b"[1]", b"[0,8]"), bytes(8)),
}


def main():
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in SEEDS.items():
        (folder / name).write_bytes(data)


if __name__ == "__main__":
    main()
