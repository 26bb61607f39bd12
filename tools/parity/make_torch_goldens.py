#!/usr/bin/env python3
"""Trains LeNet-5 and the BatchNorm net in PyTorch and writes the loss of every step for tests/training/parity_test.cc.

    python3 tools/parity/make_torch_goldens.py tests/training/goldens

Weights, images and labels come from integer hashes and closed formulas that the test repeats, so that nothing but
losses needs to be stored. Training: f32 on the CPU, batch 16, mean cross-entropy, SGD with momentum 0.9 and learning
rate 0.01 or 0.002, 100 steps; then one evaluation of the first batch with the running statistics. The same run in f64
shows how far rounding alone moves the losses.
"""

import math
import pathlib
import sys

import numpy
import torch
from torch import nn

BATCH = 16
STEPS = 100
# Pools of the BatchNorm net choose between nearly equal pixels. With 0.005 one such choice moves PyTorch's own losses in
# f32 by 2.4e-3 from those in f64.
LEARNING_RATES = {"lenet5": 0.01, "bnnet": 0.002}
MOMENTUM = 0.9


def uniform(stream: int, index: numpy.ndarray) -> numpy.ndarray:
    """Integer hash of (stream, index) as f64 in [0, 1)."""
    mask = numpy.uint64(0xFFFFFFFF)
    h = (index.astype(numpy.uint64) + numpy.uint64(stream) * numpy.uint64(1000003)) & mask
    h ^= h >> numpy.uint64(16)
    h = (h * numpy.uint64(0x7FEB352D)) & mask
    h ^= h >> numpy.uint64(15)
    h = (h * numpy.uint64(0x846CA68B)) & mask
    h ^= h >> numpy.uint64(16)
    return h.astype(numpy.float64) / 4294967296.0


def set_weights(net: nn.Module) -> None:
    """Weight number p of rank > 1: U(-b, b), b = 1/sqrt(fan_in). Rank 1 keeps its start: gamma 1, beta and bias 0."""
    with torch.no_grad():
        for position, parameter in enumerate(net.parameters()):
            if parameter.dim() == 1:
                parameter.fill_(1.0 if position in net.gammas else 0.0)
                continue
            fan_in = parameter.numel() // parameter.shape[0]
            values = (2.0 * uniform(position, numpy.arange(parameter.numel())) - 1.0) / math.sqrt(fan_in)
            parameter.copy_(torch.from_numpy(values.astype(numpy.float32).reshape(parameter.shape)))


def batch(step: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Images [BATCH, 1, 32, 32]: a wave whose direction and length depend on the label, and noise of +-0.5."""
    rows = numpy.arange(step * BATCH, (step + 1) * BATCH)
    labels = (uniform(1000, rows) * 10).astype(numpy.int64)
    y, x = numpy.meshgrid(numpy.arange(32), numpy.arange(32), indexing="ij")
    noise = uniform(2000, rows[:, None] * 1024 + numpy.arange(1024)[None, :]).reshape(BATCH, 32, 32)
    c = labels[:, None, None].astype(numpy.float64)
    images = numpy.sin(0.07 * (c + 1.0) * y + 0.05 * (10.0 - c) * x) + noise - 0.5
    return torch.from_numpy(images.astype(numpy.float32)[:, None]), torch.from_numpy(labels)


class LeNet5(nn.Module):
    gammas: set[int] = set()

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, bias=False)
        self.conv2 = nn.Conv2d(6, 16, 5, bias=False)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.conv1(x)), 2)
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 2)
        x = torch.relu(self.fc1(torch.flatten(x, 1)))
        return self.fc3(torch.relu(self.fc2(x)))


class BnNet(nn.Module):
    gammas = {1, 4, 7}

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(32)
        self.conv3 = nn.Conv2d(32, 32, 3, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(32)
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        x = nn.functional.max_pool2d(torch.relu(self.bn1(self.conv1(x))), 2)
        x = nn.functional.max_pool2d(torch.relu(self.bn2(self.conv2(x))), 2)
        x = nn.functional.avg_pool2d(torch.relu(self.bn3(self.conv3(x))), 2)
        return self.fc(torch.flatten(x, 1))


def train(net: nn.Module, rate: float, dtype: torch.dtype) -> list[float]:
    set_weights(net)
    net.to(dtype)
    optimizer = torch.optim.SGD(net.parameters(), lr=rate, momentum=MOMENTUM)
    loss_function = nn.CrossEntropyLoss()
    losses = []
    net.train()
    for step in range(STEPS):
        images, labels = batch(step)
        optimizer.zero_grad()
        loss = loss_function(net(images.to(dtype)), labels)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    net.eval()
    with torch.no_grad():
        images, labels = batch(0)
        losses.append(loss_function(net(images.to(dtype)), labels).item())
    return losses


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    torch.manual_seed(0)
    torch.set_num_threads(1)
    for name, make in (("lenet5", LeNet5), ("bnnet", BnNet)):
        losses = train(make(), LEARNING_RATES[name], torch.float32)
        exact = train(make(), LEARNING_RATES[name], torch.float64)
        deviation = max(abs(a - b) / abs(b) for a, b in zip(losses, exact))
        print(f"{name}: loss {losses[0]:.4f} -> {losses[-2]:.4f}, f32 differs from f64 by at most {deviation:.1e}")
        lines = [
            f"# {name}: loss of {STEPS} training steps, then of the first batch in evaluation mode.",
            f"# Made by: python3 tools/parity/make_torch_goldens.py tests/training/goldens",
            f"# PyTorch {torch.__version__.split('+')[0]}, NumPy {numpy.__version__}, f32 on one CPU thread;"
            f" f64 losses differ by at most {deviation:.1e} relative.",
        ]
        lines += [f"{loss:.9g}" for loss in losses]
        (folder / f"{name}_losses.txt").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
