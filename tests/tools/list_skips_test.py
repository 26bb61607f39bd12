"""What tests/list_skips.py finds in a log of ctest: list_skips_test.py TESTS."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)) / "list_skips.py"


def entry(number, name, output, verdict):
    return (f'{number}/9 Testing: {name}\n{number}/9 Test: {name}\nCommand: "{name}"\nDirectory: folder\n'
            f'"{name}" start time: Nov 23 17:44 UTC\nOutput:\n{"-" * 58}\n{output}<end of output>\nTest time =   0.01 sec\n'
            f'{"-" * 58}\n{verdict}\n"{name}" end time: Nov 23 17:44 UTC\n"{name}" time elapsed: 00:00:00\n{"-" * 58}\n\n')


PASSED = entry(1, "plain_test", "[  PASSED  ] 1 test.\n", "Test Passed.")
SKIPS_INSIDE = entry(2, "gtest", "[ RUN      ] Suite.A\na/b_test.cc:7: Skipped\nno GPU: none\nis here\n\n"
                     "[  SKIPPED ] Suite.A (0 ms)\n[ RUN      ] Suite.B/1\na/b_test.cc:7: Skipped\nno GPU: none is here\n"
                     "[  SKIPPED ] Suite.B/1, where GetParam() = 1 (2 ms)\n[  SKIPPED ] 2 tests, listed below:\n"
                     "[  SKIPPED ] Suite.A\n[  SKIPPED ] Suite.B/1\n", "Test Passed.")
LIT = entry(3, "lit", "********************\nUnsupported Tests (1):\n  mpc :: models/cuda.test\n\n", "Test Passed.")
WHOLE = entry(4, "script", "skipped: python3 has no numpy\n", "Test Pass Reason:\nSkip regular expression found in output.")
FAILED = entry(5, "broken", "no\n", "Test Failed.")


class ListSkips(unittest.TestCase):
    def run_on(self, log, allowed, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder) / name for name in ("log", "allowed")]
            for path, text in zip(paths, (log, allowed)):
                path.write_text(text)
            return subprocess.run([sys.executable, PROGRAM, *paths, *arguments], capture_output=True, text=True)

    def test_skips_are_named_with_their_reasons(self):
        run = self.run_on(PASSED + SKIPS_INSIDE + LIT + WHOLE + FAILED, "# why\n*: no GPU: *\n")
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertEqual(run.stdout.splitlines(), [
            "Tests that skipped: 4 in 5 entries of ctest",
            "  skipped: gtest (Suite.A and 1 more): no GPU: none is here",
            "  skipped: lit (models/cuda.test): a feature that it requires is missing [not in the list of allowed skips]",
            "  skipped: script: python3 has no numpy [not in the list of allowed skips]"])

    def test_a_skip_that_is_not_listed_fails_where_that_is_asked(self):
        self.assertEqual(self.run_on(PASSED + SKIPS_INSIDE, "*: no GPU: *", "--strict").returncode, 0)
        run = self.run_on(SKIPS_INSIDE + WHOLE, "*: no GPU: *", "--strict")
        self.assertEqual(run.returncode, 1)
        self.assertIn("1 tests skipped", run.stderr)

    def test_a_log_without_tests_fails(self):
        self.assertEqual(self.run_on("", "").returncode, 1)

    def test_a_missing_log_is_an_error(self):
        run = subprocess.run([sys.executable, PROGRAM, "/nowhere/log", "/nowhere/list"], capture_output=True, text=True)
        self.assertEqual(run.returncode, 2)
        self.assertIn("/nowhere/log", run.stderr)


if __name__ == "__main__":
    unittest.main()
