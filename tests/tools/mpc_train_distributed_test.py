#!/usr/bin/env python3
"""mpc-train in several processes: what launchers start has the state of one process that accumulates.

Usage: mpc_train_distributed_test.py MPC_TRAIN [MPIRUN]
"""
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import ranks  # noqa: E402

TRAIN = sys.argv.pop(1)
MPIRUN = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else ""
# 1,437 digits make 44 batches, which two and four processes divide.
ARGUMENTS = ["lenet5", "--epochs=1", "--drop-remainder", "--amp-level=O2", "--threads=1"]
LIMIT = 120


def start(rank, size, port, *arguments):
    return ranks.start_rank([TRAIN, *ARGUMENTS, "--distributed", *arguments], rank, size, port, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


def start_both(of_rank_0, of_rank_1):
    """Two processes with arguments of their own."""
    port = ranks.free_port()
    return [start(0, 2, port, *of_rank_0), start(1, 2, port, *of_rank_1)]


def finish(processes):
    """(exit status, standard output, standard error) of each."""
    results = []
    for process in processes:
        output, errors = process.communicate(timeout=LIMIT)
        results.append((process.returncode, output, errors))
    return results


class Distributed(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def alone(self, micro_batches):
        saved = self.path(f"alone{micro_batches}.safetensors")
        subprocess.run([TRAIN, *ARGUMENTS, f"--accumulation={micro_batches}", f"--save={saved}"], check=True,
                       capture_output=True, timeout=LIMIT)
        return ranks.tensors(saved)

    def test_processes_of_torchrun_have_the_bits_of_one(self):
        for size, steps in ((2, 1), (2, 2), (4, 1)):
            saved = self.path(f"saved{size}.safetensors")
            port = ranks.free_port()
            results = finish([start(rank, size, port, f"--accumulation={steps}", f"--save={saved}") for rank in range(size)])
            for status, output, errors in results:
                self.assertEqual(status, 0, output + errors)
            self.assertIn(f"{size} processes train together, each with 1 threads", results[0][1])
            self.assertIn("test accuracy", results[0][1])
            for _, output, _ in results[1:]:
                self.assertEqual(output, "")
            self.assertEqual(ranks.tensors(saved), self.alone(size * steps))

    def test_processes_of_mpirun_have_the_bits_of_one_over_both_transports(self):
        if not MPIRUN:
            print("skipped: mpirun is not installed", flush=True)
            return
        for transport in ("shared", "mpi"):
            saved = self.path(f"{transport}.safetensors")
            command = [TRAIN, *ARGUMENTS, "--distributed", f"--transport={transport}", f"--save={saved}"]
            job = subprocess.run(ranks.mpirun_command(MPIRUN, 2, command), capture_output=True, text=True,
                                 timeout=LIMIT)
            self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
            self.assertEqual(ranks.tensors(saved), self.alone(2), transport)

    def test_text_has_the_schedule_of_one_process(self):
        arguments = ["gpt2-tiny", "--data=text", "--steps=16", "--sample=0", "--threads=1", "--quiet"]
        saved = [self.path("two.safetensors"), self.path("one.safetensors")]
        processes = ranks.start_ranks([TRAIN, *arguments, "--distributed", f"--save={saved[0]}"], 2,
                                      stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for status, output, errors in finish(processes):
            self.assertEqual(status, 0, output + errors)
        subprocess.run([TRAIN, *arguments, "--accumulation=2", f"--save={saved[1]}"], check=True, capture_output=True,
                       timeout=LIMIT)
        self.assertEqual(ranks.tensors(saved[0]), ranks.tensors(saved[1]))

    def test_the_flags_of_gradients_have_the_bits_of_one_process(self):
        flags = ["--communication-dtype=bf16", "--loss-weight=elements", "--reduction=fast", "--bucket-mib=1"]
        saved = [self.path(name) for name in ("two.safetensors", "one.safetensors", "f32.safetensors")]
        port = ranks.free_port()
        for status, output, errors in finish([start(rank, 2, port, *flags, f"--save={saved[0]}") for rank in range(2)]):
            self.assertEqual(status, 0, output + errors)
        for more, path in ((flags, saved[1]), ([], saved[2])):
            subprocess.run([TRAIN, *ARGUMENTS, "--distributed", "--accumulation=2", *more, f"--save={path}"], check=True,
                           capture_output=True, timeout=LIMIT)
        two, one, wide = (ranks.tensors(path) for path in saved)
        self.assertEqual(two, one)
        self.assertNotEqual(two, wide)

    def test_accumulation_is_a_power_of_two(self):
        port = ranks.free_port()
        for status, _, errors in finish([start(rank, 2, port, "--accumulation=3") for rank in range(2)]):
            self.assertEqual(status, 1)
            self.assertIn("accumulation_steps is 3; where training is data parallel accepted are powers of two", errors)

    def test_a_process_without_a_launcher_trains_alone(self):
        result = subprocess.run([TRAIN, *ARGUMENTS, "--distributed"], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 processes train together", result.stdout)


class Signals(unittest.TestCase):
    def stopped(self, victim, number, name):
        """Sends a signal to one process of two; all must end with its code and say so, and rank 0 must have saved."""
        with tempfile.TemporaryDirectory() as folder:
            processes = ranks.start_ranks([TRAIN, *ARGUMENTS, "--epochs=1000", "--distributed", f"--save={folder}/",
                                           "--save-every=5"], 2, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                          text=True)
            end = time.monotonic() + LIMIT
            while not os.listdir(folder) and time.monotonic() < end:
                time.sleep(0.01)
            processes[victim].send_signal(number)
            for status, output, errors in finish(processes):
                self.assertEqual(status, 128 + number, output + errors)
                self.assertIn(f"stopped by {name} at the end of a step, as all 2 processes; saved in {folder}/", errors)
            checkpoints = [int(name.rpartition("-")[2].partition(".")[0]) for name in os.listdir(folder)]
            # Saved at the step that the processes have agreed on, and not at a multiple of five alone.
            resumed = subprocess.run([TRAIN, *ARGUMENTS, "--accumulation=2", f"--resume={folder}/"],
                                     capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual(resumed.returncode, 0, resumed.stderr)
            self.assertIn(f": {max(checkpoints)} steps", resumed.stdout)

    def test_sigterm_of_any_process_ends_all_with_143(self):
        self.stopped(1, signal.SIGTERM, "SIGTERM")

    def test_ctrl_c_of_rank_0_ends_all_with_130(self):
        self.stopped(0, signal.SIGINT, "SIGINT")


class Refusals(unittest.TestCase):
    def refused(self, processes, *texts):
        for status, output, errors in finish(processes):
            self.assertEqual(status, 1, output + errors)
            for text in texts:
                self.assertRegex(errors, text)

    def test_options_that_differ_are_named_by_both(self):
        self.refused(start_both(["--clip-norm=1"], ["--clip-norm=2"]),
                     'rank 0 has "clip_global_norm: 1", rank 1 has "clip_global_norm: 2"')

    def test_seeds_that_differ(self):
        self.refused(start_both(["--seed=1"], ["--seed=2"]), 'rank 0 has "seed: 1", rank 1 has "seed: 2"')

    def test_data_sets_of_other_sizes(self):
        self.refused(start_both(["--batch-size=32"], ["--batch-size=16"]),
                     'rank 0 has "batches of an epoch: 44", rank 1 has "batches of an epoch: 89"')

    def test_numbers_of_threads_that_differ(self):
        self.refused(start_both(["--threads=1"], ["--threads=2"]), 'rank 0 has "threads: 1", rank 1 has "threads: 2"')

    def test_numbers_of_epochs_that_differ(self):
        self.refused(start_both([], ["--epochs=2"]), 'rank 0 has "epochs: 1", rank 1 has "epochs: 2"')

    def test_numbers_of_processes_that_differ(self):
        port = ranks.free_port()
        self.refused([start(0, 2, port), start(1, 4, port)], "was told of 2 ranks and rank 1 .* of 4")

    def test_transports_that_differ(self):
        self.refused(start_both(["--transport=shared"], []), '"transport": rank 0 has shared, rank 1 has auto')

    def test_mpi_without_its_launcher(self):
        self.refused(start_both(["--transport=mpi"], ["--transport=mpi"]), 'transport "mpi": (no launcher of MPI has '
                     "started this process|this build has no MPI transport)|rank [01] .* has failed: transport \"mpi\"")

    def test_a_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            self.refused([start(0, 2, port)], f"127.0.0.1:{port}.* in use")

    def test_a_variable_that_is_out_of_range(self):
        self.refused([start(2, 2, ranks.free_port())], "RANK")

    def test_reductions_that_differ(self):
        self.refused(start_both(["--reduction=fast"], []), 'rank 0 has "reduction: kFast", rank 1 has "reduction: kOrdered"')

    def test_a_flag_of_processes_for_one_process(self):
        for flag in ("--transport=shared", "--loss-weight=elements", "--communication-dtype=f16", "--reduction=fast",
                     "--bucket-mib=0"):
            result = subprocess.run([TRAIN, *ARGUMENTS, flag], capture_output=True, text=True, timeout=LIMIT)
            self.assertEqual(result.returncode, 2)
            self.assertIn(f"{flag} needs --distributed", result.stderr)


if __name__ == "__main__":
    unittest.main()
