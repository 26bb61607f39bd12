#!/usr/bin/env python3
"""Times PyTorch's training step of ResNet-50, the peer of `mpc-bench resnet50 --peer=torch`; see torch_common.py."""

import torch_images
import torch_resnet


def add_sizes(parser):
    parser.add_argument("--image-size", type=int, default=224)


if __name__ == "__main__":
    torch_images.main(
        __doc__,
        lambda arguments: torch_resnet.ResNet(torch_resnet.Bottleneck, (3, 4, 6, 3), 3, 1000, small=False),
        classes=1000, image=lambda arguments: (3, arguments.image_size, arguments.image_size), batch=256, layout="nhwc",
        add_sizes=add_sizes)
