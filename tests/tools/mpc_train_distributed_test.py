#!/usr/bin/env python3
"""mpc-train in several processes: what launchers start has the state of one process that accumulates.

Usage: mpc_train_distributed_test.py MPC_TRAIN [MPIRUN]
"""
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import unittest

TRAIN = sys.argv.pop(1)
MPIRUN = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else ""
# 1,437 digits make 44 batches, which two and four processes divide.
ARGUMENTS = ["lenet5", "--epochs=1", "--drop-remainder", "--amp-level=O2", "--threads=1"]
LIMIT = 120


def tensors(path):
    """The bytes of each tensor of a checkpoint, without the sums over micro-batches."""
    content = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    data = content[8 + length:]
    return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items()
            if name != "__metadata__" and not name.startswith("accumulator.")}


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start(rank, size, port, *arguments):
    """One process, with the variables of torchrun."""
    environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank),
                       LOCAL_WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    return subprocess.Popen([TRAIN, *ARGUMENTS, *arguments], env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)


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
        return tensors(saved)

    def test_processes_of_torchrun_have_the_bits_of_one(self):
        for size in (2, 4):
            saved = self.path(f"saved{size}.safetensors")
            port = free_port()
            results = finish([start(rank, size, port, "--distributed", f"--save={saved}") for rank in range(size)])
            for status, output, errors in results:
                self.assertEqual(status, 0, output + errors)
            self.assertIn(f"{size} processes train together, each with 1 threads", results[0][1])
            self.assertIn("test accuracy", results[0][1])
            for _, output, _ in results[1:]:
                self.assertEqual(output, "")
            self.assertEqual(tensors(saved), self.alone(size))

    def test_processes_of_mpirun_have_the_bits_of_one(self):
        if not MPIRUN:
            print("skipped: mpirun is not installed", flush=True)
            return
        saved = self.path("saved.safetensors")
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        job = subprocess.run([MPIRUN, "-n", "2", "--oversubscribe", "--bind-to", "none", *root, TRAIN, *ARGUMENTS,
                              "--distributed", f"--save={saved}"], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(job.returncode, 0, job.stdout + job.stderr)
        self.assertEqual(tensors(saved), self.alone(2))

    def test_options_that_differ_are_named_by_both(self):
        port = free_port()
        results = finish([start(0, 2, port, "--distributed", "--clip-norm=1"),
                          start(1, 2, port, "--distributed", "--clip-norm=2")])
        for status, _, errors in results:
            self.assertEqual(status, 1)
            self.assertIn('rank 0 has "clip_global_norm: 1", rank 1 has "clip_global_norm: 2"', errors)

    def test_a_process_without_a_launcher_trains_alone(self):
        result = subprocess.run([TRAIN, *ARGUMENTS, "--distributed"], capture_output=True, text=True, timeout=LIMIT)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("1 processes train together", result.stdout)

    def test_a_variable_that_is_out_of_range_is_named(self):
        result = finish([start(2, 2, free_port(), "--distributed")])[0]
        self.assertEqual(result[0], 1)
        self.assertIn("RANK", result[2])


if __name__ == "__main__":
    unittest.main()
