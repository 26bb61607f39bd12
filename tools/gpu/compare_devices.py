#!/usr/bin/env python3
"""Trains one packed network on the CPU and on the GPU from the same state with the same data, and compares the losses
step by step and the parameters at the end.

Devices differ by the order of sums and the rounding of accumulators: one step's relative difference is about the
storage type's unit roundoff, and grows with the steps. The bounds below are that roundoff times the steps times 16, the
growth that test parity_test allows between mpc and PyTorch.
"""

import argparse
import sys

import numpy

import runs

ROUNDOFF = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
GROWTH = 16


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", help="as packed: lenet5-O2-f16; its files end in -cpu and -cuda")
    parser.add_argument("folder", help="for results")
    parser.add_argument("--steps", type=int, default=20)
    arguments = parser.parse_args()

    flags = [f"--steps={arguments.steps}", "--data=synthetic", "--seed=1"]
    try:
        cpu, cpu_state = runs.run(f"{arguments.network}-cpu", arguments.folder, f"{arguments.network}-cpu",
                                  "--threads=8", *flags)
        gpu, gpu_state = runs.run(f"{arguments.network}-cuda", arguments.folder, f"{arguments.network}-gpu", *flags)
    except runs.RunFailed as error:
        sys.exit(str(error))

    roundoff = next(value for name, value in ROUNDOFF.items() if arguments.network.endswith("-" + name))
    bound = min(0.5, roundoff * GROWTH * arguments.steps)
    worst = max(abs(a - b) / max(abs(a), 1e-3) for a, b in zip(cpu["losses"], gpu["losses"]))
    first, second = runs.read_state(cpu_state), runs.read_state(gpu_state)
    worst_state, worst_name = 0.0, ""
    for name, value in first.items():
        if value.dtype != numpy.float32 or name.startswith("scaler."):
            continue
        scale = max(float(numpy.abs(value).max(initial=0)), 1e-3)
        difference = float(numpy.abs(value - second[name]).max(initial=0)) / scale
        if not difference <= worst_state:
            worst_state, worst_name = difference, name
    print(f"losses differ by {worst:.2e} at most, state by {worst_state:.2e} ({worst_name}); bound {bound:.2e}")
    sys.exit(0 if worst <= bound and worst_state <= bound else 1)


if __name__ == "__main__":
    main()
