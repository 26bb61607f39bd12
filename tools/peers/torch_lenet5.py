#!/usr/bin/env python3
"""Times PyTorch's training step of LeNet-5, the peer of `mpc-bench lenet5 --peer=torch`; see torch_common.py."""

import torch
from torch import nn
from torch.nn import functional

import torch_images


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


if __name__ == "__main__":
    torch_images.main(__doc__, lambda arguments: LeNet5(), classes=10, image=lambda arguments: (1, 32, 32), batch=32,
                      modes=["graph"])
