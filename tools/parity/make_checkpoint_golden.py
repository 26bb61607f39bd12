#!/usr/bin/env python3
"""Writes the weights of a small PyTorch network with Python's safetensors for tests/frontend/pytorch_names_test.cc.

    python3 tools/parity/make_checkpoint_golden.py tests/frontend/goldens/pytorch_conv_norm.safetensors

The names are those of `state_dict()` of a module with `conv = nn.Conv2d(2, 4, 3, bias=False)`, `norm =
nn.BatchNorm2d(4)` and `fc = nn.Linear(36, 3)`; the values come from a formula that the test repeats.
"""

import sys

import numpy
from safetensors.numpy import save_file

SHAPES = {
    "conv.weight": (4, 2, 3, 3),
    "norm.weight": (4,),
    "norm.bias": (4,),
    "norm.running_mean": (4,),
    "norm.running_var": (4,),
    "fc.weight": (3, 36),
    "fc.bias": (3,),
}


def values(stream: int, shape: tuple[int, ...]) -> numpy.ndarray:
    """Multiples of 1/32 in [-1, 1): exact in every floating type."""
    index = numpy.arange(numpy.prod(shape))
    return (((index * 37 + stream * 11) % 64 - 32) / 32).astype(numpy.float32).reshape(shape)


def main() -> None:
    tensors = {name: values(stream, shape) for stream, (name, shape) in enumerate(SHAPES.items())}
    tensors["norm.num_batches_tracked"] = numpy.array(7, dtype=numpy.int64)
    save_file(tensors, sys.argv[1], metadata={"format": "pt"})


if __name__ == "__main__":
    main()
