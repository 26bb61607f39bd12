#!/usr/bin/env python3
"""The scripts of tools/gpu_check.sh as far as they need no GPU: gpu_scripts_test.py TOOLS. Exit status 77: skipped."""

import importlib
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(sys.argv.pop(1))
SCRIPTS = TOOLS / "gpu"

try:
    import numpy
except ImportError:
    print("skipped: python3 has no numpy")
    sys.exit(77)

sys.dont_write_bytecode = True
sys.path.insert(0, str(SCRIPTS))
runs, kernel_tests, compare_devices, worst_kernels, step_times = (
    importlib.import_module(name)
    for name in ("runs", "kernel_tests", "compare_devices", "worst_kernels", "step_times"))


def write_tensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, value) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(value.shape),
                        "data_offsets": [len(data), len(data) + value.nbytes]}
        data += value.tobytes()
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


class GpuScripts(unittest.TestCase):
    def setUp(self):
        holder = tempfile.TemporaryDirectory()
        self.addCleanup(holder.cleanup)
        self.folder = pathlib.Path(holder.name)

    def record(self, part, status, text, *flags):
        log = self.folder / "part.log"
        log.write_text(text)
        subprocess.run([sys.executable, SCRIPTS / "record_part.py", f"--results={self.folder / 'results.jsonl'}",
                        "--stage=truth", f"--part={part}", f"--status={status}", "--seconds=1", "--limit=2",
                        f"--log={log}", *flags], check=True, capture_output=True)

    def table(self):
        return subprocess.run([sys.executable, SCRIPTS / "results_table.py", self.folder / "results.jsonl",
                               "--stage=truth"], check=False, capture_output=True, text=True)

    def test_a_long_table_stays_below_ten_thousand_characters_and_names_every_part(self):
        for index in range(40):
            self.record(f"part-{index}", 1, "\n".join(["x" * 400] * 30))
        table = self.table()
        self.assertEqual(table.returncode, 1)
        self.assertLess(len(table.stdout), 10000)
        for index in range(40):
            self.assertIn(f"part-{index} ", table.stdout)

    def test_the_last_run_of_a_part_counts(self):
        self.record("again", 124, "slow")
        self.assertIn("ran out of time", self.table().stdout)
        self.record("again", 0, "fine")
        self.assertEqual(self.table().returncode, 0)

    def test_a_part_left_out_has_not_passed(self):
        self.record("late", "left-out", "")
        self.assertEqual(self.table().returncode, 1)
        self.assertIn("left out", self.table().stdout)

    def test_measurements_become_numbers(self):
        measured = self.folder / "measured.json"
        measured.write_text(json.dumps({"batch": 32, "step_seconds": {"median": 0.002, "p5": 0.001, "p95": 0.003},
                                        "steps_per_second": 500, "memory_bytes": {"total": 2**20}}))
        self.record("speed", 0, "done", f"--json={measured}")
        self.assertIn("16000.0 samples/s; ms a step: median 2.000", self.table().stdout)

    def test_state_files_are_read_and_changed_bit_for_bit(self):
        first, second = self.folder / "first", self.folder / "second"
        write_tensors(first, {"weight": ("F32", numpy.arange(6, dtype=numpy.float32).reshape(2, 3)),
                              "scaler.scale": ("F32", numpy.float32(8))})
        runs.write_state(second, first, {"scaler.scale": 2.0**100})
        before, after = runs.read_state(first), runs.read_state(second)
        self.assertEqual(runs.different_bits(before, after), ["scaler.scale"])
        self.assertEqual(after["scaler.scale"], numpy.float32(2.0**100))
        self.assertEqual(runs.different_bits(before, {}), ["scaler.scale", "weight"])

    def test_values_that_are_not_finite_on_one_device_only_are_an_infinite_difference(self):
        self.assertEqual(compare_devices.worst_loss([1.0, None], [1.0, 2.0]), float("inf"))
        self.assertEqual(compare_devices.worst_loss([1.0, None], [1.0, None]), 0)

    def test_skipped_tests_are_counted_apart(self):
        results = self.folder / "results.json"
        tests = [{"name": "a", "result": "COMPLETED"}, {"name": "b", "result": "SKIPPED"},
                 {"name": "c", "result": "COMPLETED", "failures": [{"failure": "x"}]}]
        results.write_text(json.dumps({"testsuites": [{"name": "S", "testsuite": tests}]}))
        self.assertEqual(kernel_tests.counts_of([results]), (1, 1, ["S.c"]))

    def test_counters_are_summed_by_kernel(self):
        rows = ['"ID","Kernel Name","Metric Name","Metric Value"']
        for launch in (0, 1):
            rows.append(f'"{launch}","Map(int, int)","{worst_kernels.TIME}","12,000"')
            rows.append(f'"{launch}","Map(int, int)","{worst_kernels.MEMORY}","50"')
            rows.append(f'"{launch}","Map(int, int)","{worst_kernels.ARITHMETIC}","n/a"')
        lines = worst_kernels.table("\n".join(rows))
        self.assertIn("24.0 us    2 x  memory  50.0 %  arithmetic   0.0 %  Map(int, int)", lines[0])

    def test_times_are_summed_by_kernel(self):
        lines = step_times.table([{"kernel": "relu", "scope": "net/0", "median_us": 3.0},
                                  {"kernel": "relu", "scope": "net/1", "median_us": 1.0}])
        self.assertIn("4.0 us 100.0 %     2 x relu", lines[0])
        self.assertIn("4.0 us in 2 instructions", lines[-1])

    def test_shell_scripts_parse(self):
        for script in [*TOOLS.glob("gpu_*.sh"), *SCRIPTS.glob("*.sh")]:
            subprocess.run(["bash", "-n", script], check=True)


if __name__ == "__main__":
    unittest.main()
