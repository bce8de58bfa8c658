"""The rows of torch_vit.py: their names, what a record of one comes to, and the table. A record
is a line of JSON for each row as it was measured; README.md beside this file has its fields."""

import collections
import fnmatch
import json
import math
import re
import statistics

MODEL = "vit_base_patch16_224"
OURS = "halfwatt"
PEERS = ("eager", "compiled", "max-autotune")
PRECISIONS = ("fp32", "tf32", "amp-fp16", "amp-bf16", "fp16", "bf16", "fp8")

# How far the first step's numbers may be from those of the first peer, of their size.
FIRST_MAY_DIFFER = {"fp32": 1e-4, "tf32": 1e-2, "amp-fp16": 1e-2, "fp16": 1e-2, "amp-bf16": 0.08,
                    "bf16": 0.08, "fp8": 0.3}
# Logits that are nearly 0 have no size of their own.
LEAST_SIZE = 0.1

Row = collections.namedtuple("Row", "mode batch precision")
Figures = collections.namedtuple(
    "Figures", "state step_ms joules watts sm_mhz peak_bytes", defaults=(None,) * 5)


class BadInput(Exception):
    """What was found and what was needed, in one line."""


def name_of(row):
    return f"{row.mode}-{row.batch}-{row.precision}"


def all_rows():
    """Every row of the table, the most wanted first."""
    wanted = [("train", 160, PRECISIONS),
              ("infer", 2048, ("fp32", "tf32", "amp-fp16", "fp16", "bf16", "fp8")),
              ("infer", 64, ("fp16",)), ("infer", 8, ("fp16",)), ("infer", 1, ("fp16",)),
              ("train", 512, ("tf32", "amp-fp16", "amp-bf16", "fp16", "bf16", "fp8")),
              ("infer", 512, ("tf32", "amp-fp16", "fp16", "bf16", "fp8"))]
    return [Row(mode, batch, precision) for mode, batch, precisions in wanted
            for precision in precisions]


def row_named(name):
    """The row of that name, which may have any batch; None where it is no name of a row."""
    found = re.fullmatch(r"(train|infer)-([1-9]\d{0,5})-(.+)", name)
    if not found or found[3] not in PRECISIONS:
        return None
    return Row(found[1], int(found[2]), found[3])


def chosen(words):
    """The rows that names and patterns ask for, the most wanted first; other batches behind."""
    rows = all_rows()
    wanted = {}
    for word in words:
        matched = [row for row in rows if fnmatch.fnmatchcase(name_of(row), word)]
        named = row_named(word)
        if not matched and not named:
            raise BadInput(f"--rows {word}: matches no row; needed a name or a pattern of --list, "
                           "or a name of another batch, as train-2-fp32")
        wanted.update(dict.fromkeys(matched or [named]))
    return [row for row in rows if row in wanted] + [row for row in wanted if row not in rows]


def peer_precision(row):
    """PyTorch alone has no fp8: beside it stands the fastest of 16 bits."""
    return "bf16" if row.precision == "fp8" else row.precision


def peers_of(row):
    """The variants of PyTorch that a user would pick from."""
    return PEERS if row.mode == "infer" and row.batch <= 64 else PEERS[:2]


def size_of(values):
    return math.sqrt(sum(value * value for value in values) / len(values))


def disagreement(precision, first):
    """Why variants do not compute the same: `first` has the numbers of each one's first step, None
    for one that is not finite. None where they do, as far as those are finite."""
    finite = {name: values for name, values in first.items() if None not in values}
    if not finite:
        return None
    reference = next(iter(finite))
    size = max(size_of(finite[reference]), LEAST_SIZE)
    for name, values in finite.items():
        if len(values) != len(finite[reference]):
            return f"{name} gives {len(values)} numbers, {reference} {len(finite[reference])}"
        apart = size_of([a - b for a, b in zip(values, finite[reference])]) / size
        if apart > FIRST_MAY_DIFFER[precision]:
            return (f"the first numbers of {name} and {reference} are {apart:.2g} of their size "
                    f"apart; {precision} allows {FIRST_MAY_DIFFER[precision]:g}")
    return None


def known(combine, values):
    """`combine` of values that are all known; else None."""
    return combine(values) if values and None not in values else None


def state_of(record, variant):
    """live, or why its windows have no figure."""
    if variant not in record["variants"]:
        return "left out"
    if "failed" in record["variants"][variant]:
        return "failed"
    states = {window["state"] for window in record["windows"] if window["variant"] == variant}
    for state in ("dead", "skipping"):
        if state in states:
            return state
    if not states:
        return "not measured"  # who it is to be held against failed first
    return "live" if states == {"live"} else "unknown"


def figures(record, variant):
    """What the windows of a variant come to; the state alone where that is not live. `joules` are
    of an image."""
    state = state_of(record, variant)
    if state != "live":
        return Figures(state)
    windows = [window for window in record["windows"] if window["variant"] == variant]
    images = record["batch"] * sum(window["steps"] for window in windows)

    def every(field):
        return [window.get(field) for window in windows]

    steps = [(window["end_s"] - window["begin_s"]) / window["steps"] for window in windows]
    joules = known(sum, every("joules"))
    return Figures(state, statistics.median(steps) * 1000,
                   None if joules is None else joules / images,
                   known(statistics.median, every("watts")),
                   known(statistics.median, every("sm_mhz")), known(max, every("peak_bytes")))


def best_peer(record):
    """Name and figures of the fastest live variant of PyTorch; None where there is none."""
    live = {name: figures(record, name) for name in PEERS
            if state_of(record, name) == "live"}
    best = min(live, key=lambda name: live[name].step_ms, default=None)
    return None if best is None else (best, live[best])


def ratio(record):
    """Time of the fastest live peer / ours, 1 where both are as fast; None where there is none."""
    ours = figures(record, OURS)
    best = best_peer(record)
    if record["refused"] or ours.state != "live" or best is None:
        return None
    return best[1].step_ms / ours.step_ms


def check_window(window, record, where):
    """Raises where a window is none."""
    numbers = [window.get(field) for field in ("steps", "begin_s", "end_s")]
    finite = all(isinstance(number, (int, float)) and math.isfinite(number) for number in numbers)
    if not finite or numbers[0] < 1 or numbers[2] <= numbers[1]:
        raise BadInput(f"{where}: a window of steps, begin_s, end_s = {numbers}; needed one step "
                       "or more and a time that passes")
    if window.get("variant") not in record["variants"] or not isinstance(window.get("state"), str):
        raise BadInput(f"{where}: a window of {window.get('variant')}, {window.get('state')}; "
                       "needed a variant of the row and a state")


def record_in(line, where):
    """One record, looked at. Raises BadInput."""
    try:
        record = json.loads(line)
    except ValueError as error:
        raise BadInput(f"{where}: {error}; needed a line of JSON") from error
    wanted = {"row": str, "model": str, "device": str, "mode": str, "batch": int,
              "precision": str, "variants": dict, "windows": list, "versions": dict,
              "commit": str, "measured": str}
    for field, kind in wanted.items():
        found = record.get(field) if isinstance(record, dict) else None
        if not isinstance(found, kind):
            raise BadInput(f"{where}: {field} is {found!r}; needed a {kind.__name__}")
    row = row_named(record["row"])
    if row != Row(record["mode"], record["batch"], record["precision"]):
        raise BadInput(f"{where}: row {record['row']} of {record['mode']}, {record['batch']}, "
                       f"{record['precision']}; needed MODE-BATCH-PRECISION of these")
    record.setdefault("refused", None)
    for window in record["windows"]:
        check_window(window, record, where)
    return record


def records_in(path):
    """Row name -> the last record of it in a file of one model on one device. Raises BadInput."""
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}; needed a record of --append") from error
    records = {}
    first = None
    for number, line in enumerate(lines, 1):
        record = record_in(line, f"{path}, line {number}")
        first = first or record
        for field in ("model", "device"):
            if record[field] != first[field]:
                raise BadInput(f"{path}, line {number}: {field} {record[field]} beside "
                               f"{first[field]}; needed a file of one {field}")
        records[record["row"]] = record
    return records


def shown(value, form):
    return "unknown" if value is None else form.format(value)


def pair(ours, best, form):
    if ours is None and best is None:
        return "unknown"
    return f"{shown(ours, form)} / {shown(best, form)}"


def cells(record):
    """What the table says of a row that was measured, cell by cell."""
    if record["refused"]:
        return [f"refused: {record['refused']}"] + [""] * 8
    ours = figures(record, OURS)
    everybody = [figures(record, name) for name in (OURS,) + PEERS]
    times = [f"{each.step_ms:.4g}" if each.state == "live" else each.state for each in everybody]
    times = ["" if time == "left out" else time for time in times]
    best = ratio(record)
    if best is None:
        return times + ["none"] + [""] * 4
    peer = best_peer(record)[1]
    gib = [None if each.peak_bytes is None else each.peak_bytes / 2**30 for each in (ours, peer)]
    return times + [f"**{best:.2f}**" if best >= 1 else f"{best:.2f}",
                    pair(ours.joules, peer.joules, "{:.4g}"),
                    pair(ours.watts, peer.watts, "{:.0f}"),
                    pair(ours.sm_mhz, peer.sm_mhz, "{:.0f}"), pair(*gib, "{:.2f}")]


def line_of(row, record):
    """The line of the table for a row; `record` None: it was not measured."""
    name = name_of(row)
    if peer_precision(row) != row.precision:
        name += f", PyTorch in {peer_precision(row)}"
    rest = cells(record) if record else ["not measured"] + [""] * 8
    return "| " + " | ".join([name] + rest) + " |"


def origins(records):
    """A line for each machine and set of versions, with its rows where there are several."""
    groups = collections.defaultdict(list)
    for record in records.values():
        versions = ", ".join(f"{name} {version}"
                             for name, version in sorted(record["versions"].items()))
        groups[f"{record['measured'][:10]}, commit {record['commit']}: {versions}."].append(record)
    for text, group in groups.items():
        rows = "" if len(groups) == 1 else f" Rows: {', '.join(each['row'] for each in group)}."
        yield text + rows


def table(records):
    """Markdown of all rows, those that were not measured too, and what it is from."""
    rows = all_rows()
    rows += [row_named(name) for name in records if row_named(name) not in rows]
    lines = ["| row | halfwatt, ms | eager | compiled | max-autotune | best / halfwatt "
             "| J an image | W | SM MHz | peak GiB |", "|" + "---|" * 10]
    lines += [line_of(row, records.get(name_of(row))) for row in rows]
    notes = ["Times are of a step; pairs are halfwatt / the fastest live variant of PyTorch."]
    if any(record.get("made_up") for record in records.values()):
        notes.append("**These figures are made up.**")
    notes += [f"{model} with one logit, on {device}." for model, device in
              sorted({(record["model"], record["device"]) for record in records.values()})]
    notes += origins(records)
    notes += [f"{record['row']}, {name}: {variant['failed']}" for record in records.values()
              for name, variant in record["variants"].items() if "failed" in variant]
    return "\n".join(lines + [""] + [f"- {note}" for note in notes]) + "\n"


def table_in(path):
    """The table that a document has between its markers. Raises BadInput."""
    try:
        with open(path, encoding="utf-8") as file:
            text = file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: {error}; needed a document") from error
    found = re.findall(r"<!-- torch_vit -->\n(.*?)<!-- /torch_vit -->", text, re.DOTALL)
    if len(found) != 1:
        raise BadInput(f"{path}: {len(found)} tables between <!-- torch_vit --> and "
                       "<!-- /torch_vit -->; needed one")
    return found[0]
