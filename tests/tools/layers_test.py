import unittest

from tree import TreeTest

DESIGN = """# Design
<!-- layers -->
```text
base   ->
report -> base
tune   -> report
```
<!-- /layers -->
"""


class Layers(TreeTest):
    def setUp(self):
        super().setUp()
        self.room("base")
        self.room("report", "base")
        self.room("tune", "report")
        self.write("src/base/units.h", "#pragma once\n")
        self.write("src/report/document.h", '#include "base/units.h"\n')
        self.write("src/tune/verdict.h", "#include <vector>\n")
        self.write("docs/DESIGN.md", DESIGN)

    def room(self, name, *links):
        libraries = " ".join(f"halfwatt::{link}" for link in links)
        self.write(f"src/{name}/CMakeLists.txt",
                   f"halfwatt_room({name}\n  a.cpp)  # halfwatt::nothing\n"
                   f"target_link_libraries(halfwatt_{name}\n  PUBLIC {libraries} fmt::fmt)\n")

    def test_is_content_with_a_tree_that_keeps_to_it(self):
        self.write("src/tune/a.cpp", '#include "tune/verdict.h"\n#include "base/units.h"\n')
        self.assertEqual(self.problems("layers"), [])

    def test_finds_an_include_of_a_room_above(self):
        self.write("src/report/a.cpp", '\n  #  include "tune/verdict.h"\n')
        self.assertEqual(self.problems("layers"), [
            'src/report/a.cpp:2: report may not include "tune/verdict.h": it may use base '
            "(target_link_libraries in src/report/CMakeLists.txt)"])

    def test_finds_it_in_angle_brackets(self):
        self.write("src/base/a.h", "#include <tune/verdict.h>\n")
        self.assertEqual(len(self.problems("layers")), 1)

    def test_finds_an_include_that_is_not_written_from_src(self):
        self.write("src/tune/a.cpp", '#include "verdict.h"\n')
        self.assertEqual(self.problems("layers"), [
            'src/tune/a.cpp:1: "verdict.h" is no file under src/; includes are written from src/'])

    def test_finds_a_circle(self):
        self.room("base", "tune")
        found = self.problems("layers")
        self.assertIn("src/base/CMakeLists.txt:1: a circle: base -> tune -> report -> base", found)

    def test_finds_a_link_to_no_room(self):
        self.room("report", "base", "attic")
        self.assertIn("src/report/CMakeLists.txt:1: report names halfwatt::attic, which is no room",
                      self.problems("layers"))

    def test_finds_a_drawing_that_says_something_else(self):
        self.write("docs/DESIGN.md", DESIGN.replace("tune   -> report", "tune   -> base"))
        self.assertEqual(self.problems("layers"), [
            "docs/DESIGN.md:6: the drawing must say `tune -> report`, "
            "as src/tune/CMakeLists.txt does"])

    def test_finds_a_room_that_is_not_drawn_and_one_that_is_drawn_only(self):
        self.write("docs/DESIGN.md", DESIGN.replace("tune ", "cook "))
        self.assertEqual(len(self.problems("layers")), 2)

    def test_finds_a_missing_drawing(self):
        self.write("docs/DESIGN.md", "# Design\n")
        self.assertIn("no block between", self.problems("layers")[0])

    def test_knows_rooms_in_rooms(self):
        self.write("src/engine/graph/CMakeLists.txt",
                   "halfwatt_room(graph node.cpp)\n"
                   "target_link_libraries(halfwatt_graph PUBLIC halfwatt::base)\n")
        self.write("docs/DESIGN.md", DESIGN.replace("tune ", "graph -> base\ntune "))
        self.write("src/engine/graph/node.cpp", '#include "tune/verdict.h"\n')
        self.assertEqual(len(self.problems("layers")), 1)


if __name__ == "__main__":
    unittest.main()
