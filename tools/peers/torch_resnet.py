"""The networks of models/resnet.h, with its paths."""

from torch import nn
from torch.nn import functional


def shortcut(channels, out, stride):
    if channels == out and stride == 1:
        return nn.Sequential()
    return nn.Sequential(nn.Conv2d(channels, out, 1, stride=stride, bias=False), nn.BatchNorm2d(out))


class BasicBlock(nn.Module):
    """Two 3x3 convolutions; the first one has the stride."""

    expansion = 1

    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = shortcut(channels, width, stride)

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(y)) + self.downsample(x))


class Bottleneck(nn.Module):
    """1x1, 3x3 and 1x1 convolutions; the 3x3 one has the stride."""

    expansion = 4

    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, 4 * width, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(4 * width)
        self.downsample = shortcut(channels, 4 * width, stride)

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        y = functional.relu(self.bn2(self.conv2(y)))
        return functional.relu(self.bn3(self.conv3(y)) + self.downsample(x))


class ResNet(nn.Module):
    """`small`: a 3x3 stem of stride 1, as for CIFAR; else 7x7 of stride 2 and max pooling, as for ImageNet."""

    def __init__(self, block, blocks, channels, classes, small):
        super().__init__()
        self.small = small
        self.conv1 = (nn.Conv2d(channels, 64, 3, padding=1, bias=False) if small else
                      nn.Conv2d(channels, 64, 7, stride=2, padding=3, bias=False))
        self.bn1 = nn.BatchNorm2d(64)
        self.layer1 = self.stage(block, blocks[0], 64, 64, 1)
        self.layer2 = self.stage(block, blocks[1], block.expansion * 64, 128, 2)
        self.layer3 = self.stage(block, blocks[2], block.expansion * 128, 256, 2)
        self.layer4 = self.stage(block, blocks[3], block.expansion * 256, 512, 2)
        self.fc = nn.Linear(block.expansion * 512, classes)

    @staticmethod
    def stage(block, blocks, channels, width, stride):
        return nn.Sequential(*[block(channels if i == 0 else block.expansion * width, width, stride if i == 0 else 1)
                               for i in range(blocks)])

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        if not self.small:
            x = functional.max_pool2d(x, 3, stride=2, padding=1)
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(x.mean((2, 3)))
