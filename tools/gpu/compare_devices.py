#!/usr/bin/env python3
"""Trains one packed network on the GPU and compares the losses step by step, and the state at the end, with those of
the CPU. The CPU's were written when the archive was packed, from the same initial state and data (expected/): a program
for the CPU fits one processor only. Of each tensor of the state a share is packed (thin_state.py).

Devices differ by the order of sums and the rounding of accumulators. What a network makes of a rounding was measured
when the archive was packed: the same steps on the CPU from parameters that lie one unit in the last place away
(perturb_state.py). A GPU may differ by 16 times that, or by the storage type's unit roundoff times the steps times 16
where that is more; 16 is the growth that test parity_test allows between mpc and PyTorch. The steps are few: after
about 12 a ReLU or a maximum of some network falls the other way, and from there on the two are different trainings.
"""

import argparse
import json
import math
import pathlib
import sys

import numpy

import runs
import thin_state

ROUNDOFF = {"f32": 2.0**-24, "f16": 2.0**-11, "bf16": 2.0**-8}
GROWTH = 16
SMALLEST = 1e-3  # what is smaller is compared with this


def worst_loss(expected, found):
    """The largest relative difference; infinite where one of the two only is finite (null in the results)."""
    worst = 0.0
    for first, second in zip(expected, found, strict=True):
        if (first is None) != (second is None):
            return float("inf")
        if first is not None:
            worst = max(worst, abs(first - second) / max(abs(first), SMALLEST))
    return worst


def worst_tensor(expected, found):
    """The largest difference of f32 state relative to its tensor's largest element, and the tensor's name."""
    worst, worst_name = 0.0, "none"
    for name, value in expected.items():
        if value.dtype != numpy.float32 or name.startswith("scaler."):
            continue
        if name not in found or found[name].shape != value.shape:
            return float("inf"), name
        scale = max(float(numpy.abs(value).max(initial=0)), SMALLEST)
        difference = float(numpy.abs(value - found[name]).max(initial=0)) / scale
        if not math.isfinite(difference):
            return float("inf"), name
        if difference > worst:
            worst, worst_name = difference, name
    return worst, worst_name


def thinned(tensors):
    """What thin_state.py leaves of a state."""
    return {name: value.reshape(-1)[::thin_state.stride_of(value.size)] for name, value in tensors.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network", help="as packed: lenet5-O2-f16")
    parser.add_argument("folder", help="for results")
    arguments = parser.parse_args()

    expected, perturbed = (json.loads(pathlib.Path(f"expected/{arguments.network}{suffix}.json").read_text())
                           for suffix in ("", "-perturbed"))
    expected_state, perturbed_state = (runs.read_state(f"expected/{arguments.network}{suffix}.safetensors")
                                       for suffix in ("", "-perturbed"))
    steps = expected["steps"]
    try:
        found, state = runs.run(f"{arguments.network}-cuda", arguments.folder, f"{arguments.network}-gpu",
                                f"--steps={steps}", "--data=synthetic", "--seed=1")
    except runs.RunFailed as error:
        sys.exit(str(error))

    roundoff = next(value for name, value in ROUNDOFF.items() if arguments.network.endswith("-" + name))
    rounding = roundoff * GROWTH * steps
    loss_bound = max(rounding, GROWTH * worst_loss(expected["losses"], perturbed["losses"]))
    state_bound = max(rounding, GROWTH * worst_tensor(expected_state, perturbed_state)[0])
    if not (math.isfinite(loss_bound) and math.isfinite(state_bound)):
        sys.exit("one of the CPU's two runs is finite and the other is not: nothing can be compared with them")
    loss = worst_loss(expected["losses"], found["losses"])
    tensor, name = worst_tensor(expected_state, thinned(runs.read_state(state)))
    same_skips = expected["skipped_steps"] == found["skipped_steps"]
    print(f"losses differ by {loss:.1e} (bound {loss_bound:.1e}), state by {tensor:.1e} (bound {state_bound:.1e}; "
          f"{name}); skipped CPU {expected['skipped_steps']}, GPU {found['skipped_steps']}")
    sys.exit(0 if loss <= loss_bound and tensor <= state_bound and same_skips else 1)


if __name__ == "__main__":
    main()
