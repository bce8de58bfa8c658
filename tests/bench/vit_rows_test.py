"""vit_rows_test.py BENCH_VIT_ROWS: the lines that it answers and the words that it refuses, on a
ViT of two blocks of 32 features whose weights are 0, but for the head's bias."""

import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

from micro_vit import MODEL, assert_refused, shapes, write

PROGRAM = sys.argv.pop() if len(sys.argv) > 1 else None


class VitRows(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.weights = pathlib.Path(folder.name, "weights.safetensors")
        self.data = pathlib.Path(folder.name, "batch.safetensors")
        self.write_weights(0.0)
        write(self.data, {"images": ([2, 3, 16, 16], 1.0), "labels": ([2, 1], 1.0)})

    def write_weights(self, bias):
        write(self.weights, {name: (shape, bias if name == "head.bias" else 0.0)
                             for name, shape in shapes(classes=1).items()})

    def run_program(self, mode, lines, batch="2", device="cpu"):
        return subprocess.run([PROGRAM, MODEL, mode, "fp32", batch, device, self.weights,
                               self.data], input=lines, capture_output=True, text=True, check=False)

    def answers(self, mode, lines):
        ran = self.run_program(mode, lines)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return [json.loads(line) for line in ran.stdout.splitlines()]

    def test_training_begins_with_these_weights_and_goes_on_from_window_to_window(self):
        first, one, two = self.answers("train", "first\nwindow 0.05\nwindow 0.05\n")
        self.assertAlmostEqual(first["first"][0], math.log(2), places=6)
        for window in (one, two):
            self.assertEqual(window["state"], "live")
            self.assertGreater(window["steps"], 0)
            self.assertGreater(window["end_s"], window["begin_s"])
            self.assertGreater(window["peak_bytes"], 0)
        self.assertGreater(first["first"][0], one["last"][0])
        self.assertGreater(one["last"][0], two["last"][0])

    def test_inference_gives_the_logits_of_these_weights(self):
        self.write_weights(0.25)
        first, window = self.answers("infer", "first\nwindow 0.05\n")
        self.assertEqual(first["first"], [0.25, 0.25])
        self.assertEqual((window["state"], window["last"]), ("live", [0.25, 0.25]))

    def test_numbers_that_are_not_finite_are_dead(self):
        self.write_weights(math.nan)
        for mode, numbers in (("train", [None]), ("infer", [None, None])):
            first, window = self.answers(mode, "first\nwindow 0.05\n")
            self.assertEqual(first["first"], numbers)
            self.assertEqual(window["state"], "dead")

    def test_what_it_cannot_do_is_one_line_and_status_2(self):
        for words, said in (({"mode": "learn"}, "needed MODEL train|infer"),
                            ({"mode": "train", "batch": "02"}, "batch 02: needed a whole number"),
                            ({"mode": "train", "device": "sim:a"}, "device sim:a: needed cpu, or"),
                            ({"mode": "train", "batch": "3"}, "images is f32 2x3x16x16; needed"),
                            ({"mode": "train", "lines": "window 0\n"}, "needed first, or window"),
                            ({"mode": "train", "lines": "go\n"}, "needed first, or window")):
            with self.subTest(words):
                assert_refused(self, self.run_program(**({"lines": "first\n"} | words)), said)


if __name__ == "__main__":
    unittest.main()
