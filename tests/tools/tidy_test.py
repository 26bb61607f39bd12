"""tools/tidy sees what it must in small trees: tidy_test.py ROOT."""
import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop())
PROGRAM = "clang-tidy-22"
SKIPPED = 77
NAMING = "readability-identifier-naming"


class Tidy(unittest.TestCase):
    def judge(self, sources, *arguments, status, unit=None):
        """What tools/tidy says of a tree that has `sources`, {path: text}, and the checks of this one.

        Where `unit` is a path, CMake compiles this file, which includes all sources.
        """
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder).resolve()
            for name in ["tools/tidy", ".clang-tidy", "compiler/.clang-tidy", "tests/.clang-tidy"]:
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(ROOT / name, root / name)
            commands = []
            for path, text in sources.items():
                (root / path).parent.mkdir(parents=True, exist_ok=True)
                (root / path).write_text(text)
                compiler = "nvcc" if path.endswith(".cu") else "c++"
                llvm = " -isystem /usr/lib/llvm-22/include" if path.startswith("compiler/") else ""
                commands.append({"directory": str(root), "file": str(root / path),
                                 "command": f"{compiler} -I{root}{llvm} -O3 -fPIC -std=c++20 -o o -c {root / path}"})
            if unit:
                (root / unit).parent.mkdir(parents=True)
                (root / unit).write_text("".join(f'#include "{root / path}"\n\n' for path in sources))
                commands = [{**commands[0], "file": str(root / unit)}]
            (root / "build/default").mkdir(parents=True, exist_ok=True)
            (root / "build/default/compile_commands.json").write_text(
                json.dumps([command for command in commands if not command["file"].endswith(".h")]))
            done = subprocess.run([root / "tools/tidy", *arguments], cwd=root, capture_output=True, text=True,
                                  timeout=300, check=False)
            self.assertEqual(done.returncode, status, done.stdout + done.stderr)
            return done.stdout

    def test_a_clean_tree_passes(self):
        said = self.judge({"kernels/sum.cc": "int Sum(int a, int b) { return a + b; }\n",
                           "compiler/sum.cc": "int sumOf(int firstOne) { return firstOne; }\n"}, status=0)
        self.assertIn("tidy: 0 findings in 2 sources", said)

    def test_a_name_in_the_wrong_style_is_a_line(self):
        said = self.judge({"kernels/sum.cc": "int Sum(int a) {\n  int badName = a;\n  return badName;\n}\n",
                           "compiler/sum.cc": "int sumOf(int first_one) { return first_one; }\n"}, status=1)
        self.assertIn(f"kernels/sum.cc:2:7: invalid case style for variable 'badName' [{NAMING}]\n", said)
        self.assertIn(f"compiler/sum.cc:1:15: invalid case style for parameter 'first_one' [{NAMING}]\n", said)
        self.assertIn("tidy: 2 findings", said)

    def test_the_sources_of_a_unit_are_judged(self):
        unit = "build/default/kernels/CMakeFiles/kernels.dir/Unity/unity_0_cxx.cxx"
        said = self.judge({"kernels/sum.cc": "int Sum(int badName) { return badName; }\n",
                           "kernels/product.cc": "int Product(int a) { return a * a; }\n"}, status=1,
                          unit=unit)
        self.assertIn(f"kernels/sum.cc:1:13: invalid case style for parameter 'badName' [{NAMING}]\n", said)
        self.assertIn("tidy: 1 findings in 2 sources", said)

    def test_a_header_is_judged_once(self):
        said = self.judge({"kernels/sum.h": "#pragma once\nint Sum(int badName);\n",
                           "kernels/a.cc": '#include "kernels/sum.h"\nint A() { return Sum(1); }\n',
                           "runtime/b.cc": '#include "kernels/sum.h"\nint B() { return Sum(2); }\n'}, status=1)
        self.assertIn("tidy: 1 findings", said)
        self.assertIn("kernels/sum.h:2:13: ", said)

    def test_what_tests_break_on_purpose_is_a_finding_elsewhere_alone(self):
        text = "double Half(int a) {\n  const double half = a / 2;\n  return half;\n}\n"
        said = self.judge({"kernels/half.cc": text, "tests/quarter.cc": text.replace("Half", "Quarter")}, status=1)
        self.assertIn("kernels/half.cc:2:", said)
        self.assertIn("[bugprone-integer-division]", said)
        self.assertIn("tidy: 1 findings", said)

    def test_a_pattern_that_is_a_fault_is_a_line(self):
        said = self.judge({"kernels/sum.cc": "void Run(int* a) {\n  if (*a);\n  *a = 1;\n}\n"}, status=1)
        self.assertIn("kernels/sum.cc:2:10: potentially unintended semicolon [bugprone-suspicious-semicolon", said)

    def test_sources_with_the_same_names_are_judged_apart(self):
        # The second name is hidden from a look at the lines: the compiler refuses it.
        source = "static int kept = 1;\nnamespace {\n  int%s hidden = 1;\n}\nint %s() { int badName = kept + hidden; return badName; }\n"
        said = self.judge({"kernels/a.cc": source % ("", "A"), "kernels/b.cc": source % ("", "B"),
                           "kernels/c.cc": "namespace {\n  int hidden = 2;\n}\nint C() { int badName = hidden; return badName; }\n"},
                          status=1)
        for name in "abc":
            self.assertRegex(said, rf"kernels/{name}\.cc:\d:\d+: invalid case style for variable 'badName'")
        self.assertIn("tidy: 3 findings", said)

    def test_what_the_compiler_refuses_alone_is_a_finding(self):
        said = self.judge({"kernels/a.cc": '#include "missing.h"\n',
                           "kernels/b.cc": "int B() { int badName = 1; return badName; }\n"}, status=1)
        self.assertIn("kernels/a.cc:1:10: 'missing.h' file not found", said)
        self.assertIn("kernels/b.cc:1:15: invalid case style for variable 'badName'", said)

    def test_quick_leaves_out_tests_and_mlir(self):
        bad = "int Sum() { int badName = 1; return badName; }\n"
        sources = {"tests/a.cc": bad, "compiler/b.cc": bad, "kernels/c.cc": "int C() { return 1; }\n", "kernels/d.cu": bad}
        said = self.judge(sources, "--quick", status=0)
        self.assertIn("in 1 sources", said)
        self.assertIn("left out: 2 sources that are tests or need MLIR's headers; left out: 1 sources that nvcc compiles", said)
        self.judge(sources, "kernels", status=0)
        self.judge(sources, "tests/a.cc", status=1)


if __name__ == "__main__":
    if not shutil.which(PROGRAM):
        print(f"skipped: {PROGRAM} is not installed")
        sys.exit(SKIPPED)
    unittest.main()
