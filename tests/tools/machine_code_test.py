"""tools/machine-code on made-up dumps."""

import importlib.machinery
import importlib.util
import unittest

from tree import TOOLS, TreeTest

LOADER = importlib.machinery.SourceFileLoader("machine_code", str(TOOLS / "machine-code"))
TOOL = importlib.util.module_from_spec(importlib.util.spec_from_loader("machine_code", LOADER))
LOADER.exec_module(TOOL)

TENSOR = {f"_Z{len(kernel)}{kernel}{math}Li64E": {product} for kernel in TOOL.TENSOR_KERNELS
          for math, product in TOOL.PRODUCTS.items()}
PLAIN = "_Z16attention_kernelILNS_5DTypeE1EEEvv"  # in fp32
NORM = "_Z17layer_norm_kernelv"


class MachineCode(TreeTest):
    def test_kernels_as_they_are_meant_to_be_are_fine(self):
        stacks = {NORM: 0, "_Z11drop_kernelv": 16}
        self.assertEqual(list(TOOL.problems(stacks, {**TENSOR, PLAIN: set()})), [])

    def test_a_kernel_that_spills_is_named_with_its_bytes(self):
        stacks = {NORM: 8, "_Z11drop_kernelv": 24}
        self.assertEqual(list(TOOL.problems(stacks, TENSOR)), [
            "_Z11drop_kernelv: 24 bytes in local memory, 16 allowed: it spills",
            f"{NORM}: 8 bytes in local memory, 0 allowed: it spills"])

    def test_tf32_in_a_kernel_of_fp32_is_found(self):
        code = {**TENSOR, PLAIN: {"HMMA.1688.F32.TF32"}}
        self.assertEqual(list(TOOL.problems({}, code)), [
            f"{PLAIN}: products HMMA.1688.F32.TF32, needs none of tensor cores"])

    def test_attention_without_tensor_cores_or_in_another_format_is_found(self):
        half, brain, tf32 = (next(name for name in TENSOR if math in name)
                             for math in ("E3EE", "E4EE", "Tf32Math"))
        code = {**TENSOR, half: set(), brain: {"HMMA.16816.F32"},
                tf32: {"HMMA.1688.F32.TF32", "HMMA.16816.F32"}}
        self.assertEqual(len(list(TOOL.problems({}, code))), 3)

    def test_a_kernel_that_is_gone_is_missed(self):
        code = {name: kinds for name, kinds in TENSOR.items()
                if not ("query" in name and "Tf32" in name)}
        self.assertEqual(list(TOOL.problems({}, code)),
                         ["query_gradient_kernel of Tf32Math: not among the kernels"])

    def test_dumps_are_read_function_by_function(self):
        code = ["\t\tFunction : one", "  /*0010*/  LDG.E R2, [R4] ;",
                "  /*0020*/  HMMA.16816.F32.BF16 R12, R16, R8, R12 ;", "\t\tFunction : other",
                "  /*0000*/  EXIT ;"]
        self.assertEqual(TOOL.products(code), {"one": {"HMMA.16816.F32.BF16"}, "other": set()})
        usage = [" Function one:", "  REG:128 STACK:0 SHARED:0 LOCAL:0", " Function other:",
                 "  REG:40 STACK:24 SHARED:0"]
        self.assertEqual(TOOL.local_bytes(usage), {"one": 0, "other": 24})

    def test_where_there_is_no_toolkit_it_skips_and_says_so(self):
        ran = self.run_tool("machine-code")
        self.assertEqual(ran.returncode, 77)
        self.assertIn("no CUDA toolkit", ran.stdout)


if __name__ == "__main__":
    unittest.main()
