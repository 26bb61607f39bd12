#!/usr/bin/env python3
"""Moves each f32 parameter of a state file (safetensors) up or down by one unit in its last place, by coins of a fixed
seed: perturb_state.py SOURCE PATH. How far steps from both states lie apart shows what a network makes of a rounding."""

import array
import json
import pathlib
import random
import struct
import sys

LARGEST = 0x7F7FFFFF  # bits of the largest finite magnitude


def moved(bits, coins):
    """Bits of f32 elements, each one unit away. Zeros, the largest and what is not finite stay."""
    for index, value in enumerate(bits):
        if 0 < value & 0x7FFFFFFF < LARGEST:
            bits[index] = value + (1 if coins.getrandbits(1) else -1)
    return bits


def perturb(source, path):
    data = bytearray(pathlib.Path(source).read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    coins = random.Random(1)
    for name, entry in sorted(json.loads(data[8:8 + size]).items()):
        if entry.get("dtype") != "F32" or name.startswith(("scaler.", "optimizer.")):
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        data[begin:end] = moved(array.array("I", bytes(data[begin:end])), coins).tobytes()
    pathlib.Path(path).write_bytes(data)


if __name__ == "__main__":
    perturb(*sys.argv[1:])
