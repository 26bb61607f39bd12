#!/usr/bin/env python3
"""Times PyTorch's training step of a small network with batch normalisation, the peer of
`mpc-bench bnnet --peer=torch`; see torch_common.py."""

import torch
from torch import nn
from torch.nn import functional

import torch_images


class BnNet(nn.Module):
    """The network of models/bnnet.h."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 16, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        self.conv2 = nn.Conv2d(16, 32, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(32)
        self.conv3 = nn.Conv2d(32, 32, 3, padding=1, bias=False)
        self.bn3 = nn.BatchNorm2d(32)
        self.fc = nn.Linear(32 * 4 * 4, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 2)
        x = functional.max_pool2d(functional.relu(self.bn2(self.conv2(x))), 2)
        x = functional.avg_pool2d(functional.relu(self.bn3(self.conv3(x))), 2)
        return self.fc(torch.flatten(x, 1))


if __name__ == "__main__":
    torch_images.main(__doc__, lambda arguments: BnNet(), classes=10, image=lambda arguments: (1, 32, 32), batch=32,
                      modes=["graph"])
