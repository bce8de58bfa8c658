"""The closing line of tools/run-tests against ctest itself."""

import subprocess
import unittest

from tree import TreeTest

PROJECT = """cmake_minimum_required(VERSION 3.25)
project(t NONE)
enable_testing()
add_test(NAME passes COMMAND true)
add_test(NAME passes_too COMMAND true)
add_test(NAME skips COMMAND sh -c "exit 77")
set_tests_properties(skips PROPERTIES SKIP_RETURN_CODE 77)
add_test(NAME skips_too COMMAND sh -c "echo '[  SKIPPED ] <testcase >'")
set_tests_properties(skips_too PROPERTIES SKIP_REGULAR_EXPRESSION "SKIPPED")
add_test(NAME disabled COMMAND false)
set_tests_properties(disabled PROPERTIES DISABLED ON)
add_test(NAME fails COMMAND false)
add_test(NAME is_not_there COMMAND ./is_not_there)
"""


class RunTests(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("CMakeLists.txt", PROJECT)
        subprocess.run(["cmake", "-B", "build"], cwd=self.root, check=True, capture_output=True)

    def close(self, *options):
        ran = self.run_tool("run-tests", "build", *options, cwd=self.root)
        return ran.returncode != 0, ran.stdout.splitlines()[-1]

    def test_counts_and_fails(self):
        self.assertEqual(self.close(), (True, "2 passed, 2 failed, 3 skipped"))

    def test_counts_and_succeeds(self):
        self.assertEqual(self.close("-E", "fails|there"), (False, "2 passed, 0 failed, 3 skipped"))

    def test_fails_where_no_test_ran(self):
        self.assertEqual(self.close("-R", "nothing"), (True, "0 passed, 0 failed, 0 skipped"))


if __name__ == "__main__":
    unittest.main()
