#!/usr/bin/env python3
"""Trains one packed network twice on the GPU, the second time with other flags, and asks for equal bits: every loss and
every tensor of the final state."""

import argparse
import sys

import runs


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network")
    parser.add_argument("folder")
    parser.add_argument("--change", required=True, help="flag of the second run, such as --graph=off")
    parser.add_argument("--steps", type=int, default=64)
    arguments = parser.parse_args()

    flags = [f"--steps={arguments.steps}", "--data=synthetic", "--seed=1"]
    program = f"{arguments.network}-cuda"
    try:
        name = "equal" + arguments.change.replace("=", "-")
        first, first_state = runs.run(program, arguments.folder, f"{name}-first", *flags)
        second, second_state = runs.run(program, arguments.folder, f"{name}-second", *flags, arguments.change)
    except runs.RunFailed as error:
        sys.exit(str(error))

    steps = [step for step, (a, b) in enumerate(zip(first["losses"], second["losses"])) if a != b]
    names = runs.different_bits(runs.read_state(first_state), runs.read_state(second_state))
    if steps or names:
        print(f"first different loss: step {steps[0] if steps else 'none'}; different state: {', '.join(names[:8])}")
        sys.exit(1)
    print(f"{arguments.steps} losses and all state have equal bits with {arguments.change}")


if __name__ == "__main__":
    main()
