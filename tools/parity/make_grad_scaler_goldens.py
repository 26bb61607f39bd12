#!/usr/bin/env python3
"""Runs torch.amp.GradScaler through scripted overflows and writes what it does for tests/training/grad_scaler_parity_test.cc.

    python3 tools/parity/make_grad_scaler_goldens.py tests/training/goldens

Two weights, each with its own loss `weight * gradient` and its own SGD at rate 1, share one scaler. A script is the
gradients of both, step by step; `inf` and `nan` are overflows. A line of the result holds the gradients, then the scale,
the growth tracker and both weights after the step. Weights and gradients are small multiples of 1/8, so every number is
exact.
"""

import math
import pathlib
import random
import sys

import torch

INF = math.inf
NAN = math.nan


def scripted(seed: int, steps: int, rate: float) -> list[tuple[float, float]]:
    """Gradients in [-4, 4] with overflows at about `rate` a weight."""
    generator = random.Random(seed)

    def gradient() -> float:
        if generator.random() < rate:
            return generator.choice([INF, -INF, NAN])
        return generator.randrange(-32, 33) / 8.0

    return [(gradient(), gradient()) for _ in range(steps)]


SCENARIOS = {
    "replay": ((4.0, 2.0, 0.5, 2), [(20.0, 0.0), (INF, 0.0), (10.0, 0.0), (INF, 0.0)]),
    "walk": ((4.0, 2.0, 0.25, 2), [(1.0, 1.0), (1.0, 1.0), (INF, 1.0)]),
    "one_optimizer_overflows": ((8.0, 2.0, 0.5, 3), [(1.0, INF), (NAN, 2.0), (0.5, 0.5), (-INF, NAN), (1.0, -1.0)]),
    "defaults": ((65536.0, 2.0, 0.5, 2000), scripted(1, 40, 0.3)),
    "often": ((1024.0, 2.0, 0.5, 1), scripted(2, 60, 0.3)),
    "rarely": ((256.0, 4.0, 0.125, 5), scripted(3, 120, 0.08)),
    "below_one": ((2.0, 2.0, 0.25, 7), scripted(4, 30, 0.6)),
    "infinite_growth": ((2.0**120, 16.0, 0.5, 1), [(0.0, 0.0)] * 4),
}


def run(options, script) -> list[str]:
    init, growth, backoff, interval = options
    weights = [torch.zeros((), requires_grad=True) for _ in range(2)]
    optimizers = [torch.optim.SGD([weight], lr=1.0) for weight in weights]
    scaler = torch.amp.GradScaler(
        "cpu", init_scale=init, growth_factor=growth, backoff_factor=backoff, growth_interval=interval
    )
    lines = []
    for gradients in script:
        for optimizer in optimizers:
            optimizer.zero_grad()
        for weight, gradient in zip(weights, gradients):
            scaler.scale(weight * gradient).backward()
        for optimizer in optimizers:
            scaler.step(optimizer)
        scaler.update()
        state = scaler.state_dict()
        values = [*gradients, state["scale"], state["_growth_tracker"], *(weight.item() for weight in weights)]
        lines.append(" ".join(repr(float(value)) for value in values))
    return lines


def main() -> None:
    lines = [f"# torch {torch.__version__}: gradient gradient scale tracker weight weight"]
    for name, (options, script) in SCENARIOS.items():
        lines.append(f"scenario {name} " + " ".join(repr(float(option)) for option in options))
        lines += run(options, script)
    target = pathlib.Path(sys.argv[1]) / "grad_scaler.txt"
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
