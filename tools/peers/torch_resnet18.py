#!/usr/bin/env python3
"""Times PyTorch's training step of ResNet-18 for images of 32x32 pixels, the peer of
`mpc-bench resnet18-cifar --peer=torch`; see torch_common.py."""

import torch_images
import torch_resnet


def add_sizes(parser):
    parser.add_argument("--channels", type=int, default=3)


if __name__ == "__main__":
    torch_images.main(
        __doc__,
        lambda arguments: torch_resnet.ResNet(torch_resnet.BasicBlock, (2, 2, 2, 2), arguments.channels, 10, small=True),
        classes=10, image=lambda arguments: (arguments.channels, 32, 32), batch=128, layout="nhwc", add_sizes=add_sizes)
