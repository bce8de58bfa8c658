import unittest

from tree import TreeTest


def body(lines):
    return "  f();\n" * lines


class Size(TreeTest):
    def found(self, text, name="src/a/a.cpp"):
        self.write(name, text)
        return self.problems("size")

    def test_is_content_at_the_limit(self):
        self.assertEqual(self.found("void f() {\n" + body(58) + "}\n"), [])
        self.assertEqual(self.found("int a;\n" * 600), [])

    def test_finds_a_long_file(self):
        self.assertEqual(self.found("int a;\n" * 601),
                         ["src/a/a.cpp:1: 601 lines, more than 600: split the file"])

    def test_finds_a_long_function(self):
        self.assertEqual(
            self.found("namespace a {\n\nint C::f(int x)\n    const {\n" + body(58) + "}\n}\n"),
            ["src/a/a.cpp:3: C::f has 61 lines, more than 60: split the function"])

    def test_finds_a_long_function_in_many_guises(self):
        for head in ("template <class T, class U = A<T>>\nauto f(T t) -> std::vector<T> {\n",
                     "C::C(int x) : a_(x), b_{x}, c_{{1}} {\n",
                     "TEST(A, b) {\n",
                     "Result<void> f(S s = {}) noexcept {\n",
                     "bool operator==(const A& a) {\n",
                     "struct A {\n  void f() { f(); }\n  int g(char c = '{') override {\n",
                     "const auto f = [](int x) {\n"):
            with self.subTest(head=head):
                self.assertEqual(len(self.found(head + body(61) + "}\n")), 1)

    def test_lets_classes_namespaces_and_tables_be_long(self):
        for text in ("namespace a {\nclass B : public C<int()> {\n" + "  void f() {}\n" * 70 + "};\n}\n",
                     "constexpr Row kRows[] = {\n" + "  {1, f(2)},\n" * 70 + "};\n",
                     "enum class E {\n" + "  a,\n" * 70 + "};\n"):
            with self.subTest(text=text[:20]):
                self.assertEqual(self.found(text), [])

    def test_is_not_misled_by_braces_that_are_none(self):
        self.assertEqual(self.found(
            "// {\n/* { */\n#define X {\nvoid f() {\n"
            "  g('{', \"{\\\"\", R\"x({)\" {)x\", 1'000);\n}\n" + "int a;\n" * 70), [])

    def test_finds_a_long_python_function(self):
        self.assertEqual(len(self.found("def f():\n" + "    g()\n" * 60, "tools/a.py")), 1)

    def test_lets_data_of_tests_be_long(self):
        self.assertEqual(self.found("a\n" * 700, "tests/golden/a.html"), [])


if __name__ == "__main__":
    unittest.main()
