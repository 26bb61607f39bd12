#!/usr/bin/env python3
"""Keeps steps of LeNet-5 as capsules and repeats them result by result. The replay of an overflow names the operation in
which it began. Two equal steps have no result that differs. Of two steps whose learning rates differ by the last digits,
the first result that differs is one of the optimizer's."""

import argparse
import pathlib
import re
import subprocess
import sys


class Capsules:
    def __init__(self, arguments):
        self.programs, self.device, self.data = pathlib.Path(arguments.bin), arguments.device, arguments.data
        self.folder = pathlib.Path(arguments.folder)

    def call(self, program, expected, *flags):
        """What a program prints; it has to end with `expected`."""
        command = [str(self.programs / program), *map(str, flags)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode != expected:
            sys.exit(f"{' '.join(command)}\nended with {done.returncode}, not {expected}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def train(self, name, *flags):
        """The capsule of a step, which the flags choose."""
        path = self.folder / f"{name}.capsule"
        self.call("mpc-train", 0, "lenet5", f"--device={self.device}", "--amp-level=O2", "--dtype=f16", "--epochs=1",
                  "--data=digits", f"--data-dir={self.data}", "--seed=1", "--threads=1", "--choice-cache=",
                  "--amp-verbosity=0", f"--capsule={path}", *flags)
        return path


def expect(text, *patterns):
    """The lines that match, each of which has to be there."""
    lines = []
    for pattern in patterns:
        match = re.search(f"^.*{pattern}.*$", text, re.MULTILINE)
        if match is None:
            sys.exit(f"no line matches '{pattern}':\n{text}")
        lines.append(match[0].strip())
    return lines


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="for capsules")
    parser.add_argument("--bin", default="bin", help="folder of the programs")
    parser.add_argument("--data", default="data", help="folder of the digits")
    parser.add_argument("--device", default="cuda")
    capsules = Capsules(parser.parse_args())

    overflow = capsules.train("overflow")
    found = expect(capsules.call("mpc-run", 0, f"--replay={overflow}"), r"step 1 \(not finite\)", "^every bit is equal: ",
                   "^first operation whose result is not finite: train_step, .*, phase backward")
    print(found[-1])
    step = [capsules.train(name, "--loss-scale=128", "--capsule-at=1", f"--lr={rate}")
            for name, rate in (("step", 0.01), ("other-rate", 0.010001))]
    found = expect(capsules.call("mpc-bisect", 0, step[0], step[0]), "^both steps compute the same .* all are compared",
                   "^no result that is compared differs")
    print(found[0])
    text = capsules.call("mpc-bisect", 1, *step)
    found = expect(text, "^  batch: equal", "^  state: 1 of .* differs", "optimizer.learning_rate",
                   "^first operation whose result differs: train_step, .*, phase update")
    if "does not repeat" in text:
        sys.exit(f"a replay gives other bits than its run:\n{text}")
    print(found[-1])


if __name__ == "__main__":
    main()
