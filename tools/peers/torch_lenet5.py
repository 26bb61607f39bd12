#!/usr/bin/env python3
"""Times PyTorch's eager training step of LeNet-5, the peer of `mpc-bench lenet5 --peer=torch`.

Prints one JSON object: step_seconds (one a measured step), version, threads, final_loss. PyTorch is needed for this
script only; nothing in mpc's build or tests uses it.
"""

import argparse
import contextlib
import json
import time

import torch
from torch import nn
from torch.nn import functional


class LeNet5(nn.Module):
    """The network of models/lenet5.h."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, bias=False)
        self.conv2 = nn.Conv2d(6, 16, 5, bias=False)
        self.fc1 = nn.Linear(16 * 5 * 5, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        x = functional.relu(self.fc1(x))
        x = functional.relu(self.fc2(x))
        return self.fc3(x)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=50)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--amp-level", choices=["O0", "O2", "O3"], default="O0",
                        help="O2: autocast, with a GradScaler for f16; O3: the network itself in the low type")
    parser.add_argument("--dtype", choices=["f16", "bf16"], default="f16")
    arguments = parser.parse_args()

    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    low = {"f16": torch.float16, "bf16": torch.bfloat16}[arguments.dtype]
    network = LeNet5()
    inputs_dtype = torch.float32
    if arguments.amp_level == "O3":
        network = network.to(low)
        inputs_dtype = low
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    scaled = arguments.amp_level == "O2" and arguments.dtype == "f16"
    scaler = torch.amp.GradScaler("cpu", enabled=scaled)
    batches = [(torch.randn(arguments.batch, 1, 32, 32).to(inputs_dtype), torch.randint(0, 10, (arguments.batch,)))
               for _ in range(8)]

    def step(index):
        images, labels = batches[index % len(batches)]
        optimizer.zero_grad()
        precision = (torch.autocast("cpu", dtype=low) if arguments.amp_level == "O2" else contextlib.nullcontext())
        with precision:
            logits = network(images)
        loss = functional.cross_entropy(logits.float(), labels)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        return loss

    for index in range(arguments.warmup):
        step(index)
    seconds = []
    loss = None
    for index in range(arguments.steps):
        begin = time.perf_counter()
        loss = step(index)
        seconds.append(time.perf_counter() - begin)
    print(json.dumps({"step_seconds": seconds, "version": "PyTorch " + torch.__version__,
                      "threads": torch.get_num_threads(), "final_loss": float(loss.detach())}))


if __name__ == "__main__":
    main()
