#!/usr/bin/env python3
"""Writes the weights of a small PyTorch network with Python's safetensors for tests/frontend/pytorch_names_test.cc.

    python3 tools/parity/make_checkpoint_golden.py tests/frontend/goldens/pytorch_conv_norm.safetensors

Needs torch and safetensors. The values come from a formula that the test repeats.
"""

import sys

import torch
from safetensors.torch import save_file


class ConvNorm(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv2d(2, 4, 3, bias=False)
        self.norm = torch.nn.BatchNorm2d(4)
        self.fc = torch.nn.Linear(36, 3)


def values(stream: int, shape: torch.Size) -> torch.Tensor:
    """Multiples of 1/32 in [-1, 1): exact in every floating type."""
    index = torch.arange(shape.numel())
    return (((index * 37 + stream * 11) % 64 - 32) / 32).to(torch.float32).reshape(shape)


def main() -> None:
    network = ConvNorm()
    state = network.state_dict()
    floating = [name for name, tensor in state.items() if tensor.is_floating_point()]
    for stream, name in enumerate(floating):
        state[name].copy_(values(stream, state[name].shape))
    network.norm.num_batches_tracked.fill_(7)
    save_file(network.state_dict(), sys.argv[1], metadata={"format": "pt"})


if __name__ == "__main__":
    main()
