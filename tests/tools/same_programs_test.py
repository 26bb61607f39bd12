"""What tools/same_programs sees, on stand-ins for mpc-opt: same_programs_test.py TOOLS."""
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path(sys.argv.pop(1)) / "same_programs"
# Lists a Program whose arena and region's name are given.
STAND_IN = """#!/bin/sh
arena={arena}
budget=
for each in "$@"; do
  case "$each" in
    --amp-level=auto) echo "mpc-opt: error: no such level" >&2; exit 1;;
    --memory-budget=*) arena=70; budget="$each";;
  esac
done
echo "program @train_step for cpu, arena $arena bytes, constants 0 bytes"
echo "state (1, 5 bytes)"
echo "$budget"
echo "  %1 = generated {{code = \\"r{region}_0\\"}}"
"""


class SamePrograms(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def stand_in(self, name, arena, region):
        path = pathlib.Path(self.folder.name) / name
        path.write_text(STAND_IN.format(arena=arena, region=region * 32))
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    def run_on(self, *arguments):
        return subprocess.run([sys.executable, PROGRAM, *arguments], capture_output=True, text=True)

    def test_names_of_regions_are_no_difference(self):
        run = self.run_on(f"--old={self.stand_in('old', 100, 'a')}", f"--new={self.stand_in('new', 100, 'b')}",
                          "--models=lenet5")
        self.assertEqual(run.returncode, 0, run.stdout + run.stderr)
        self.assertIn("0 of 40 cases differ; 8 have no Program in either build", run.stdout)

    def test_a_difference_is_shown(self):
        out = pathlib.Path(self.folder.name) / "listings"
        run = self.run_on(f"--old={self.stand_in('old', 100, 'a')}", f"--new={self.stand_in('new', 200, 'a')}",
                          "--models=lenet5", "--devices=cpu", f"--out={out}")
        self.assertEqual(run.returncode, 1, run.stdout + run.stderr)
        self.assertIn("lenet5 O0 train cpu free: differs", run.stdout)
        self.assertIn("+program @train_step for cpu, arena 200 bytes", run.stdout)
        # The budget is that of the old build in both.
        self.assertNotIn("lenet5 O0 train cpu budget: differs", run.stdout)
        self.assertIn("8 of 20 cases differ", run.stdout)
        self.assertTrue((out / "lenet5-O0-train-cpu-free.new.txt").exists())

    def test_a_golden_that_changed_is_shown(self):
        goldens = pathlib.Path(self.folder.name) / "goldens.txt"
        old, new = self.stand_in("old", 100, "a"), self.stand_in("new", 200, "a")
        written = self.run_on(f"--new={old}", f"--goldens={goldens}", "--cudnn=9", "--update")
        self.assertEqual(written.returncode, 0, written.stdout + written.stderr)
        self.assertEqual(self.run_on(f"--new={old}", f"--goldens={goldens}", "--cudnn=9").returncode, 0)
        changed = self.run_on(f"--new={new}", f"--goldens={goldens}", "--cudnn=9")
        self.assertEqual(changed.returncode, 1)
        self.assertIn("arena 100 state 5", changed.stdout)
        self.assertIn("arena 200 state 5", changed.stdout)
        other = self.run_on(f"--new={old}", f"--goldens={goldens}", "--cudnn=10")
        self.assertEqual(other.returncode, 0, other.stdout)
        self.assertIn("sm_90 is not compared", other.stdout)

    def test_bad_arguments_are_refused(self):
        old = self.stand_in("old", 100, "a")
        for arguments, message in (((), "--new"), ((f"--new={old}",), "give --old or --goldens"),
                                   ((f"--new={old}", "--old=/nowhere"), "no program that can be run"),
                                   ((f"--new={old}", f"--old={old}", "--devices=tpu"), "choose from cpu, sm_90"),
                                   ((f"--new={old}", f"--old={old}", "--update"), "--update needs --goldens")):
            run = self.run_on(*arguments)
            self.assertEqual(run.returncode, 2)
            self.assertIn(message, run.stderr)


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[1:]])
