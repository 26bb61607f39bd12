#!/usr/bin/env python3
"""Times PyTorch's training step of a multi-layer perceptron, the peer of `mpc-bench mlp --peer=torch`; see
torch_common.py."""

import torch
from torch import nn
from torch.nn import functional

import torch_images


class Mlp(nn.Module):
    """The network of models/mlp.h."""

    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(32 * 32, 256)
        self.fc2 = nn.Linear(256, 256)
        self.fc3 = nn.Linear(256, 10)

    def forward(self, x):
        x = torch.flatten(x, 1)
        x = functional.relu(self.fc1(x))
        x = functional.relu(self.fc2(x))
        return self.fc3(x)


if __name__ == "__main__":
    torch_images.main(__doc__, lambda arguments: Mlp(), classes=10, image=lambda arguments: (1, 32, 32), batch=32,
                      layout=None, modes=["graph"])
