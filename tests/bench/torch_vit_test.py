"""bench/peers/torch_vit.py on made-up records and on children that compute nothing."""

import argparse
import contextlib
import io
import json
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "bench" / "peers"))

import torch_vit  # noqa: E402  pylint: disable=wrong-import-position,import-error
import torch_vit_meter as meters  # noqa: E402  pylint: disable=wrong-import-position,import-error
import torch_vit_rows as rows  # noqa: E402  pylint: disable=wrong-import-position,import-error

MADE_UP = HERE / "made_up_rows.jsonl"
TABLE = HERE / "made_up_table.md"

# FIRST STEP-SECONDS LIVES: answers as a variant does; after LIVES windows its end is near.
CHILD = """
import json, sys
first, step, lives = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
for line in sys.stdin:
    word, *rest = line.split()
    if word == "first":
        answer = {"first": [first], "versions": {"torch": "none"}}
    elif lives == 0:
        sys.exit("out of memory")
    else:
        lives -= 1
        answer = {"steps": 10, "begin_s": 5, "end_s": 5 + 10 * step, "state": "live",
                  "last": [first], "peak_bytes": None}
    print(json.dumps(answer), flush=True)
"""


def child(first=0.7, step=0.1, lives=99):
    return [sys.executable, "-c", CHILD, str(first), str(step), str(lives)]


class NoCard:  # pylint: disable=too-few-public-methods
    """Stands for a meter of a card that draws 100 W."""
    about = {"card": "none", "driver": "none"}

    def take(self, begin_s, end_s):
        return {"watts": 100.0, "joules": 100.0 * (end_s - begin_s), "sm_mhz": None,
                "limit_w": None}


def run(commands, name="train-160-fp32", rounds=3):
    options = argparse.Namespace(model="m", device="cpu", commit="c", warm_up=1, seconds=1,
                                 rounds=rounds)
    return torch_vit.run(rows.row_named(name), commands, NoCard(), options)


def called(*words):
    """Status, stdout and stderr of torch_vit.py with these words."""
    out, err = io.StringIO(), io.StringIO()
    with mock.patch.object(sys, "argv", ["torch_vit.py", *map(str, words)]), \
            contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = torch_vit.main()
    return status, out.getvalue(), err.getvalue()


class Records(unittest.TestCase):
    def setUp(self):
        self.records = rows.records_in(MADE_UP)

    def test_a_ratio_is_the_fastest_live_peer_over_ours_by_medians(self):
        record = self.records["train-160-amp-bf16"]
        self.assertEqual(rows.best_peer(record)[0], "compiled")
        self.assertAlmostEqual(rows.ratio(record), 45 / 40)

    def test_a_row_that_was_measured_again_is_as_it_was_last(self):
        record = self.records["train-160-amp-bf16"]
        self.assertAlmostEqual(rows.figures(record, "eager").step_ms, 61)

    def test_joules_are_of_an_image(self):
        found = rows.figures(self.records["train-160-fp16"], "halfwatt")
        self.assertAlmostEqual(found.joules, 640 * 0.050 / 160)

    def test_a_dead_variant_has_no_figure_and_is_nobodys_peer(self):
        record = self.records["train-160-fp16"]
        self.assertEqual(rows.figures(record, "eager"), rows.Figures("dead"))
        self.assertEqual(rows.best_peer(record)[0], "compiled")
        self.assertAlmostEqual(rows.ratio(record), 0.8)

    def test_one_dead_window_is_enough(self):
        record = self.records["train-160-fp16"]
        record["windows"][-1]["state"] = "dead"
        self.assertEqual(rows.figures(record, "halfwatt"), rows.Figures("dead"))
        self.assertIsNone(rows.ratio(record))

    def test_a_row_without_us_or_without_peers_or_refused_has_no_ratio(self):
        for name in ("train-160-fp32", "train-160-bf16", "train-160-fp8"):
            self.assertIsNone(rows.ratio(self.records[name]), name)
        record = self.records["infer-8-fp16"]
        for peer in rows.PEERS:
            record["variants"].pop(peer)
        self.assertIsNone(rows.ratio(record))

    def test_a_figure_that_one_window_lacks_is_unknown(self):
        record = self.records["train-160-amp-bf16"]
        record["windows"][0]["watts"] = None
        found = rows.figures(record, "eager")
        self.assertIsNone(found.watts)
        self.assertIsNotNone(found.step_ms)

    def test_what_is_no_record_is_named_with_its_line(self):
        good = MADE_UP.read_text(encoding="utf-8").splitlines()[0]
        record = json.loads(good)
        bad = {"no JSON": "{", "a number": "3", "no windows": good.replace('"windows"', '"panes"'),
               "no time": good.replace('"end_s": ', '"end_s": -'),
               "not finite": good.replace('"steps": 40', '"steps": NaN'),
               "no such row": good.replace("train-160-amp-bf16", "train-160-int4"),
               "another batch": good.replace('"batch": 160', '"batch": 16'),
               "no variant": good.replace('"variant": "eager"', '"variant": "lazy"'),
               "another model": json.dumps(record | {"model": "vit_tiny_patch16_224"})}
        for why, line in bad.items():
            with self.subTest(why), tempfile.TemporaryDirectory() as folder:
                path = pathlib.Path(folder, "r.jsonl")
                path.write_text(f"{good}\n{line}\n", encoding="utf-8")
                status, out, err = called("--table", path)
                self.assertEqual((status, out), (2, ""))
                self.assertIn(f"{path}, line 2: ", err)
                self.assertEqual(err.count("\n"), 1)


class Table(unittest.TestCase):
    def test_a_document_has_the_table_of_its_records_or_it_does_not(self):
        self.assertEqual(called("--check", MADE_UP, TABLE)[0], 0)
        with tempfile.TemporaryDirectory() as folder:
            other = pathlib.Path(folder, "other.md")
            text = TABLE.read_text(encoding="utf-8")
            other.write_text(text.replace("**1.13**", "**1.31**"), encoding="utf-8")
            self.assertEqual(called("--check", MADE_UP, other)[0], 1)
            other.write_text(text.replace("<!-- /torch_vit -->", ""), encoding="utf-8")
            self.assertEqual(called("--check", MADE_UP, other)[0], 2)

    def test_what_was_not_measured_is_there_and_says_so(self):
        lines = rows.table({}).splitlines()
        for row in rows.all_rows():
            line = [each for each in lines if each.startswith(f"| {rows.name_of(row)}")]
            self.assertEqual(len(line), 1)
            self.assertIn("| not measured |", line[0])

    def test_a_row_of_another_batch_stands_behind_the_others(self):
        record = rows.records_in(MADE_UP)["infer-8-fp16"]
        record |= {"row": "infer-4-fp16", "batch": 4}
        line = rows.table({"infer-4-fp16": record}).splitlines()[2 + len(rows.all_rows())]
        self.assertTrue(line.startswith("| infer-4-fp16 | 1 | 4.5 |"), line)


class Names(unittest.TestCase):
    def names(self, *words):
        return [rows.name_of(row) for row in rows.chosen(words)]

    def test_patterns_choose_rows_in_their_order(self):
        self.assertEqual(self.names("infer-1-*", "train-160-*16"),
                         ["train-160-amp-fp16", "train-160-amp-bf16", "train-160-fp16",
                          "train-160-bf16", "infer-1-fp16"])

    def test_another_batch_may_be_named(self):
        self.assertEqual(self.names("train-2-fp32"), ["train-2-fp32"])

    def test_what_matches_nothing_is_said(self):
        for word in ("train-0-fp32", "train-2-int4", "learn-*"):
            status, _, err = called("--rows", word, "--append", "unused.jsonl")
            self.assertEqual(status, 2)
            self.assertIn(f"--rows {word}: matches no row", err)

    def test_beside_fp8_stands_bf16(self):
        self.assertEqual(rows.peer_precision(rows.row_named("train-160-fp8")), "bf16")


class Measuring(unittest.TestCase):
    def test_variants_take_turns_and_the_order_turns(self):
        record = run({"eager": child(step=0.4), "compiled": child(step=0.3),
                      "halfwatt": child(step=0.2)})
        self.assertEqual([window["variant"] for window in record["windows"]],
                         ["eager", "compiled", "halfwatt", "compiled", "halfwatt", "eager",
                          "halfwatt", "eager", "compiled"])
        self.assertAlmostEqual(rows.ratio(record), 1.5)
        self.assertAlmostEqual(rows.figures(record, "halfwatt").joules, 100 * 0.2 / 160)

    def test_a_record_is_one_that_is_read_again(self):
        line = json.dumps(run({"eager": child(), "halfwatt": child()}))
        self.assertEqual(rows.record_in(line, "here")["row"], "train-160-fp32")

    def test_variants_that_do_not_compute_the_same_are_refused_and_not_measured(self):
        record = run({"eager": child(first=0.7), "halfwatt": child(first=0.701)})
        self.assertIn("halfwatt and eager are 0.0014 of their size apart", record["refused"])
        self.assertEqual(record["windows"], [])
        self.assertIsNone(rows.ratio(record))
        self.assertIsNone(run({"eager": child(first=0.7), "halfwatt": child(first=0.701)},
                              "train-160-fp16")["refused"])

    def test_one_that_ends_is_told_in_its_own_words_and_the_others_go_on(self):
        record = run({"eager": child(step=0.4), "compiled": child(lives=2), "halfwatt": child()})
        self.assertEqual(record["variants"]["compiled"], {"failed": "out of memory"})
        self.assertEqual(rows.best_peer(record)[0], "eager")
        self.assertEqual(rows.figures(record, "compiled"), rows.Figures("failed"))

    def test_without_us_nothing_is_measured(self):
        record = run({"eager": child(), "halfwatt": [sys.executable, "-c", "exit('no fp8')"]})
        self.assertEqual(record["variants"]["halfwatt"], {"failed": "no fp8"})
        self.assertEqual(record["windows"], [])

    def test_one_that_says_nothing_is_ended(self):
        silent = torch_vit.Child([sys.executable, "-c", "import time; time.sleep(60)"])
        try:
            with self.assertRaises(torch_vit.Failed):
                silent.ask("first", 0.2)
        finally:
            silent.close()


class Meter(unittest.TestCase):
    def samples(self, joules, watts=None):
        return [{"at_s": at / 10, "joules": value, "watts": watts, "sm_mhz": 1500 + at,
                 "limit_w": 700} for at, value in enumerate(joules)]

    def test_power_is_from_where_the_counter_moves_to_where_it_moves(self):
        found = meters.metered(self.samples([0, 0, 50, 50, 100, 100, 150, 150]), 0.05, 0.75)
        self.assertAlmostEqual(found["watts"], 250)
        self.assertAlmostEqual(found["joules"], 250 * 0.7)
        self.assertAlmostEqual(found["sm_mhz"], 1504)
        self.assertEqual(found["limit_w"], 700)

    def test_without_a_counter_power_is_the_mean_of_what_was_read(self):
        found = meters.metered(self.samples([None] * 5, watts=300), 0, 1)
        self.assertAlmostEqual(found["joules"], 300)

    def test_a_window_that_nobody_read_is_unknown(self):
        self.assertEqual(set(meters.metered([], 0, 1).values()), {None})
        self.assertEqual(set(meters.Meter(None).take(0, 1).values()), {None})


if __name__ == "__main__":
    unittest.main()
