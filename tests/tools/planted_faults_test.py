"""The list of planted faults fits the tree, and what tools/planted_faults does: planted_faults_test.py ROOT."""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1)).resolve()
PROGRAM = ROOT / "tools" / "planted_faults"

SOURCE = """int Sum(int a, int b) {
  int sum = a + b;
  if (sum < 0) return 0;
  sum += 0;
  return sum;
}
"""
# "sum < 0" is never true of what the test sums.
TEST = """int Sum(int a, int b);
int main() { return Sum(2, 3) == 5 && Sum(2, 0) == 2 ? 0 : 1; }
"""
PROJECT = """cmake_minimum_required(VERSION 3.25)
project(stand_in LANGUAGES CXX)
include_directories("${PROJECT_SOURCE_DIR}")
enable_testing()
add_executable(sum_test sum.cc sum_test.cc)
add_test(NAME sum_test COMMAND sum_test)
# A script is no target, and needs the tools.
add_test(NAME sum_script COMMAND sh -c "$<TARGET_FILE:sum_test>")
foreach(tool mpc-bisect mpc-opt mpc-run mpc-train)
  add_custom_target(${tool} COMMAND "${CMAKE_COMMAND}" -E touch "${PROJECT_BINARY_DIR}/${tool}")
endforeach()
"""
LIST = """# A comment.
tests: sum_test sum_script
file: sum.cc
- int sum = <| a + b
  => a - b |>;
- if (<| sum < 0 => false |>) return 0;
- <| sum += 0; => |>
  = it adds nothing
"""


class List(unittest.TestCase):
    """What is wrong with a list is an error that names the entry."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "sum.cc").write_text(SOURCE)

    def check(self, text):
        path = self.root / "faults.txt"
        path.write_text(text)
        return subprocess.run([sys.executable, PROGRAM, "--check", f"--root={self.root}", f"--list={path}"],
                              capture_output=True, text=True)

    def expect_error(self, text, message):
        done = self.check(text)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn(message, done.stderr)

    def test_counts_what_it_finds(self):
        done = self.check(LIST)
        self.assertEqual((done.returncode, done.stdout), (0, "3 faults in 1 files\n"), done.stderr)

    def test_refuses_what_is_not_there_once(self):
        self.expect_error("tests: t\nfile: sum.cc\n- int total = <| a => b |>", "found 0 times")
        self.expect_error("tests: t\nfile: sum.cc\n- <| sum => total |>", "found 4 times")
        self.expect_error("tests: t\nfile: gone.cc\n- <| a => b |>", "gone.cc is no file")

    def test_refuses_what_changes_nothing(self):
        self.expect_error("tests: t\nfile: sum.cc\n- return sum;", "has no change")
        self.expect_error("tests: t\nfile: sum.cc\n- <| a + b => a + b |>;", "changes nothing")

    def test_refuses_what_is_no_expression(self):
        for change in ("<| + b => |>", "int sum = a <| + => - |> b", "sum <| < => <= |> 0"):
            self.expect_error(f"tests: t\nfile: sum.cc\n- {change}", "neither an expression nor a statement")

    def test_refuses_faults_that_overlap(self):
        self.expect_error("tests: t\nfile: sum.cc\n- <| a + b => a |>;\n- int sum = a + <| b => a |>;", "overlap")

    def test_refuses_what_it_cannot_read(self):
        self.expect_error("tests: t\nfile: sum.cc\nfault: <| a => b |>", "cannot read \"fault:")

    def test_fits_this_tree(self):
        done = subprocess.run([sys.executable, PROGRAM, "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertGreater(int(done.stdout.split()[0]), 100)


class Run(unittest.TestCase):
    """A stand-in of one source and one test, through the build."""

    def setUp(self):
        if not all(map(shutil.which, ("cmake", "ninja", "git"))):
            self.skipTest("cmake, ninja or git is not installed")
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name) / "tree"
        self.root.mkdir()
        files = {"sum.cc": SOURCE, "sum_test.cc": TEST, "CMakeLists.txt": PROJECT, "faults.txt": LIST}
        for name, text in files.items():
            (self.root / name).write_text(text)
        subprocess.run(["git", "init", "-q", self.root], check=True)

    def run_on(self, *arguments):
        return subprocess.run(
            [sys.executable, PROGRAM, f"--root={self.root}", f"--list={self.root / 'faults.txt'}",
             f"--copy={self.root.parent / 'copy'}", f"--results={self.root.parent / 'results'}", *arguments],
            capture_output=True, text=True, env={**os.environ, "MPC_PLANTED_FAULT": "1"})

    def test_tells_what_is_caught_from_what_survives(self):
        done = self.run_on()
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("sum.cc:2  a + b => a - b  sum_test ends with 1", done.stdout)
        self.assertIn("sum.cc:4  sum += 0; =>  changes nothing: it adds nothing", done.stdout)
        self.assertIn("1 of 2 planted faults are caught; 1 change nothing\nsurvived: sum.cc:3: if (<|", done.stdout)
        # Another run repeats nothing, but a test that is to see the survivor.
        (self.root.parent / "results").write_text("".join(
            line for line in (self.root.parent / "results").open() if "survived" not in line))
        (self.root / "sum_test.cc").write_text(TEST.replace("Sum(2, 0) == 2", "Sum(-2, 0) == 0"))
        done = self.run_on()
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("2 of 2 planted faults are caught; 1 change nothing", done.stdout)

    def test_refuses_tests_that_fail_without_a_fault(self):
        (self.root / "sum_test.cc").write_text(TEST.replace("== 5", "== 6"))
        done = self.run_on()
        self.assertEqual(done.returncode, 2)
        self.assertIn("sum_test fails without any fault", done.stderr)


if __name__ == "__main__":
    unittest.main()
