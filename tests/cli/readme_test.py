"""readme_test.py PROGRAM README.md DATA

Runs what the README shows in its ```console blocks, in order, and looks for every line of the
output that it shows. "..." stands for lines left out; `$ cat FILE` shows a file to make.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile


def steps(readme):
    """(command, lines shown) of every prompt."""
    for block in re.findall(r"```console\n(.*?)```", readme, re.DOTALL):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, *shown = part.rstrip("\n").split("\n")
            yield command, [line for line in shown if line != "..."]


def main():
    program, readme, data = (pathlib.Path(each).resolve() for each in sys.argv[1:])
    missing = []
    count = 0
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(data, os.path.join(folder, "data"))
        environment = dict(os.environ, PATH=f"{program.parent}:{os.environ['PATH']}",
                           HALFWATT_STATE_DIR=os.path.join(folder, ".state"),
                           XDG_RUNTIME_DIR=folder)
        for command, shown in steps(readme.read_text()):
            made = re.fullmatch(r"cat (\S+)", command)
            if made:
                pathlib.Path(folder, made[1]).write_text("\n".join(shown) + "\n")
                continue
            count += 1
            done = subprocess.run(command, shell=True, cwd=folder, env=environment, text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            printed = done.stdout.split("\n")
            missing += [f"$ {command}\n  {line}" for line in shown if line not in printed]
    for each in missing:
        print("README.md shows what is not printed:", each)
    print(f"{count} commands of the README run, {len(missing)} lines differ")
    return 1 if missing or count < 10 else 0


sys.exit(main())
