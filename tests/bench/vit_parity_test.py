"""vit_parity_test.py BENCH_VIT_PARITY: what it says of trainings of a ViT of two blocks
with all weights alike, and the words that it refuses."""

import json
import math
import pathlib
import subprocess
import sys
import tempfile
import unittest

from micro_vit import MODEL, assert_refused, read, shapes, write

PROGRAM = sys.argv.pop() if len(sys.argv) > 1 else None
CLASSES = 4


class VitParity(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()  # pylint: disable=consider-using-with
        self.addCleanup(folder.cleanup)
        self.weights, self.data, self.first = (
            pathlib.Path(folder.name, f"{name}.safetensors") for name in ("w", "d", "f"))
        write(self.weights, {name: (shape, 0.0) for name, shape in shapes(CLASSES).items()})
        self.write_data([1.0] * 4)

    def write_data(self, factors, labels=(0, 0, 1, 1)):
        write(self.data, {"images": ([4, 3, 16, 16], 1.0), "labels": ([4], list(labels)),
                          "factors": ([len(factors)], factors)})

    def run_program(self, **words):
        words = {"precision": "fp32", "batch": "2", "device": "cpu", "rate": "0.01",
                 "scale": "65536", "interval": "2"} | words
        return subprocess.run([PROGRAM, MODEL, *words.values(), self.weights, self.data,
                               self.first], capture_output=True, text=True, check=False)

    def answer(self, precision):
        ran = self.run_program(precision=precision)
        self.assertEqual((ran.returncode, ran.stderr), (0, ""))
        return json.loads(ran.stdout)

    def test_the_first_step_has_logits_and_gradients_of_these_weights(self):
        for precision in ("fp32", "amp-fp16"):  # which scales its gradients
            with self.subTest(precision):
                answer = self.answer(precision)
                first = read(self.first)
                self.assertAlmostEqual(answer["losses"][0], math.log(CLASSES), places=6)
                self.assertEqual(first["logits"], [0.0] * 2 * CLASSES)
                # Both images are of class 0.
                self.assertEqual(first["gradient:head.bias"], [-0.75, 0.25, 0.25, 0.25])
                self.assertEqual(len(first), 1 + len(shapes(CLASSES)))

    def test_batches_come_in_their_order_and_again_from_the_first(self):
        losses = self.answer("fp32")["losses"]
        self.assertGreater(losses[1], losses[0])  # the bias has learnt class 0, class 1 comes
        self.assertGreater(losses[1], losses[2])
        self.assertEqual(len(losses), 4)

    def test_a_step_of_infinite_images_is_skipped_and_halves_the_scale(self):
        self.write_data([1.0, 1e6, 1.0, 1.0, 1.0])
        write(self.weights, {name: (shape, 0.5) for name, shape in shapes(CLASSES).items()})
        answer = self.answer("amp-fp16")
        self.assertEqual(answer["skipped"], [0, 1, 0, 0, 0])
        self.assertEqual(answer["scales"], [65536, 32768, 32768, 65536, 65536])
        self.assertEqual(answer["state"], "live")

    def test_losses_that_are_not_finite_are_dead(self):
        self.write_data([math.nan] * 2)
        answer = self.answer("fp32")
        self.assertEqual((answer["losses"][0], answer["state"]), (None, "dead"))

    def test_what_it_cannot_do_is_one_line_and_status_2(self):
        for words, said in (({"batch": "3"}, "4 images and 4 labels; needed as many of both, in"),
                            ({"rate": "0"}, "rate 0: needed a number"),
                            ({"interval": "x"}, "interval x: needed a whole number"),
                            ({"scale": "0"}, "scale 0: needed a whole number"),
                            ({"device": "sim:a"}, "device sim:a: needed cpu, or"),
                            ({"precision": "fp4"}, "no precision fp4")):
            with self.subTest(words):
                assert_refused(self, self.run_program(**words), said)
        self.write_data([1.0], labels=(0, 1, 2, 4))
        assert_refused(self, self.run_program(),
                       "labels 0 to 4; vit_micro_patch4_16 needs f32 4x3x16x16")
        write(self.data, {"images": ([4, 3, 16, 16], 1.0)})
        assert_refused(self, self.run_program(), "labels is not there; needed i64 of 1 extents")


if __name__ == "__main__":
    unittest.main()
