#!/usr/bin/env python3
"""record.py pipe|pty FILE COMMAND...: writes what COMMAND prints, stdout and stderr together, to
FILE, byte for byte as a reader of that pipe or terminal gets it.
"""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios


def main():
    way, file, command = sys.argv[1], sys.argv[2], sys.argv[3:]
    reader, writer = pty.openpty() if way == "pty" else os.pipe()
    if way == "pty":
        fcntl.ioctl(writer, termios.TIOCSWINSZ, struct.pack("4H", 24, 120, 0, 0))
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=writer, stderr=writer)
    os.close(writer)
    with open(file, "wb") as out:
        while True:
            try:
                data = os.read(reader, 65536)
            except OSError:  # how a terminal says that its last writer is gone
                break
            if not data:
                break
            out.write(data)
    return process.wait()


if __name__ == "__main__":
    sys.exit(main())
