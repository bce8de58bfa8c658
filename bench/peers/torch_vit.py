#!/usr/bin/env python3
"""torch_vit.py --rows NAME... --append FILE [--device gpu:0] [--variants eager,compiled] [...]:
halfwatt's ViT beside PyTorch's, on the same weights and images, in one run.
torch_vit.py --list: the names of all rows, the most wanted first.
torch_vit.py --table FILE: what was measured, as markdown.
torch_vit.py --check FILE DOC: whether the table of DOC, between its markers, is that of FILE.

A row is measured with all its variants, each in a process of its own that stays: in turns, a window
at a time, the order turned from round to round, after a warm-up of each. A variant whose numbers
are not finite is dead and has no figure; a row whose variants do not compute the same is refused.
Fails where a row has no comparison.

Needs torch and timm; nvidia-ml-py or nvidia-smi, or watts are unknown."""

import argparse
import datetime
import importlib.util
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading

import torch_vit_rows as rows
from torch_vit_meter import Meter

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
VARIANT = HERE / "torch_vit_variant.py"
PROGRAM = ROOT / "build/release/bin/peers/bench_vit_rows"
FIRST_LIMIT_S = 1200  # max-autotune tries hundreds of kernels
WINDOW_LIMIT_S = 120  # beside ten times its length


class Failed(Exception):
    """Why a variant has no figures, in its own last words."""


class Child:
    """A process that answers lines: one variant of a row."""

    def __init__(self, command):
        self._errors = tempfile.TemporaryFile()  # pylint: disable=consider-using-with
        # NVML's numbers are in the order of the bus; CUDA's are to be the same.
        environment = dict(os.environ, CUDA_DEVICE_ORDER="PCI_BUS_ID")
        self._process = subprocess.Popen(  # pylint: disable=consider-using-with
            [str(word) for word in command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self._errors, text=True, env=environment)

    def ask(self, line, limit_s):
        """Its answer to a line. Raises Failed where it ends, or says nothing for so long."""
        silent = threading.Timer(limit_s, self._process.kill)
        silent.start()
        try:
            self._process.stdin.write(line + "\n")
            self._process.stdin.flush()
            answer = self._process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            silent.cancel()
        if not answer:
            raise Failed(self._last_words())
        return json.loads(answer)

    def close(self):
        """Ends it, which gives its memory back."""
        self._process.kill()
        self._process.communicate()
        self._errors.close()

    def _last_words(self):
        status = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().split("\n")
        return lines[-1][:300] or f"ended with status {status}"


def turned(names, turn):
    shift = turn % len(names)
    return names[shift:] + names[:shift]


def measure(children, meter, options):
    """Windows of all children in turns, after a warm-up of each; and who failed, with the reason.
    One that fails is not asked again."""
    failed = {}
    windows = []

    def window(name, seconds):
        if name in failed:
            return None
        try:
            answer = children[name].ask(f"window {seconds}", WINDOW_LIMIT_S + 10 * seconds)
        except Failed as reason:
            failed[name] = str(reason)
            return None
        return {"variant": name, **answer, **meter.take(answer["begin_s"], answer["end_s"])}

    for name in children:
        window(name, options.warm_up)
    for turn in range(options.rounds):
        for name in turned(list(children), turn):
            done = window(name, options.seconds)
            if done:
                windows.append({"round": turn, **done})
    return windows, failed


def firsts(children):
    """What the first step of each gave; and who failed, with the reason. One after the other: a
    first step that is compiled has all cores, and any has all of the card's memory."""
    answers = {}
    failed = {}
    for name, child in children.items():
        try:
            answers[name] = child.ask("first", FIRST_LIMIT_S)
        except Failed as reason:
            failed[name] = str(reason)
    return answers, failed


def run(row, commands, meter, options):
    """The record of a row: `commands` has the command of each variant, ours among them."""
    children = {name: Child(command) for name, command in commands.items()}
    windows = []
    try:
        answers, failed = firsts(children)
        first = {name: answer["first"] for name, answer in answers.items()}
        refused = rows.disagreement(row.precision, first)
        if not refused and rows.OURS in first and len(first) > 1:
            windows, later = measure({name: children[name] for name in first}, meter, options)
            failed.update(later)
    finally:
        for child in children.values():
            child.close()
    versions = dict(meter.about)
    for answer in answers.values():
        versions.update(answer["versions"])
    return {"row": rows.name_of(row), **row._asdict(), "model": options.model,
            "device": options.device, "peer_precision": rows.peer_precision(row),
            "measured": datetime.datetime.now(datetime.timezone.utc).isoformat("T", "seconds"),
            "commit": options.commit, "versions": versions, "warm_up_s": options.warm_up,
            "window_s": options.seconds, "rounds": options.rounds, "refused": refused,
            "variants": {name: {"failed": failed[name]} if name in failed
                         else {"first": first[name]} for name in commands},
            "windows": windows}


def commands_of(row, files, options):
    """Variant -> its command."""
    def words(precision):
        return [options.model, row.mode, precision, row.batch, options.device, *files]

    peers = [name for name in rows.peers_of(row) if name in options.variants]
    commands = {name: [sys.executable, VARIANT, name, *words(rows.peer_precision(row))]
                for name in peers}
    commands[rows.OURS] = [*options.program, *words(row.precision)]
    return commands


def make_files(folder, row, options):
    """First weights and a batch, which both sides read."""
    files = [os.path.join(folder, "weights.safetensors"),
             os.path.join(folder, f"batch{row.batch}.safetensors")]
    if not os.path.exists(files[1]):
        subprocess.run([sys.executable, VARIANT, "make", options.model, str(row.batch), *files],
                       check=True)
    return files


def measure_rows(chosen, options):
    """Measures rows and appends each to the file as it ends; whether all have a comparison."""
    card = re.fullmatch(r"gpu:(\d+)", options.device)
    meter = Meter(int(card[1]) if card else None)
    good = True
    try:
        with tempfile.TemporaryDirectory() as folder:
            for row in chosen:
                files = make_files(folder, row, options)
                record = run(row, commands_of(row, files, options), meter, options)
                with open(options.append, "a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
                print(rows.line_of(row, record), flush=True)
                good = good and rows.ratio(record) is not None
    finally:
        meter.close()
    return good


def commit_here():
    """The commit of this folder, with a + where it was changed."""
    def git(*words):
        done = subprocess.run(["git", "-C", ROOT, *words], capture_output=True, text=True,
                              check=False)
        return done.stdout.strip() if done.returncode == 0 else None

    commit = git("rev-parse", "--short=12", "HEAD")
    changed = "+" if git("status", "--porcelain", "--untracked-files=no") else ""
    return commit + changed if commit else "unknown"


def check_options(options):
    """Raises BadInput."""
    if not re.fullmatch(r"cpu|gpu:\d{1,4}", options.device):
        raise rows.BadInput(f"--device {options.device}: needed cpu, or gpu:N for a card")
    if not options.program or not shutil.which(options.program[0]):
        raise rows.BadInput(f"--program {shlex.join(options.program)}: is no program; needed "
                            "bench_vit_rows, as a build with HALFWATT_BENCH makes it")
    if not all(importlib.util.find_spec(module) for module in ("torch", "timm")):
        raise rows.BadInput("needs torch and timm, as `pip install torch timm` brings them")
    unknown = set(options.variants) - set(rows.PEERS)
    if unknown:
        raise rows.BadInput(f"--variants {', '.join(sorted(unknown))}: needed some of "
                            f"{', '.join(rows.PEERS)}")
    if options.rounds < 1 or options.seconds <= 0 or options.warm_up <= 0:
        raise rows.BadInput(f"--rounds {options.rounds} --seconds {options.seconds} --warm-up "
                            f"{options.warm_up}: needed more than 0 of each")
    is_new = not os.path.exists(options.append)
    for record in () if is_new else rows.records_in(options.append).values():
        if (record["model"], record["device"]) != (options.model, options.device):
            raise rows.BadInput(f"--append {options.append}: has {record['model']} on "
                                f"{record['device']}; needed another file for {options.model} on "
                                f"{options.device}")


def check(file, doc):
    """Whether the document has the table of that file."""
    same = rows.table_in(doc).strip() == rows.table(rows.records_in(file)).strip()
    print(f"{doc}: its table is {'' if same else 'not '}that of {file}"
          + ("" if same else f"; put in what --table {file} prints"))
    return same


def read_options():
    words = argparse.ArgumentParser(description=__doc__,
                                    formatter_class=argparse.RawDescriptionHelpFormatter)
    what = words.add_mutually_exclusive_group(required=True)
    what.add_argument("--rows", nargs="+", metavar="NAME", help="names, or patterns as 'train-*'")
    what.add_argument("--list", action="store_true")
    what.add_argument("--table", metavar="FILE")
    what.add_argument("--check", nargs=2, metavar=("FILE", "DOC"))
    words.add_argument("--append", metavar="FILE", help="where records go, a line for each row")
    words.add_argument("--model", default=rows.MODEL)
    words.add_argument("--device", default="gpu:0", help="gpu:N or cpu")
    words.add_argument("--variants", default=",".join(rows.PEERS), help="of PyTorch",
                       type=lambda text: text.split(","))
    words.add_argument("--program", default=[str(PROGRAM)], type=shlex.split,
                       help="bench_vit_rows, or words that run it")
    words.add_argument("--warm-up", type=float, default=10, help="seconds of each variant")
    words.add_argument("--seconds", type=float, default=2, help="of a window")
    words.add_argument("--rounds", type=int, default=5, help="windows of each variant")
    words.add_argument("--commit", default=commit_here(), help="of halfwatt; default: git's")
    options = words.parse_args()
    if options.rows and not options.append:
        words.error("--rows: needed --append FILE too, where the records go")
    return options


def main():
    options = read_options()
    try:
        if options.list:
            print("\n".join(map(rows.name_of, rows.all_rows())))
            return 0
        if options.table:
            print(rows.table(rows.records_in(options.table)), end="")
            return 0
        if options.check:
            return 0 if check(*options.check) else 1
        chosen = rows.chosen(options.rows)
        check_options(options)
        return 0 if measure_rows(chosen, options) else 1
    except rows.BadInput as error:
        print(f"torch_vit.py: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
