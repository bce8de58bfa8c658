"""tools/gpu-record on made-up records and sources."""

import importlib.machinery
import importlib.util
import unittest

from tree import TOOLS, TreeTest

LOADER = importlib.machinery.SourceFileLoader("gpu_record", str(TOOLS / "gpu-record"))
TOOL = importlib.util.module_from_spec(importlib.util.spec_from_loader("gpu_record", LOADER))
LOADER.exec_module(TOOL)


def record(**tests):
    return {"sources": "abc", "tests": {name: {"status": status} for name, status in tests.items()}}


class GpuRecord(TreeTest):
    def test_a_record_of_these_sources_and_tests_is_good(self):
        self.assertEqual(TOOL.problems(record(a="completed", b="completed"), "abc", {"a", "b"}), [])

    def test_other_sources_need_another_run(self):
        found = TOOL.problems(record(a="completed"), "def", {"a"})
        self.assertEqual(len(found), 1)
        self.assertIn("run the tests again on a GPU", found[0])

    def test_a_test_that_is_new_gone_skipped_or_failed_is_named(self):
        found = TOOL.problems(record(gone="completed", skips="skipped", fails="failed"), "abc",
                              {"new", "skips", "fails"})
        self.assertEqual(found, ["gone: is no test now", "new: is not in the record",
                                 "fails: failed", "skips: skipped"])

    def test_every_byte_and_name_of_the_sources_counts(self):
        for source in ("src/engine/a.cpp", "tests/engine/backend/cuda/b.cpp",
                       "tests/engine/exec/c.h", "cmake/cuda.cmake", "data/digits.csv.gz"):
            self.write(source, source)
        before = TOOL.tree_hash(self.root)
        self.assertEqual(TOOL.tree_hash(self.root), before)
        self.write("src/engine/a.cpp", "other")
        changed = TOOL.tree_hash(self.root)
        self.assertNotEqual(changed, before)
        (self.root / "src/engine/a.cpp").rename(self.root / "src/engine/z.cpp")
        self.assertNotIn(TOOL.tree_hash(self.root), (before, changed))

    def test_what_gtest_says_becomes_a_line_a_test(self):
        report = {"testsuites": [{"name": "Ops", "testsuite": [
            {"name": "a", "result": "COMPLETED", "time": "0.5s", "error_of_tolerance": "0.25"},
            {"name": "b", "result": "SKIPPED", "time": "0s"},
            {"name": "c", "result": "COMPLETED", "time": "1s", "failures": [{}],
             "libraries": "cuBLASLt 13.0.2"}]}]}
        self.assertEqual(TOOL.tests_of(report), {
            "Ops.a": {"status": "completed", "seconds": "0.5", "error_of_tolerance": 0.25},
            "Ops.b": {"status": "skipped", "seconds": "0"},
            "Ops.c": {"status": "failed", "seconds": "1"}})
        self.assertEqual(TOOL.libraries_of(report), ["cuBLASLt 13.0.2"])


if __name__ == "__main__":
    unittest.main()
