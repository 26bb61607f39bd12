"""The scripts that run nets agree with what they run, and refuse what they do not know: net_scripts_test.py ROOT."""
import json
import pathlib
import re
import subprocess
import sys
import unittest

ROOT = pathlib.Path(sys.argv.pop())
USAGE_ERROR = 2


def text(name):
    return (ROOT / name).read_text()


def run(*command):
    return subprocess.run([ROOT / command[0], *command[1:]], capture_output=True, text=True, timeout=60, check=False)


def words(pattern, content):
    return re.search(pattern, content, re.MULTILINE | re.DOTALL)[1].split()


class Scripts(unittest.TestCase):
    def refuses(self, command, *parts):
        done = run(*command)
        self.assertEqual(done.returncode, USAGE_ERROR, done.stderr)
        for part in parts:
            self.assertIn(part, done.stderr)

    def test_unknown_arguments_are_refused_by_name(self):
        self.refuses([".ci/long", "sleep"], "'sleep' is no stage", "asan", "fuzz")
        self.refuses([".ci/long", "fuzz", "sleep"], "'sleep' is no stage")
        self.refuses(["tools/sanitize.sh", "msan"], "'msan'", "asan-short")
        self.refuses(["tools/fuzz.sh"], "no reader is given", "safetensors")
        self.refuses(["tools/fuzz.sh", "tiff"], "'tiff' is no reader", "gzip_rows")
        self.refuses(["tools/fuzz.sh", "npy", "--runs=0"], "'--runs=0' has no positive whole number")
        self.refuses(["tools/fuzz.sh", "npy", "--runs=5", "--seconds=5"], "--runs and --seconds are given")
        self.refuses(["tools/fuzz.sh", "npy", "--jobs=5"], "'--jobs=5' is unknown")
        self.refuses(["tools/tidy", "nowhere"], "'nowhere' is neither a file nor a folder")
        self.refuses(["tools/setup.sh", "--with-mpl"], "unknown option '--with-mpl'; give --with-mpi or nothing")

    def test_every_stage_has_a_function_and_a_duration(self):
        script = text(".ci/long")
        stages = [line.split()[0] for line in re.search(r"^stages=\(\n(.*?)^\)", script, re.M | re.S)[1].splitlines()]
        self.assertEqual(stages, re.findall(r"^stage_(\w+)\(\)", script, re.M))
        for stage in stages:
            self.assertRegex(text("docs/testing.md"), r"(?m)^\| `%s` \|.*\|$" % stage)

    def test_each_reader_has_a_fuzzer_and_a_corpus(self):
        readers = sorted(words(r"^readers=\((.*?)\)", text("tools/fuzz.sh")))
        self.assertEqual(readers, sorted(re.findall(r"^mpc_add_fuzzer\((\w+) ", text("tests/fuzz/libfuzzer/CMakeLists.txt"), re.M)))
        self.assertEqual(readers, sorted(path.name for path in (ROOT / "tests/fuzz/corpus").iterdir()))
        self.assertEqual(readers, sorted(re.findall(r'Reader\{"(\w+)"', text("tests/fuzz/corpus_test.cc"))))

    def test_sanitizers_presets_build_what_they_test(self):
        presets = json.loads(text("CMakePresets.json"))
        built = {preset["name"]: preset.get("targets") for preset in presets["buildPresets"]}
        for preset in presets["testPresets"]:
            chosen = preset.get("filter", {}).get("include", {}).get("name")
            targets = built.get(preset["name"])
            self.assertEqual(chosen is None, targets is None, preset["name"])
            if targets is not None:
                self.assertEqual(chosen, "^(%s)$" % "|".join(targets))


if __name__ == "__main__":
    unittest.main()
