"""tools/fetch_wheel.sh takes the file that it was told of, and no other: fetch_wheel_test.py ROOT."""
import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import zipfile

ROOT = pathlib.Path(sys.argv.pop())
WHEEL = "mpc_planted-1.0-py3-none-any.whl"


class FetchWheel(unittest.TestCase):
    def setUp(self):
        self.scratch = tempfile.TemporaryDirectory()
        self.addCleanup(self.scratch.cleanup)
        self.offered, self.target = (pathlib.Path(self.scratch.name) / name for name in ("offered", "target"))
        self.offered.mkdir()
        with zipfile.ZipFile(self.offered / WHEEL, "w") as wheel:
            wheel.writestr("mpc_planted-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: mpc-planted\nVersion: 1.0\n")
            wheel.writestr("mpc_planted-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
            wheel.writestr("mpc_planted-1.0.dist-info/RECORD", "")
        self.digest = hashlib.sha256((self.offered / WHEEL).read_bytes()).hexdigest()

    def fetch(self, *arguments):
        environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.offered)}
        return subprocess.run([ROOT / "tools/fetch_wheel.sh", *arguments], capture_output=True, text=True, timeout=60,
                              check=False, env=environment)

    def test_the_expected_file_is_brought(self):
        done = self.fetch("mpc-planted==1.0", WHEEL, self.digest, self.target)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.target / WHEEL).read_bytes(), (self.offered / WHEEL).read_bytes())

    def test_another_content_is_refused(self):
        done = self.fetch("mpc-planted==1.0", WHEEL, "0" * 64, self.target)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"{WHEEL} is not the file that was expected: its SHA-256 is {self.digest}, not {'0' * 64}", done.stderr)

    def test_another_name_is_refused(self):
        done = self.fetch("mpc-planted==1.0", "mpc_planted-1.0-py2-none-any.whl", self.digest, self.target)
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"expected mpc_planted-1.0-py2-none-any.whl, got: {WHEEL}", done.stderr)

    def test_a_version_that_is_not_offered_is_an_error(self):
        self.assertNotEqual(self.fetch("mpc-planted==2.0", WHEEL, self.digest, self.target).returncode, 0)

    def test_onednn_is_left_alone_where_it_cannot_be_fetched(self):
        self.target.mkdir()
        (self.target / "VERSION").write_text("an earlier one\n")
        environment = {**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(self.offered)}
        done = subprocess.run([ROOT / "tools/fetch_onednn.sh", self.target], capture_output=True, text=True, timeout=60,
                              check=False, env=environment)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual((self.target / "VERSION").read_text(), "an earlier one\n")
        self.assertEqual(sorted(path.name for path in self.target.parent.iterdir()), ["offered", "target"])


if __name__ == "__main__":
    unittest.main()
