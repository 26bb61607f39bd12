"""tools/benchmark_pages on pages of its own, with a program in place of mpc-bench: benchmark_pages_test.py TOOLS."""
import contextlib
import importlib
import io
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOLS = pathlib.Path(sys.argv.pop(1))
sys.dont_write_bytecode = True
sys.path.insert(0, str(TOOLS / "benchmark_pages"))
page_commands, reduction_model, tables, write_pages = (
    importlib.import_module(name) for name in ("page_commands", "reduction_model", "tables", "write_pages"))

# Copies the result that a test prepared to the file that --json names.
FAKE_BENCH = """#!/usr/bin/env bash
for flag in "$@"; do
  case "$flag" in
    fails) echo "no such network" >&2; exit 3 ;;
    --json=*) file="${flag#--json=}" ;;
  esac
done
[[ -z "${file:-}" ]] || cp "$(dirname "$0")/result.json" "$file"
"""

BUSY = """{"rows": [
  {"model": "lenet5", "batch": 32, "mode": "f32", "sizes": {}, "busy": 0,
   "mpc": {"settings": "fused regions", "median": 0.001, "version": "mpc 0.2.0"},
   "peer": {"name": "mpc-one-thread", "median": 0.002, "version": "mpc 0.2.0"},
   "ratio": {"median": 2.0, "p5": 1.5, "p95": 2.25}},
  {"model": "lenet5", "batch": 32, "mode": "f32", "sizes": {}, "busy": 4,
   "mpc": {"settings": "fused regions", "median": 0.004, "version": "mpc 0.2.0"},
   "peer": {"name": "mpc-one-thread", "median": 0.0038, "version": "mpc 0.2.0"},
   "ratio": {"median": 0.95, "p5": 0.9, "p95": 1.0}}]}
"""

PAGE = """# Page

<!-- long: it measures -->
```sh
mpc-bench lenet5:32 \\
  --peer=mpc-one-thread --json=busy.json  # a comment
```

<!-- table: busy busy.json -->
old
<!-- end of table -->

The file is [busy.json](busy.json).

```sh
mpc-bench fails
```
"""

TABLE = """<!-- table: busy busy.json -->

| busy processes | lenet5:32 |
|---|---|
| 0 | 2.00 (1.50 .. 2.25) |
| 4 | 0.95 (0.90 .. 1.00) |

<!-- end of table -->
"""


class Pages(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)
        self.page = self.folder / "page.md"
        (self.folder / "mpc-bench").write_text(FAKE_BENCH)
        (self.folder / "mpc-bench").chmod(0o755)
        (self.folder / "result.json").write_text(BUSY)

    def write(self, text, *flags):
        """The page after the tool has run, or what it ends with."""
        self.page.write_text(text)
        sys.argv = ["write_pages.py", f"--programs={self.folder}", *flags, str(self.page)]
        with contextlib.redirect_stdout(io.StringIO()) as self.output:
            write_pages.main()
        return self.page.read_text()

    def refusal(self, text, *flags):
        """The message of a refusal, which leaves the page as it was."""
        with self.assertRaises(SystemExit) as ended:
            self.write(text, *flags)
        self.assertEqual(self.page.read_text(), text)
        return str(ended.exception)

    def test_a_table_is_written_anew_and_the_rest_stays(self):
        written = self.write(PAGE)
        self.assertEqual(written, PAGE[:PAGE.index("<!-- table")] + TABLE + PAGE[PAGE.index("\nThe file is"):])
        self.assertEqual((self.folder / "busy.json").read_text(), BUSY)
        self.assertEqual(self.write(written), written)

    def test_short_runs_measure_and_write_nothing(self):
        self.assertEqual(self.write(PAGE, "--short"), PAGE)
        self.assertIn("--json=busy.json --steps=1", self.output.getvalue())
        self.assertNotIn("--peer", self.output.getvalue())

    def test_only_leaves_tables_of_other_files(self):
        page = PAGE.replace("# a comment\n", "\nmpc-bench mlp:1 --json=mlp.json\n")
        page += "\n<!-- table: ratios mlp.json -->\nold\n<!-- end of table -->\n"
        written = self.write(page, "--only=busy.json")
        self.assertIn(TABLE, written)
        self.assertIn("<!-- table: ratios mlp.json -->\nold\n", written)
        self.assertNotIn("mlp:1", self.output.getvalue())

    def test_printed_tables_and_conditions(self):
        page = ("<!-- long: it measures -->\n```sh\necho '| a |' > a.txt\n```\n"
                "<!-- table: printed a.txt -->\n<!-- end of table -->\n"
                "<!-- table: conditions -->\n<!-- end of table -->\n")
        written = self.write(page)
        self.assertIn("<!-- table: printed a.txt -->\n\n| a |\n\n<!-- end of table -->", written)
        self.assertRegex(written, r"Measured on \d{4}-\d\d-\d\d at revision [0-9a-f]{7,}.*: mpc \d+\.\d+\.\d+; .+ \(")

    def test_refusals_name_what_is_wrong(self):
        self.assertIn("exit status 3 of mpc-bench fails", self.refusal(PAGE.replace("lenet5:32", "fails")))
        self.assertIn("no such network", self.refusal(PAGE.replace("lenet5:32", "fails")))
        self.assertIn("no command wrote other.json", self.refusal(PAGE.replace("busy busy.json", "busy other.json")))
        self.assertIn("table 'pie'; there are busy, choices, conditions", self.refusal(PAGE.replace("table: busy", "table: pie")))
        self.assertIn("has no end", self.refusal(PAGE.replace("<!-- end of table -->", "")))
        self.assertIn("no command writes x.json", self.refusal(PAGE, "--only=x.json"))
        self.assertIn("'profiles'", self.refusal(PAGE.replace("table: busy", "table: profile")))
        self.assertIn("a block of commands has no end, or a mark", self.refusal(PAGE.replace("\n```\n\n<!--", "\n\n<!--")))


class Tables(unittest.TestCase):
    def test_ratios_have_a_column_for_each_peer_and_a_row_for_each_setting(self):
        def row(model, peer, settings="fused regions"):
            return {"model": model, "batch": 8, "mode": "f32", "sizes": {"tokens": 4},
                    "mpc": {"settings": settings, "median": 0.0105},
                    "peer": {"name": peer, "median": 1.5}, "ratio": {"median": 3, "p5": 2, "p95": 4}}
        lines = tables.ratios([{"rows": [row("a", "x"), row("a", "y")]}, {"rows": [row("a", "y", "winograd")]}])
        self.assertEqual(lines, [
            "| network:batch | mode | mpc, ms | x, ms | ratio (5 % .. 95 %) | y, ms | ratio (5 % .. 95 %) |",
            "|---|---|---|---|---|---|---|",
            "| a:8, tokens 4 | f32 | 10.5 | 1,500 | 3.00 (2.00 .. 4.00) | 1,500 | 3.00 (2.00 .. 4.00) |",
            "| a:8, tokens 4 | f32, winograd | 10.5 |  |  | 1,500 | 3.00 (2.00 .. 4.00) |"])

    def test_memory_in_mebibytes_and_first_steps_in_seconds(self):
        def contestant(planned, cached):
            return {"settings": "", "peak_bytes": planned, "steps_resident_bytes": 3 << 20,
                    "first_step_seconds": {"cold": 0.0583, "cached": cached}}
        row = {"model": "a", "batch": 1, "mode": "f32", "mpc": contestant(1 << 20, None)}
        peer = dict(contestant(None, 12.34), name="x")
        self.assertEqual(tables.memory([{"rows": [dict(row, peer=peer)]}])[2],
                         "| a:1 | f32 | 1.00 | 3.00 | 3.00 | 0.058 |  | 0.058 | 12.3 |")

    def test_profiles_have_rates(self):
        step = {"model": "a", "batch": 1, "mode": "f32", "step": {"median": 0.5},
                "matrix_work": {"flops": 1e11, "seconds": 0.25, "limit_flops_a_second": 1e12, "limit_instructions": "v"},
                "kernels": [{"name": "pack_weight", "median": 0.01}, {"name": "relu", "median": 1}],
                "loss_scaling": {"median": 0.002, "share": 0.004}}
        self.assertEqual(tables.profile([{"profiles": [step]}])[2],
                         "| a:1 | f32 | 500 | 100 | 50 % | 400 | 40 % (v) | 10.0 | 2.00 | 0.40 % |")

    def test_operations_have_a_column_for_each_type(self):
        def content(dtype):
            return {"limits": {"copy_bytes_per_second": {"median": 3e10, "p5": 2e10, "p95": 4e10}},
                    "rows": [{"op": "gelu", "shape": [2, 3], "limit": "copy", "dtype": dtype,
                              "seconds": {"median": 0.001}, "fraction": {"median": 0.5}}]}
        lines = tables.operations([content("f32"), content("bf16")])
        self.assertEqual(lines[2], "| gelu | 2x3 | copy | 1.00 | 50 % | 1.00 | 50 % |")
        self.assertIn("30.0 (20.0 .. 40.0), then 30.0", lines[-1])

    def test_choices_stand_beside_each_other_that_of_the_rules_first(self):
        def row(op, choice, seconds):
            spread = {"median": seconds, "p5": seconds, "p95": seconds}
            return {"op": op, "choice": choice, "shape": [2, 3], "seconds": spread}
        lines = tables.choices([{"rows": [row("matmul", "own", 0.002), row("matmul", "library", 0.003),
                                          row("add", "own", 0.001)]}])
        self.assertEqual(lines[2:], ["| matmul | 2x3 | own 2.00 | library 3.00 | 1.50 |", "| add | 2x3 | own 1.00 |  |  |"])

    def test_reading_has_a_row_for_each_reader(self):
        def row(workers, best):
            return {"mpc": {"settings": "2 workers", "median": 812.3}, "best": best,
                    "peer": {"name": f"torchvision, {workers} workers", "median": 401.2},
                    "ratio": {"median": 2, "p5": 1.9, "p95": 2.1}}
        lines = tables.reading([{"rows": [row(0, False), row(2, True)],
                                 "pixels": {"pictures": 16, "largest": 1.0, "mean": 0.0001}}])
        self.assertEqual(lines[2:5], [
            "| mpc, 2 workers | 812 |  |",
            "| torchvision, 0 workers | 401 | 2.00 (1.90 .. 2.10) |",
            "| torchvision, 2 workers (best) | 401 | 2.00 (1.90 .. 2.10) |"])
        self.assertEqual(lines[-1], "Pixels of 16 pictures are at most 1.000 levels apart, 0.000100 in the mean.")


    def test_ranks_stand_beside_one_rank_one_process_and_peers(self):
        def row(name, seconds):
            return {"model": "a", "batch": 8, "mode": "f32", "ranks": 2, "threads": 1, "sizes": {},
                    "mpc": {"settings": "fused regions", "median": 0.01, "reduction": {"median": 0.00005}},
                    "overhead": {"median": 1.02, "p5": 1.01, "p95": 1.03},
                    "peer": {"name": name, "median": seconds},
                    "ratio": {"median": 100 * seconds, "p5": 1.0, "p95": 9.0}}
        lines = tables.ranks([{"rows": [row("mpc-rank-alone", 0.0098), row("mpc-one-process", 0.0095),
                                        row("torch-ddp", 0.02)]}])
        self.assertEqual(lines[2], "| a:8 | f32 | 2 x 1 | 10.0 | 9.80 | 0.050 | 1.02 (1.01 .. 1.03) | 9.50 | "
                                   "0.95 (1.00 .. 9.00) | 20.0 | 2.00 (1.00 .. 9.00) |")


class ReductionModel(unittest.TestCase):
    def test_meetings_of_small_and_of_chunked_messages(self):
        self.assertEqual(reduction_model.shared_meetings(8192, 65536), 1)
        self.assertEqual(reduction_model.shared_meetings(8196, 65536), 2)
        self.assertEqual(reduction_model.shared_meetings(65536 * 3 + 4, 65536), 5)
        self.assertEqual(reduction_model.shared_meetings(8192, 4096), 3)

    def test_traffic_of_a_rank(self):
        # Two ranks: half a message written for the other and half of it fetched (each read and written), two halves
        # read to add, and the sum of a half written to the result and to the slot.
        self.assertEqual(reduction_model.shared_traffic(100, 2), 2 * 50 + 2 * 50 + 2 * 50 + 2 * 50)
        self.assertEqual(reduction_model.shared_traffic(100, 4), 2 * 75 + 2 * 75 + 4 * 25 + 2 * 25)

    def test_processors_that_ranks_share_work_one_after_the_other(self):
        rates = reduction_model.Rates(memory=1e9, caches=1e9)
        alone = reduction_model.shared_seconds(1 << 20, 4, 4, 1 << 19, 0.0, rates)
        self.assertEqual(reduction_model.shared_seconds(1 << 20, 4, 8, 1 << 19, 0.0, rates), alone)
        self.assertEqual(reduction_model.shared_seconds(1 << 20, 4, 2, 1 << 19, 0.0, rates), 2 * alone)
        self.assertAlmostEqual(reduction_model.shared_seconds(1 << 20, 4, 4, 1 << 19, 2.0, rates) - alone, 3 * 2.0)
        longer = reduction_model.Rates(memory=1e9, caches=1e9, sharing=3.0)
        self.assertEqual(reduction_model.shared_seconds(1 << 20, 4, 4, 1 << 19, 0.0, longer), alone)
        self.assertAlmostEqual(reduction_model.shared_seconds(1 << 20, 4, 2, 1 << 19, 0.0, longer), 6 * alone)

    def test_what_stays_in_caches(self):
        slot = 1 << 19
        # Two ranks hold two messages and three slots each.
        limit = 2 * (2 * (1 << 22) + 3 * slot)
        self.assertTrue(reduction_model.in_caches(1 << 22, 2, 2, slot, limit))
        self.assertFalse(reduction_model.in_caches(1 << 22, 2, 2, slot, limit - 1))
        self.assertFalse(reduction_model.in_caches(1 << 22, 2, 1, slot, limit))
        self.assertFalse(reduction_model.in_caches(slot, 2, 2, slot, limit))

    def test_halving_sends_what_a_ring_sends(self):
        link = reduction_model.Link(latency=1e-6, rate=1e9)
        for rounds in (1, 2, 3):
            ranks = 2**rounds
            latency, transfer, sums = reduction_model.halving_seconds(1000, [link] * rounds, 1e10)
            self.assertAlmostEqual(transfer, 2 * (ranks - 1) / ranks * 1000 / 1e9)
            self.assertAlmostEqual(sums, 3 * (ranks - 1) / ranks * 1000 / 1e10)
            self.assertAlmostEqual(latency, 2 * rounds * 1e-6)

    def test_each_bucket_has_its_latency_and_a_slow_link_the_last_parts(self):
        near, far = reduction_model.Link(1e-6, 4e9), reduction_model.Link(1e-5, 1e9)
        latency, transfer, _ = reduction_model.halving_seconds(1000, [near, far], 1e10, bucket=300)
        self.assertAlmostEqual(latency, 4 * 2 * 1.1e-5)
        self.assertAlmostEqual(transfer, 2 * (500 / 4e9 + 250 / 1e9))

    def test_measurements_that_follow_the_model_are_met(self):
        expected = reduction_model.Rates(memory=8e9, caches=2e10, sharing=3.0)

        def content(ranks, latency):
            rows = [{"elements": size // 4, "bytes": size, "slot_bytes": 1 << 19, "seconds": {
                "median": reduction_model.shared_seconds(size, ranks, 2, 1 << 19, latency, expected)}}
                for size in (4, 1 << 18, 1 << 22, 1 << 27)]
            return {"ranks": ranks, "processors": 2, "rows": rows}
        contents = [content(2, 1e-6), content(4, 2e-5)]
        rates, latencies = reduction_model.fitted(contents)
        self.assertAlmostEqual(rates.memory / expected.memory, 1, places=2)
        self.assertAlmostEqual(rates.caches / expected.caches, 1, places=2)
        self.assertAlmostEqual(rates.sharing / expected.sharing, 1, places=2)
        self.assertAlmostEqual(latencies[4] / 2e-5, 1, places=2)
        self.assertEqual({row[-1] for row in reduction_model.comparison(contents)}, {"1.00"})
        self.assertIn("for 2 ranks", tables.reductions(contents)[-1])

    def test_the_page_has_what_the_model_says(self):
        page = (TOOLS.parent / "docs" / "distributed.md").read_text()
        for line in reduction_model.markdown(reduction_model.PREDICTIONS_HEADER, reduction_model.predictions()):
            self.assertIn(line + "\n", page)


class Commands(unittest.TestCase):
    def test_shortened(self):
        self.assertEqual(page_commands.shortened("mpc-bench a --peer=torch --runs=3 --json=f"),
                         "mpc-bench a --steps=1 --warmup=1 --runs=1")
        self.assertEqual(page_commands.shortened("mpc-bench --op=a --seconds=8"), "mpc-bench --op=a --seconds=0.05")
        self.assertEqual(page_commands.shortened("mpc-bench --op=a --shape=64x50257"),
                         "mpc-bench --op=a --shape=64x1024 --seconds=0.05")
        self.assertEqual(page_commands.shortened("mpc-bench --all-reduce --json=f"),
                         "mpc-bench --all-reduce --seconds=0.05")
        self.assertEqual(page_commands.shortened("mpc-bench a --profile"), "mpc-bench a --profile --steps=1 --warmup=1")
        self.assertEqual(page_commands.shortened("mpc-bench lenet5:32,256 gpt2:4 --tokens=256 --layers=6 --busy=0,1"),
                         "mpc-bench lenet5:2,3 gpt2:2 --tokens=16 --layers=1 --busy=0,1 --steps=1 --warmup=1 --runs=1")
        self.assertEqual(page_commands.shortened("python3 tools/accuracy/accuracy_table.py m > f"),
                         "python3 tools/accuracy/accuracy_table.py m --models=lenet5 --seeds=1 -- --epochs=1 > f")
        self.assertIsNone(page_commands.shortened("torch/bin/python x.py"))

    def test_paths_of_a_clone_become_absolute(self):
        self.assertEqual(page_commands.located("python3 tools/x.py build/default/bin/mpc-run", "/p"),
                         f"python3 {TOOLS.resolve()}/x.py /p/mpc-run")

    def first_hour(self, text):
        with tempfile.TemporaryDirectory() as folder:
            page = pathlib.Path(folder) / "page.md"
            page.write_text(text)
            return subprocess.run([sys.executable, str(TOOLS / "benchmark_pages" / "first_hour.py"), folder, str(page)],
                                  capture_output=True, text=True, check=False)

    def test_a_first_hour_runs_its_blocks_in_one_folder(self):
        result = self.first_hour("<!-- first hour: writes -->\n```sh\necho a > file   # a comment\n```\n"
                                 "```sh\nfalse\n```\n<!-- first hour: reads -->\n```sh\ncat file\n```\n")
        self.assertEqual(result.returncode, 0, result.stdout)
        self.assertRegex(result.stdout, r"\$ cat file\na\n +\d+\.\d s  writes\n +\d+\.\d s  reads\nPASS\n$")

    def test_a_first_hour_ends_with_what_fails(self):
        result = self.first_hour("<!-- first hour: fails -->\n```sh\necho bad >&2; exit 3\n```\n"
                                 "<!-- first hour: comes too late -->\n```sh\ntrue\n```\n")
        self.assertEqual(result.returncode, 1)
        self.assertIn("FAIL: exit status 3\nbad", result.stdout)
        self.assertNotIn("comes too late", result.stdout)
        self.assertIn("FAIL: page.md has no block", self.first_hour("```sh\ntrue\n```\n").stdout)


if __name__ == "__main__":
    unittest.main()
