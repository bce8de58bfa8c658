#!/usr/bin/env python3
"""shares_no_code.py NM ISA OBJECT...: every symbol that an object defines and the linker may
merge with others' (weak, unique) is of the ISA's namespace.

The linker keeps one copy of an inline function for the whole program. If that came from a file
compiled for AVX-512, the program would stop on machines without it, in code that has nothing to
do with kernels.
"""

import subprocess
import sys


def main():
    nm, isa, *objects = sys.argv[1:]
    lines = subprocess.run([nm, "--defined-only", *objects],
                           check=True, capture_output=True, text=True).stdout.splitlines()
    symbols = [line.split()[-2:] for line in lines if len(line.split()) == 3]
    mangled = f"{len(isa)}{isa}"
    shared = [name for kind, name in symbols if kind in "WVu" and mangled not in name]
    for name in shared:
        print(f"{name}: may replace the rest of the program's copy")
    if not any(mangled in name for _, name in symbols):
        print(f"no symbol of {isa} in {objects}: is this its object?")
        return 1
    return 1 if shared else 0


if __name__ == "__main__":
    sys.exit(main())
