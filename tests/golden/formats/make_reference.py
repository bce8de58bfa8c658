#!/usr/bin/env python3
"""make_reference.py FILE: makes tests/golden/formats/reference.safetensors.

Written by the reference implementation, safetensors 0.8.0 with torch 2.11.0 of PyPI: one tensor
of most dtypes, a scalar, an empty one, and a name that must be escaped.
"""

import sys

import torch
from safetensors.torch import save_file

TENSORS = {
    "blocks.0.norm.weight": torch.tensor([[1.0, -2.5], [0.1, 3e38]], dtype=torch.float32),
    "scalar": torch.tensor(0.1, dtype=torch.float64),
    "count": torch.tensor(-(2**62), dtype=torch.int64),
    "big": torch.tensor(2**64 - 1, dtype=torch.uint64),
    "ids": torch.tensor([-1, 7, 2**31 - 1], dtype=torch.int32),
    "half": torch.tensor([1.0, 65504.0], dtype=torch.float16),
    "brain": torch.tensor([1.0, -0.0], dtype=torch.bfloat16),
    "e4m3": torch.tensor([1.0, 448.0], dtype=torch.float32).to(torch.float8_e4m3fn),
    "e5m2": torch.tensor([1.0, 57344.0], dtype=torch.float32).to(torch.float8_e5m2),
    "mask": torch.tensor([True, False, True]),
    "bytes": torch.tensor([[0, 255]], dtype=torch.uint8),
    "none": torch.zeros(0, 4, dtype=torch.float32),
    "odd \"name\"\n\u00e9": torch.tensor([-128], dtype=torch.int8),
}

if __name__ == "__main__":
    save_file(TENSORS, sys.argv[1], metadata={"format": "pt"})
