"""The hash that keys kept code covers every file that an emission comes from.

python3 hash_sources_test.py <cmake> <root> <source>...: the sources are those that compiler/codegen/CMakeLists.txt hashes.
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

CMAKE, ROOT, SOURCES = sys.argv[1], pathlib.Path(sys.argv[2]), [pathlib.Path(source) for source in sys.argv[3:]]


class HashSources(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.copy = pathlib.Path(self.folder.name)
        for name in ("compiler", "kernels", "runtime"):
            shutil.copytree(ROOT / name, self.copy / name)

    def hash(self):
        """The hash of the copy, and the files that it is made of."""
        sources = ";".join(str(self.copy / source.relative_to(ROOT)) for source in SOURCES)
        output, depfile = self.copy / "hash.inc", self.copy / "hash.d"
        subprocess.run([CMAKE, f"-DROOT={self.copy}", f"-DSOURCES={sources}", f"-DOUTPUT={output}",
                        f"-DDEPFILE={depfile}", "-P", ROOT / "cmake" / "HashSources.cmake"], check=True)
        names = [name for name in depfile.read_text().split() if name != "\\"]
        return output.read_text(), [str(pathlib.Path(name).relative_to(self.copy)) for name in names[1:]]

    def hash_with_change_in(self, name):
        path = self.copy / name
        before = path.read_text()
        path.write_text(before + "\n// changed\n")
        changed, _ = self.hash()
        path.write_text(before)
        return changed

    def test_what_an_emission_comes_from_changes_the_hash(self):
        before, files = self.hash()
        for name in ("kernels/scalar/unary.h",  # a functor of generated and hand-written kernels
                     "kernels/scalar/philox.h", "kernels/window.cc", "compiler/element/number_functions.h",
                     "compiler/dialect/nn/norm_emission.cc", "compiler/dialect/fusion_plan.cc",
                     "compiler/dialect/activation/activation_ops.td", "compiler/codegen/host_sweep.cc"):
            with self.subTest(name):
                self.assertIn(name, files)
                self.assertNotEqual(self.hash_with_change_in(name), before)
        self.assertEqual(self.hash()[0], before)

    def test_what_it_does_not_come_from_does_not(self):
        before, files = self.hash()
        for name in ("kernels/reference/random.cc", "compiler/report/report.cc", "runtime/cuda/device_step.cc"):
            with self.subTest(name):
                self.assertNotIn(name, files)
                self.assertEqual(self.hash_with_change_in(name), before)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
