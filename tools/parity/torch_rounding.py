#!/usr/bin/env python3
"""How far PyTorch's losses move by rounding alone: a peer script of mpc-bench, for rounding_parity.py.

Trains bnnet in f64 and reports that as the peer. Trains it in f32 too, on one thread and on two, from equal weights and from
weights that are an ulp away. The losses of all go to the file that MPC_ROUNDING names. A batch of --ranks=N is N blocks,
each normalised by itself, as N processes do it; they are computed in this process.
"""

import argparse
import json
import os
import pathlib
import sys

import torch
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "peers"))
import torch_data  # noqa: E402
from torch_bnnet import BnNet  # noqa: E402


def move_by_an_ulp(network):
    """Every second weight, by lot, becomes the next larger f32."""
    draws = torch.Generator().manual_seed(3)
    with torch.no_grad():
        for weight in network.parameters():
            moved = torch.rand(weight.shape, generator=draws) < 0.5
            weight.copy_(torch.where(moved, torch.nextafter(weight, torch.full_like(weight, torch.inf)), weight))


def losses_of(arguments, batches, dtype=torch.float32, threads=1, moved=False):
    """One a step, as torch_common.py counts them: a first step on the first batch, and then all from the first one on."""
    torch.set_num_threads(threads)
    network = BnNet()
    torch_data.load_weights(network, arguments.weights)
    if moved:
        move_by_an_ulp(network)
    network = network.to(dtype)
    optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
    losses = []
    for step in range(-1, arguments.steps):
        images, labels = batches[max(step, 0) % len(batches)]
        parts = zip(images.to(dtype).chunk(arguments.ranks), labels.chunk(arguments.ranks))
        loss = sum(functional.cross_entropy(network(rows), classes) for rows, classes in parts) / arguments.ranks
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


VARIANTS = {
    "f64": {"dtype": torch.float64},
    "f64, weights an ulp of f32 away": {"dtype": torch.float64, "moved": True},
    "f32, 1 thread": {},
    "f32, 2 threads": {"threads": 2},
    "f32, weights an ulp away": {"moved": True},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--weights", required=True)
    parser.add_argument("--data", required=True)
    parser.add_argument("--steps", type=int, required=True)
    parser.add_argument("--ranks", type=int, default=1)
    arguments, _ = parser.parse_known_args()
    batches = torch_data.read_batches(arguments.data)
    losses = {name: losses_of(arguments, batches, **options) for name, options in VARIANTS.items()}
    if int(os.environ.get("RANK", 0)) == 0:
        pathlib.Path(os.environ["MPC_ROUNDING"]).write_text(json.dumps(losses), encoding="utf-8")
    reference = losses["f64"]
    print(json.dumps({"step_seconds": [1.0] * arguments.steps, "first_step_seconds": 1.0, "peak_bytes": 0,
                      "version": "PyTorch " + torch.__version__, "settings": "f64", "threads": 1,
                      "first_loss": reference[0], "final_loss": reference[-1], "losses": reference[1:]}))


if __name__ == "__main__":
    main()
