#!/usr/bin/env python3
"""Reads pictures by torchvision's DataLoader, the peer of `mpc-bench --data --peer=torchvision`.

The pipeline is the one of torchvision's own training script: ImageFolder (Pillow decodes), RandomResizedCrop(224),
RandomHorizontalFlip, ToTensor, Normalize. It prints one JSON object. With --compare the object says how far the pixels
are from those of a file of mpc's, in levels of u8; the parts of the pictures are the file's.
"""

import argparse
import json
import time

import PIL
import torch
import torchvision
from torchvision import datasets, transforms
from torchvision.transforms import functional

import torch_data

SIDE = 224
MEAN = [0.485, 0.456, 0.406]
STD = [0.229, 0.224, 0.225]


def compare(arguments):
    """The largest and the mean difference of pixels."""
    file = torch_data.read_safetensors(arguments.compare)
    pictures = datasets.ImageFolder(arguments.pictures)
    largest, total = 0.0, 0.0
    levels = 255 * torch.tensor(STD).reshape(3, 1, 1)
    for index, (pixels, part) in enumerate(zip(file["pixels"], file["parts"].tolist())):
        top, left, height, width, mirrored = part
        picture = functional.resized_crop(pictures[index][0], top, left, height, width, [SIDE, SIDE])
        if mirrored:
            picture = functional.hflip(picture)
        own = functional.normalize(functional.to_tensor(picture), MEAN, STD)
        difference = ((own - pixels) * levels).abs()
        largest = max(largest, difference.max().item())
        total += difference.mean().item()
    return {"pictures": len(file["parts"]), "largest": largest, "mean": total / len(file["parts"])}


def order(pictures, count):
    """Indices of the pictures, `count` of them: all of them in a new order, again and again."""
    generator = torch.Generator().manual_seed(1)
    indices = []
    while len(indices) < count:
        indices += torch.randperm(pictures, generator=generator).tolist()
    return indices[:count]


def measure(arguments):
    """Pictures a second after the batches that warm up."""
    pictures = datasets.ImageFolder(arguments.pictures, transforms.Compose([
        transforms.RandomResizedCrop(SIDE), transforms.RandomHorizontalFlip(), transforms.ToTensor(),
        transforms.Normalize(MEAN, STD)]))
    indices = order(len(pictures), (arguments.warmup + arguments.steps) * arguments.batch)
    batches = iter(torch.utils.data.DataLoader(pictures, arguments.batch, sampler=indices,
                                               num_workers=arguments.workers))
    for _ in range(arguments.warmup):
        next(batches)
    begin = time.perf_counter()
    for _ in range(arguments.steps):
        next(batches)
    seconds = time.perf_counter() - begin
    return {"pictures_per_second": arguments.steps * arguments.batch / seconds,
            "version": f"torchvision {torchvision.__version__}, PyTorch {torch.__version__}, Pillow {PIL.__version__}",
            "settings": f"{arguments.workers} worker" + ("" if arguments.workers == 1 else "s")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pictures", required=True, help="a folder with a folder for each class")
    parser.add_argument("--compare", metavar="FILE", help="safetensors of pixels and parts")
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=50)
    parser.add_argument("--steps", type=int, default=200)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    print(json.dumps(compare(arguments) if arguments.compare else measure(arguments)))


if __name__ == "__main__":
    main()
