#!/usr/bin/env python3
"""Runs PyTorch's optimizers on fixed gradients and writes the weights for tests/training/optimizer_parity_test.cc.

    python3 tools/parity/make_optimizer_goldens.py tests/training/goldens

Two weights of four elements, f64, for 20 steps. Weights and gradients are closed formulas that the test repeats. The
second weight is in a parameter group of its own where the name ends in `_groups`.
"""

import pathlib
import sys

import torch

STEPS = 20


def start(weight: int) -> list[float]:
    return [0.5 + 0.25 * weight - 0.375 * element for element in range(4)]


def gradient(step: int, weight: int) -> list[float]:
    """Multiples of 1/16: exact in f32."""
    return [((step * 7 + element * 5 + weight * 3) % 17 - 8) / 16.0 for element in range(4)]


# eps of Adam is small enough not to show: PyTorch adds it after the bias correction, MindSpore before.
CASES = {
    "sgd": (torch.optim.SGD, dict(lr=0.1)),
    "sgd_decay": (torch.optim.SGD, dict(lr=0.1, weight_decay=0.02)),
    "sgd_momentum": (torch.optim.SGD, dict(lr=0.1, momentum=0.8, dampening=0.3, weight_decay=0.01)),
    "sgd_nesterov": (torch.optim.SGD, dict(lr=0.1, momentum=0.8, nesterov=True)),
    "sgd_groups": (torch.optim.SGD, dict(lr=0.1, momentum=0.9, weight_decay=0.02)),
    "adam": (torch.optim.Adam, dict(lr=0.01, eps=1e-12)),
    "adam_decay": (torch.optim.Adam, dict(lr=0.01, eps=1e-12, weight_decay=0.05)),
    "adamw": (torch.optim.AdamW, dict(lr=0.01)),
    "adamw_decay": (torch.optim.AdamW, dict(lr=0.01, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1)),
    "adamw_groups": (torch.optim.AdamW, dict(lr=0.01, weight_decay=0.1)),
}


def run(name: str, kind, options) -> list[str]:
    weights = [torch.tensor(start(weight), dtype=torch.float64, requires_grad=True) for weight in range(2)]
    groups = [{"params": weights}]
    if name.endswith("_groups"):
        groups = [{"params": weights[:1]}, {"params": weights[1:], "lr": options["lr"] * 0.5, "weight_decay": 0.0}]
    optimizer = kind(groups, **options)
    lines = []
    for step in range(STEPS):
        for index, weight in enumerate(weights):
            weight.grad = torch.tensor(gradient(step, index), dtype=torch.float64)
        optimizer.step()
        values = [value for weight in weights for value in weight.tolist()]
        lines.append(" ".join(f"{value:.12f}" for value in values))
    return lines


def main() -> None:
    lines = [f"# torch {torch.__version__}"]
    for name, (kind, options) in CASES.items():
        lines.append(f"case {name}")
        lines += run(name, kind, options)
    target = pathlib.Path(sys.argv[1]) / "optimizers.txt"
    target.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
