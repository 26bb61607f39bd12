#!/usr/bin/env python3
"""The scripts of tools/gpu_check.sh as far as they need no GPU: gpu_scripts_test.py TOOLS. Exit status 77: skipped."""

import importlib
import json
import os
import pathlib
import re
import shutil
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
runs, kernel_tests, compare_devices, perturb_state, worst_kernels, step_times, thin_state, timeline = (
    importlib.import_module(name) for name in ("runs", "kernel_tests", "compare_devices", "perturb_state",
                                               "worst_kernels", "step_times", "thin_state", "timeline"))

# In place of bin/mpc-run: it writes the results of a load, fails with a choice cache, or ends the whole check as a
# machine that dies does.
FAKE_RUN = """#!/usr/bin/env bash
case "$*" in *--load-only*--data=*|*--load-only*--steps=*|*--data=*--load-only*|*--steps=*--load-only*) exit 2 ;; esac
for flag in "$@"; do
  case "$flag" in
    --help) exit 0 ;;
    --choice-cache=*) echo "a choice is refused" >&2; exit 1 ;;
    --json=*) echo '{"load_seconds": 1.5, "memory_bytes": {"total": 1048576}}' > "${flag#--json=}" ;;
  esac
done
if [[ "${DIES_AT:-none}" != none && "$*" == *"$DIES_AT"* ]]; then kill -KILL "$(cat check.pid)"; fi
"""


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
        one, other = numpy.float32([1, 2]), numpy.float32([1, 2.5])
        found = {"a": numpy.float32([1, numpy.nan]), "b": other}
        self.assertEqual(compare_devices.worst_tensor({"a": one, "b": one}, found), (float("inf"), "a"))
        self.assertEqual(compare_devices.worst_tensor({"a": one, "b": one}, {"a": one, "b": other}), (0.25, "b"))

    def test_a_log_tells_what_became_of_each_test(self):
        log = ["[==========] Running 5 tests from 1 test suite.", "[ RUN      ] S.a", "[       OK ] S.a (1 ms)",
               "[ RUN      ] S.b", "no GPU: none", "[  SKIPPED ] S.b (0 ms)", "[ RUN      ] S.c/0",
               "[  FAILED  ] S.c/0, where GetParam() = (1, 2) (30 ms)", "[ RUN      ] S.dies",
               "[  FAILED  ] 1 test, listed below:"]
        self.assertEqual(kernel_tests.outcomes_of(log),
                         {"S.a": "OK", "S.b": "SKIPPED", "S.c/0": "FAILED", "S.dies": "RUN"})

    def test_tests_that_failed_run_again_alone(self):
        program = self.folder / "tests"
        program.write_text("""#!/bin/sh
case "$1" in
  --gtest_filter=S.real) echo "[ RUN      ] S.real"; echo "a.cc:1: Failure"; echo "it is wrong"; exit 1 ;;
esac
""")
        program.chmod(0o755)
        log = self.folder / "alone.log"
        alone = kernel_tests.run_again([str(program)], ["S.real", "S.victim"], 2, log)
        self.assertEqual([name for name, _ in alone], ["S.real"])
        self.assertIn("it is wrong", log.read_text())
        self.assertNotIn("S.victim", log.read_text())

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

    def test_a_timeline_tells_the_launches_of_the_last_graph(self):
        lines = []
        for launch in range(4):
            begin = 100_000 * launch
            graph = 1 + launch % 2
            for node, (first, last, name) in enumerate([(0, 4000, "_ZN3mpc4cuda12_GLOBAL__N_9MapKernelEv"),
                                                        (5000, 9000, "r0_0"), (7000, 12000, "r0_1")]):
                lines.append(f"{begin + first}\t{begin + last}\t{graph}\t{graph}{node}\t1,1,1\t64\t20\t0\t{name}\n")
            lines.append(f"{begin}\t{begin + 50}\t0\t0\t-\t0\t0\t4\tcopy\n")
        found = timeline.launches(timeline.activities([*lines, "1\t2\t"]))
        self.assertEqual([len(launch) for launch in found], [3, 3])
        summary, nodes = timeline.table(found)
        self.assertIn("5.0 us  38.5 %     1 x r0_1", summary[0])
        self.assertIn("12.0 us of 3 nodes, which take 13.0 us; nothing ran for 1.0 us, several nodes for 2.0 us",
                      summary[-1])
        self.assertIn("MapKernel", nodes[0])

    def check(self, *stages, **environment):
        """Runs gpu_check.sh with programs that stand in for the packed ones; gives what it kept, by file."""
        folder, kept = self.folder / "bundle", self.folder / "kept"
        (folder / "bin").mkdir(parents=True)
        shutil.copytree(SCRIPTS, folder / "tools")
        shutil.copy(TOOLS / "gpu_check.sh", folder)
        for name, text in (("mpc-run", FAKE_RUN), ("gpu_kernel_test", "#!/bin/sh\n")):
            (folder / "bin" / name).write_text(text)
            (folder / "bin" / name).chmod(0o755)
        process = subprocess.Popen(["bash", folder / "gpu_check.sh", *stages], stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL,
                                   env={**os.environ, "OUT": str(kept), "PYTHON": sys.executable, **environment})
        (folder / "check.pid").write_text(str(process.pid))
        process.wait(timeout=120)
        return process.returncode, {path.name: path.read_bytes() for path in kept.iterdir()}

    def test_a_stage_that_dies_leaves_what_was_found_before(self):
        status, kept = self.check("tune", "explain", DIES_AT="gpt2")
        self.assertNotEqual(status, 0)
        self.assertNotIn("explain.txt", kept)
        records = [json.loads(line) for line in kept["results.jsonl"].decode().splitlines()]
        self.assertEqual([record["part"] for record in records],
                         ["lenet5", "lenet5-no-cache", "resnet50", "resnet50-no-cache", "gpt2"])
        self.assertIn("loaded in 1.50 s; peak 1 MiB", kept["tune.txt"].decode())

    def test_parts_that_run_beside_each_other_are_all_recorded(self):
        status, kept = self.check("truth", "compare")
        self.assertEqual(status, 1)
        records = [json.loads(line) for line in kept["results.jsonl"].decode().splitlines()]
        parts = [record["part"] for record in records if record["stage"] == "truth"]
        self.assertEqual(len(parts), len(set(parts)))
        self.assertLessEqual({"operations", "networks", "nccl", "parity-bnnet-O2-f16", "eight-a-launch", "overflow",
                              "train-lenet5-O2", "replay", "load-gpt2-again", "peer-gpt2-compile"}, set(parts))
        table = kept["truth.txt"].decode()
        for part in parts:
            self.assertIn(f"{part} ", table)
        self.assertIn("results.tar.gz", kept)

    def test_peers_are_compiled_ahead_only_where_they_are_timed(self):
        _, kept = self.check("truth")
        self.assertNotIn("peer-", kept["results.jsonl"].decode())

    def test_a_run_that_the_choice_cache_fails_is_tried_without_it(self):
        status, kept = self.check("tune")
        self.assertEqual(status, 1)
        table = kept["tune.txt"].decode()
        for network in ("lenet5", "resnet50", "gpt2"):
            self.assertRegex(table, rf"{network} +failed \(1\)")
            self.assertRegex(table, rf"{network}-no-cache +passed")

    def test_each_stage_ends_within_a_call_and_all_within_30_minutes(self):
        text = (TOOLS / "gpu_check.sh").read_text()
        limits = [int(line.split("echo ")[1].split()[0]) for line in text.splitlines() if ") echo " in line]
        self.assertEqual(len(limits), 10)
        self.assertLessEqual(max(limits), 9 * 60)
        self.assertLessEqual(sum(limits), 30 * 60)

    def test_a_thinned_state_has_evenly_spread_elements(self):
        path = self.folder / "state"
        large = numpy.arange(10000, dtype=numpy.float16).reshape(100, 100)
        write_tensors(path, {"large": ("F16", large), "small": ("F32", numpy.float32([[1, 2]]))})
        whole = compare_devices.thinned(runs.read_state(path))
        thin_state.thin(path)
        self.assertEqual(runs.different_bits(whole, runs.read_state(path)), [])
        self.assertEqual(whole["large"].tolist()[:3], [0, 3, 6])
        self.assertEqual(whole["small"].tolist(), [1, 2])

    def test_perturbed_parameters_lie_one_unit_away_and_nothing_else_moves(self):
        source, path = self.folder / "source", self.folder / "path"
        weight = numpy.float32([1, -2, 0, numpy.inf, 3e-41, 5])
        kept = {"half": ("F16", numpy.float16([1])), "count": ("I32", numpy.int32([7])),
                "scaler.scale": ("F32", numpy.float32([1024])), "optimizer.weight.velocity": ("F32", weight)}
        write_tensors(source, {"weight": ("F32", weight), **kept})
        perturb_state.perturb(source, path)
        before, after = runs.read_state(source), runs.read_state(path)
        self.assertEqual(runs.different_bits(before, after), ["weight"])
        units = after["weight"].view(numpy.int32) - before["weight"].view(numpy.int32)
        self.assertEqual(numpy.abs(units).tolist(), [1, 1, 0, 0, 1, 1])
        again = self.folder / "again"
        perturb_state.perturb(source, again)
        self.assertEqual(again.read_bytes(), path.read_bytes())

    def test_rebuilding_takes_the_sources_that_tests_of_kernels_share(self):
        root = TOOLS.resolve().parent
        pattern = re.search(r"tests/kernels/\S+", (SCRIPTS / "rebuild.sh").read_text()).group()
        taken = subprocess.run(["bash", "-c", f"echo {pattern}"], cwd=root, check=True, capture_output=True,
                               text=True).stdout.split()
        library = re.search(r"add_library\(mpc_kernel_test_support STATIC([^)]*)\)",
                            (root / "tests/kernels/CMakeLists.txt").read_text()).group(1)
        self.assertEqual(sorted(taken), sorted(f"tests/kernels/{source}" for source in library.split()))

    def test_shell_scripts_parse(self):
        for script in [*TOOLS.glob("gpu_*.sh"), *SCRIPTS.glob("*.sh")]:
            subprocess.run(["bash", "-n", script], check=True)


if __name__ == "__main__":
    unittest.main()
