"""bench/peers/torch_parity_judge.py on made-up figures, and what torch_parity.py refuses."""

import contextlib
import io
import json
import math
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "bench" / "peers"))

import torch_parity  # noqa: E402  pylint: disable=wrong-import-position,import-error
import torch_parity_judge as judge  # noqa: E402  pylint: disable=wrong-import-position,import-error

DEPTH = 12
FALLING = [2.3 - 0.01 * step for step in range(60)]


def verdicts(figures):
    return {what: figure["passed"] for what, figure in figures.items()}


class Errors(unittest.TestCase):
    def test_half_as_much_again_as_pytorchs_is_held_and_more_is_not(self):
        pytorchs = {"logits": 0.02, "gradients": 0.04}
        held = judge.held_errors("fp32", DEPTH, {"logits": 0.03, "gradients": 0.061}, pytorchs)
        self.assertEqual(verdicts(held), {"logits": True, "gradients": False})

    def test_where_pytorch_is_exact_a_few_roundings_are_held(self):
        exact = {"logits": 0, "gradients": 0}
        held = judge.held_errors("bf16", DEPTH, {"logits": 0.015, "gradients": 0.016}, exact)
        self.assertEqual(verdicts(held), {"logits": True, "gradients": False})

    def test_an_error_that_is_no_number_is_not_held(self):
        held = judge.held_errors("bf16", DEPTH, {"logits": math.nan}, {"logits": math.nan})
        self.assertEqual(verdicts(held), {"logits": False})


class Losses(unittest.TestCase):
    def held(self, losses, other):
        return verdicts(judge.held_losses(1e-6, losses, [FALLING, other]))

    def test_a_course_is_held_that_is_nearer_than_another_order_is(self):
        nearer, other = ([loss + more * step for step, loss in enumerate(FALLING)]
                         for more in (1e-7, 2e-7))
        self.assertEqual(self.held(nearer, other), {"first losses": True, "smoothed losses": True})
        self.assertEqual(self.held(other, nearer), {"first losses": True, "smoothed losses": False})

    def test_single_batches_may_differ_where_the_course_does_not(self):
        zigzag = FALLING[:10] + [loss + 0.1 * (-1) ** step
                                 for step, loss in enumerate(FALLING[10:])]
        other = [loss + 0.006 for loss in FALLING]
        self.assertTrue(self.held(zigzag, other)["smoothed losses"])

    def test_first_losses_are_held_to_the_roundings_of_the_format(self):
        self.assertAlmostEqual(judge.allowed_loss("bf16", DEPTH, 16),
                               2**-8 * math.sqrt(124 * 10 / 16))
        off = [FALLING[0] * 1.001] + FALLING[1:]
        self.assertFalse(self.held(off, off)["first losses"])

    def test_losses_that_are_not_finite_are_not_held(self):
        self.assertEqual(self.held([math.nan] + FALLING[1:], FALLING), {"finite": False})


class Overflow(unittest.TestCase):
    def test_scales_and_skips_are_the_same_or_it_fails(self):
        scaler = {"scales": [4.0, 2.0], "skipped": [False, True]}
        late = {"scales": [4.0, 4.0], "skipped": [False, True]}
        self.assertTrue(judge.passed(judge.held_overflow(scaler, scaler, [1])))
        self.assertFalse(judge.passed(judge.held_overflow(late, scaler, [1])))
        # Gradients that did not overflow say nothing.
        self.assertFalse(judge.passed(judge.held_overflow(scaler, scaler, [0, 1])))


class Table(unittest.TestCase):
    def test_it_says_what_failed_and_why_and_what_was_learnt(self):
        held = judge.held_errors("bf16", DEPTH, {"logits": 0.5}, {"logits": 0.1})
        text = judge.table([{"mode": "bf16", "held": held, "failed": None, "losses": FALLING},
                            {"mode": "fp8", "held": {}, "failed": "status 1: no memory"}])
        self.assertRegex(text, r"bf16 +logits +0\.5 +0\.166  FAILED")
        self.assertRegex(text, r"bf16 +learnt +2\.2\d* to 1\.8")
        self.assertRegex(text, r"fp8 +FAILED: status 1: no memory")


class Script(unittest.TestCase):
    def called(self, *words):
        """Status and stderr of torch_parity.py, with figures that are made up."""
        record = {"modes": [{"mode": "fp32", "held": {}, "failed": "made up"}], "passed": False}
        err = io.StringIO()
        with mock.patch.object(sys, "argv", ["torch_parity.py", "--program", sys.executable,
                                             *map(str, words)]), \
                mock.patch.object(torch_parity.importlib.util, "find_spec"), \
                mock.patch.object(torch_parity, "measure", return_value=record), \
                contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(err):
            return torch_parity.main(), err.getvalue()

    def test_a_mode_that_fails_is_status_1_and_all_figures_are_written(self):
        with tempfile.TemporaryDirectory() as folder:
            output = pathlib.Path(folder, "parity.json")
            self.assertEqual(self.called("--output", output), (1, ""))
            self.assertFalse(json.loads(output.read_text("utf-8"))["passed"])

    def test_what_it_cannot_do_is_one_line_and_status_2(self):
        for words, said in ((("--device", "sim:a"), "--device sim:a: needed cpu, or"),
                            (("--program", "no/such"), "--program no/such: is no program"),
                            (("--modes", "fp32,fp4"), "--modes fp4: needed some of fp32"),
                            (("--steps", "0"), "--steps 0 --rate 0.0001: needed 1 or more")):
            with self.subTest(words):
                status, err = self.called("--output", "unused", *words)
                self.assertEqual((status, err.count("\n")), (2, 1))
                self.assertIn(said, err)


if __name__ == "__main__":
    unittest.main()
