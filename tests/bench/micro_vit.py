"""A ViT of two blocks of 32 features and what it learns from, in safetensors files."""

import json
import math
import struct

MODEL = "vit_micro_patch4_16"
WIDTH = 32
BLOCK = {"norm1.weight": [WIDTH], "norm1.bias": [WIDTH], "attn.qkv.weight": [3 * WIDTH, WIDTH],
         "attn.qkv.bias": [3 * WIDTH], "attn.proj.weight": [WIDTH, WIDTH],
         "attn.proj.bias": [WIDTH], "norm2.weight": [WIDTH], "norm2.bias": [WIDTH],
         "mlp.fc1.weight": [4 * WIDTH, WIDTH], "mlp.fc1.bias": [4 * WIDTH],
         "mlp.fc2.weight": [WIDTH, 4 * WIDTH], "mlp.fc2.bias": [WIDTH]}


def shapes(classes):
    """Name -> shape of all parameters."""
    return {"cls_token": [1, 1, WIDTH], "pos_embed": [1, 17, WIDTH],
            "patch_embed.proj.weight": [WIDTH, 3, 4, 4], "patch_embed.proj.bias": [WIDTH],
            **{f"blocks.{at}.{name}": shape for at in (0, 1) for name, shape in BLOCK.items()},
            "norm.weight": [WIDTH], "norm.bias": [WIDTH], "head.weight": [classes, WIDTH],
            "head.bias": [classes]}


def write(path, tensors):
    """Writes a safetensors file; `tensors` has shape and the one number of all elements, or a list
    of them all: I64 where these are whole numbers, else F32."""
    header, data = {}, b""
    for name, (shape, numbers) in tensors.items():
        if not isinstance(numbers, list):
            numbers = [numbers] * math.prod(shape)
        whole = all(isinstance(number, int) for number in numbers)
        more = struct.pack(f"<{len(numbers)}{'q' if whole else 'f'}", *numbers)
        header[name] = {"dtype": "I64" if whole else "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(more)]}
        data += more
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read(path):
    """Name -> numbers of a file of F32."""
    raw = path.read_bytes()
    begin = 8 + struct.unpack_from("<Q", raw)[0]
    header = json.loads(raw[8:begin])
    header.pop("__metadata__", None)
    return {name: list(struct.unpack_from(f"<{math.prod(entry['shape'])}f", raw,
                                          begin + entry["data_offsets"][0]))
            for name, entry in header.items()}


def assert_refused(test, ran, said):
    """One line that says so, and status 2."""
    test.assertEqual(ran.returncode, 2)
    test.assertIn(said, ran.stderr)
    test.assertEqual(ran.stderr.count("\n"), 1)
