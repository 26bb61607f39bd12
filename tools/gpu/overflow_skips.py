#!/usr/bin/env python3
"""Forces overflows on the GPU at random steps: a loss scale that f16 cannot hold. Each time the step must leave every
parameter and optimizer slot bit for bit as it was, and the scale must fall."""

import argparse
import pathlib
import random
import sys

import numpy

import runs

HUGE_SCALE = 2.0**100


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network")
    parser.add_argument("folder")
    parser.add_argument("--overflows", type=int, default=4)
    arguments = parser.parse_args()

    program, folder = f"{arguments.network}-cuda", pathlib.Path(arguments.folder)
    chance = random.Random(1)
    state = None
    for overflow in range(arguments.overflows):
        load = [] if state is None else [f"--load-state={state}"]
        try:
            _, before = runs.run(program, folder, f"overflow-{overflow}-before", f"--steps={chance.randint(1, 9)}",
                                 "--data=synthetic", f"--seed={overflow}", *load)
            tensors = runs.read_state(before)
            scales = [name for name in tensors if name.endswith("scaler.scale") or name == "scaler.scale"]
            if not scales:
                sys.exit(f"{program} has no dynamic loss scale; its state: {', '.join(tensors)}")
            scaled = folder / "overflow-scaled.safetensors"
            runs.write_state(scaled, before, {name: numpy.full(tensors[name].shape, HUGE_SCALE) for name in scales})
            _, after = runs.run(program, folder, f"overflow-{overflow}-after", "--steps=1", "--data=synthetic",
                                f"--seed={overflow}", f"--load-state={scaled}")
        except runs.RunFailed as error:
            sys.exit(str(error))
        expected, found = runs.read_state(scaled), runs.read_state(after)
        changed = [name for name in runs.different_bits(expected, found)
                   if not name.startswith("scaler.") and not name.startswith("rng")]
        if changed:
            sys.exit(f"overflow {overflow} changed {', '.join(changed[:8])}")
        if not all((found[name] < HUGE_SCALE).all() for name in scales):
            sys.exit(f"overflow {overflow} left the scale at {HUGE_SCALE}")
        state = before
    print(f"{arguments.overflows} overflows left every bit of the parameters and slots unchanged")


if __name__ == "__main__":
    main()
