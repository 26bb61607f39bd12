#!/usr/bin/env python3
"""Times PyTorch's training step of ResNet-50, channels last, the peer of `mpc-bench resnet50 --peer=torch`; see
torch_common.py."""

import torch
from torch import nn
from torch.nn import functional

import torch_common


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions; the 3x3 one has the stride."""

    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = nn.Sequential()
        if channels != 4 * width or stride != 1:
            self.downsample = nn.Sequential(nn.Conv2d(channels, 4 * width, 1, stride=stride, bias=False),
                                            nn.BatchNorm2d(4 * width))

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        y = functional.relu(self.bn2(self.conv2(y)))
        return functional.relu(self.bn3(self.conv3(y)) + self.downsample(x))


class ResNet50(nn.Module):
    """The network of models/resnet.h, with its paths."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = self.stage(3, 64, 64, 1)
        self.layer2 = self.stage(4, 256, 128, 2)
        self.layer3 = self.stage(6, 512, 256, 2)
        self.layer4 = self.stage(3, 1024, 512, 2)
        self.fc = nn.Linear(2048, 1000)

    @staticmethod
    def stage(blocks, channels, width, stride):
        return nn.Sequential(*[Bottleneck(channels if i == 0 else 4 * width, width, stride if i == 0 else 1)
                               for i in range(blocks)])

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.bn1(self.conv1(x))), 3, stride=2, padding=1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))


def main():
    arguments = torch_common.parse(__doc__, ["eager", "compile", "max-autotune"], batch=256)
    side = arguments.image_size

    def batch():
        images = torch.randn(arguments.batch, 3, side, side).contiguous(memory_format=torch.channels_last)
        return [images, torch.randint(0, 1000, (arguments.batch,))]

    torch_common.run(
        arguments, ResNet50().to(memory_format=torch.channels_last), batch,
        lambda logits, labels: functional.cross_entropy(logits.float(), labels),
        lambda parameters, options: torch.optim.SGD(parameters, lr=0.01, momentum=0.9, **options),
        "channels last, SGD with momentum")


if __name__ == "__main__":
    main()
