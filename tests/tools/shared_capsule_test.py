#!/usr/bin/env python3
"""Capsules of steps that processes share: mpc-train writes them, mpc-run, mpc-opt and mpc-bisect read them alone.

Usage: shared_capsule_test.py BIN_FOLDER [MPIRUN]
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import ranks  # noqa: E402

BIN = pathlib.Path(sys.argv.pop(1))
MPIRUN = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else ""
LENET5 = ["lenet5", "--epochs=1", "--drop-remainder", "--amp-level=O2", "--threads=1", "--amp-verbosity=0"]
LIMIT = 120


def tool(name, *arguments):
    return subprocess.run([BIN / name, *arguments], capture_output=True, text=True, timeout=LIMIT)


class SharedCapsule(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def train(self, size, *arguments):
        """What rank 0 of a group says on standard error."""
        processes = ranks.start_ranks([BIN / "mpc-train", *arguments, "--distributed"], size, stdout=subprocess.PIPE,
                                      stderr=subprocess.PIPE, text=True)
        said = []
        for process in processes:
            output, errors = process.communicate(timeout=LIMIT)
            self.assertEqual(process.returncode, 0, output + errors)
            said.append(errors)
        for errors in said[1:]:
            self.assertNotIn("capsule", errors)
        return said[0]

    def succeed(self, name, *arguments):
        result = tool(name, *arguments)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_the_first_bad_step_is_repeated_and_compiled_anew(self):
        capsule = self.path("x")
        said = self.train(2, *LENET5, f"--capsule={capsule}")
        self.assertIn("capsule of step 1 (not finite): writing ", said)
        self.assertIn(", 2 micro-batches of 2 ranks to ", said)
        text = self.succeed("mpc-run", f"--replay={capsule}", "--threads=2")
        self.assertIn("  of 2 micro-batches of 2 ranks\n", text)
        self.assertRegex(text, r"first operation whose result is not finite: .*micro-batch 1 of 2 \(rank 0\)\n")
        self.assertRegex(text, r"every bit is equal: \d+ outputs and \d+ state entries after the step, in each of 2 ranks")
        text = self.succeed("mpc-opt", f"--replay={capsule}", "--trace")
        self.assertIn("as it was: not finite\nin micro-batch 1 of 2 (rank 0):\nfirst value that is not finite at loss "
                      "scale 16777216: backward pass: cast for 'loss' (f16)", text)
        for change in ("scale=1024", "bf16", "O0"):
            self.assertIn(f", {change}: finite\n", self.succeed("mpc-opt", f"--replay={capsule}", f"--what-if={change}"))

    def test_accumulation_in_processes_has_two_programs(self):
        capsule = self.path("x")
        self.train(2, *LENET5, "--accumulation=2", f"--capsule={capsule}")
        text = self.succeed("mpc-run", f"--replay={capsule}")
        self.assertRegex(text, r"accumulate_step, .*micro-batch 1 of 4 \(rank 0\)\n")
        self.assertIn("every bit is equal: ", text)
        self.assertIn("in micro-batch 1 of 4 (rank 0):\n", self.succeed("mpc-opt", f"--replay={capsule}"))
        self.assertIn(": finite\n", self.succeed("mpc-opt", f"--replay={capsule}", "--what-if=scale=1024"))

    def test_two_processes_are_compared_with_one_that_accumulates(self):
        two, one, other = self.path("two"), self.path("one"), self.path("other")
        self.train(2, *LENET5, f"--capsule={two}", "--capsule-at=3", "--loss-scale=128")
        for arguments, path in (([], one), (["--seed=8"], other)):
            self.succeed("mpc-train", *LENET5, "--distributed", "--accumulation=2", f"--capsule={path}",
                         "--capsule-at=3", "--loss-scale=128", *arguments)
        text = self.succeed("mpc-bisect", two, one)
        self.assertIn("no result that is compared differs\n", text)
        self.assertRegex(text, r"\nboth steps compute the same \d\d+ results; all are compared\n")
        self.assertIn("no difference: ", text)
        result = tool("mpc-bisect", two, other)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        self.assertIn("first operation whose result differs: ", result.stdout)
        # Four micro-batches, of which two processes accumulate two each.
        for size, path in ((2, two), (1, one)):
            self.train(size, *LENET5, f"--accumulation={4 // size}", f"--capsule={path}", "--capsule-at=2",
                       "--loss-scale=128")
        self.assertIn("no difference: ", self.succeed("mpc-bisect", one, two))
        same = self.succeed("mpc-bisect", two, two)
        self.assertIn("; all are compared\n", same)

    def test_random_numbers_of_each_rank_are_repeated(self):
        capsule = self.path("x")
        self.train(2, "gpt2-tiny", "--data=text", "--steps=8", "--sample=0", "--threads=1", "--quiet", "--dropout=0.1",
                   f"--capsule={capsule}", "--capsule-at=2")
        self.assertIn("every bit is equal: ", self.succeed("mpc-run", f"--replay={capsule}"))

    def test_a_step_of_mpirun_is_repeated(self):
        if not MPIRUN:
            print("skipped: mpirun is not installed", flush=True)
            return
        capsule = self.path("x")
        command = [BIN / "mpc-train", *LENET5, "--distributed", "--transport=mpi", f"--capsule={capsule}"]
        job = subprocess.run(ranks.mpirun_command(MPIRUN, 2, command), env=ranks.mpi_environment(),
                             capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
        self.assertIn("every bit is equal: ", self.succeed("mpc-run", f"--replay={capsule}"))
        job = subprocess.run(ranks.mpirun_command(MPIRUN, 2, [*command, "--reduction=fast"]),
                             env=ranks.mpi_environment(), capture_output=True, text=True, timeout=LIMIT)
        self.assertNotEqual(job.returncode, 0)
        self.assertIn("a capsule needs reduction = kOrdered where processes exchange by \"mpi\"", job.stderr)

    def test_a_damaged_file_is_named(self):
        capsule = self.path("x")
        self.train(2, *LENET5, f"--capsule={capsule}", "--capsule-at=1")
        content = bytearray(pathlib.Path(capsule).read_bytes())
        content[len(content) // 2] ^= 1
        pathlib.Path(capsule).write_bytes(content)
        result = tool("mpc-run", f"--replay={capsule}")
        self.assertEqual(result.returncode, 1)
        self.assertIn(capsule, result.stderr)


if __name__ == "__main__":
    unittest.main()
