"""report_test.py PROGRAM CHROMIUM_TEST.py

Sweeps a simulated card, writes the record and the report, works out from the record alone what
every chart must show, and lets a real browser read the charts back.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

WORKLOAD = "study:train-amp-fp16"


def run(program, *words):
    return subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout


def expected_charts(lines, verdict):
    """What the charts hold, by the record's own figures. Each limit is measured once, so
    nothing is smoothed and no drift is taken out."""
    name = " ".join(lines[0]["labels"].values())
    windows = sorted(lines[1:], key=lambda window: window["setting"]["power_limit"])
    series = verdict["series"][0]
    keep = {share["limit_w"] for share in series["keep"]}
    reference = windows[-1]["work"]["step_s"]

    def line(points, name=name):
        return {"name": name, "struck": False, "points": points}

    time, share, energy, pareto, limits = [], [], [], [], []
    for window in windows:
        work = window["work"]
        x, step = window["setting"]["power_limit"], work["step_s"]
        marked = x in keep
        joules = window["energy"]["joules"] / (work["steps"] * work["items_per_step"])
        low, high = work["step_low_s"], work["step_high_s"]
        time.append([x, step * 1000, low * 1000, high * 1000, marked])
        share.append([x, 100 * reference / step, 100 * reference / high,
                      100 * reference / low, marked])
        energy.append([x, joules, None, None, x == series["least_energy"]["limit_w"]])
        pareto.append([work["items_per_step"] / step, joules, None, None, False])
        limits.append(x)
    front = [pareto[limits.index(point["limit_w"])][:4] + [True]
             for point in verdict["pareto"][0]["front"]]
    heat = [[window["setting"]["power_limit"], window["conditions"]["temperature_end_c"],
             None, None, False] for window in lines[1:]]
    return [
        {"id": "time", "lines": [line(time)]},
        {"id": "share", "lines": [line(share)]},
        {"id": "energy", "lines": [line(energy)]},
        {"id": "pareto-1", "lines": [line(pareto), line(front, "Pareto front")]},
        {"id": "temperature", "lines": [line(heat)]},
    ]


def main():
    program, chromium_test = sys.argv[1:]
    with tempfile.TemporaryDirectory() as folder:
        record, page, expected = (str(pathlib.Path(folder) / each)
                                  for each in ("run.jsonl", "page.html", "expected.json"))
        run(program, "sweep", "--workload", WORKLOAD, "--order", "descending",
            "--record", record, "--report", page)
        lines = [json.loads(each) for each in pathlib.Path(record).read_text().splitlines()]
        verdict = json.loads(run(program, "analyze", record, "--format", "json"))
        charts = {"charts": expected_charts(lines, verdict)}
        pathlib.Path(expected).write_text(json.dumps(charts))
        return subprocess.run([sys.executable, chromium_test, page, expected]).returncode


sys.exit(main())
