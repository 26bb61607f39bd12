#!/usr/bin/env python3
"""Writes the digits that come with mpc as folders of pictures: digit_pictures.py FOLDER [--classes=0-9] [--side=16]

FOLDER/train/CLASS and FOLDER/test/CLASS get grey pictures, PNG and JPEG in turn, of the rows that mpc trains and tests on
by turns of five: four for training, then one for testing. Python alone does it: JPEG is baseline, with one table.
"""
import argparse
import csv
import gzip
import math
import pathlib
import re
import struct
import zlib

DIGITS = pathlib.Path(__file__).resolve().parents[1] / "data" / "digits.csv.gz"
SIDE = 8  # of a digit
STEP = 2  # what coefficients of a JPEG are divided by
ZIGZAG = sorted(((u, v) for u in range(8) for v in range(8)),
                key=lambda at: (sum(at), at[0] if sum(at) % 2 else at[1]))
COSINES = [[(math.sqrt(0.5) if u == 0 else 1) / 2 * math.cos((2 * x + 1) * u * math.pi / 16) for x in range(8)]
           for u in range(8)]
# Symbols of a block behind its first coefficient: how many zeros, then how many bits. All codes have 8 bits.
SYMBOLS = [0x00, 0xF0] + [run << 4 | size for run in range(16) for size in range(1, 11)]


def png(rows):
    def chunk(name, content):
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    header = struct.pack(">IIBBBBB", len(rows[0]), len(rows), 8, 0, 0, 0, 0)
    pixels = b"".join(b"\0" + bytes(row) for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(pixels)) +
            chunk(b"IEND", b""))


def coefficients(block):
    """The quantised cosine transform of 8 rows of 8 pixels, in the order of a JPEG; (u, v) is (row, column)."""
    halves = [[sum(wave[x] * (row[x] - 128) for x in range(8)) for wave in COSINES] for row in block]
    return [round(sum(COSINES[u][y] * halves[y][v] for y in range(8)) / STEP) for u, v in ZIGZAG]


def signed_bits(value, size):
    return format(value if value > 0 else value + (1 << size) - 1, f"0{size}b") if size else ""


def block_bits(values, last):
    """The bits of a block whose first coefficient follows `last`. Sizes of first coefficients have codes of 4 bits."""
    size = abs(values[0] - last).bit_length()
    bits = [format(size, "04b"), signed_bits(values[0] - last, size)]
    run = 0
    for value in values[1:]:
        if value == 0:
            run += 1
            continue
        bits += [format(SYMBOLS.index(0xF0), "08b")] * (run // 16)
        size = abs(value).bit_length()
        bits += [format(SYMBOLS.index(run % 16 << 4 | size), "08b"), signed_bits(value, size)]
        run = 0
    return "".join(bits + ([format(SYMBOLS.index(0x00), "08b")] if run else []))


def jpeg(rows):
    """A grey picture whose sides are multiples of 8."""
    def segment(mark, content):
        return struct.pack(">BBH", 0xFF, mark, len(content) + 2) + content

    def codes(kind, length, symbols):
        return bytes([kind] + [len(symbols) if bits == length else 0 for bits in range(1, 17)] + symbols)

    height, width = len(rows), len(rows[0])
    bits, last = "", 0
    for y in range(0, height, 8):
        for x in range(0, width, 8):
            values = coefficients([row[x:x + 8] for row in rows[y:y + 8]])
            bits, last = bits + block_bits(values, last), values[0]
    bits += "1" * (-len(bits) % 8)
    scan = int(bits, 2).to_bytes(len(bits) // 8, "big").replace(b"\xff", b"\xff\0")
    return (b"\xff\xd8" + segment(0xE0, b"JFIF\0\1\1\0\0\1\0\1\0\0") + segment(0xDB, bytes([0] + [STEP] * 64)) +
            segment(0xC0, struct.pack(">BHHBBBB", 8, height, width, 1, 1, 0x11, 0)) +
            segment(0xC4, codes(0x00, 4, list(range(12)))) + segment(0xC4, codes(0x10, 8, SYMBOLS)) +
            segment(0xDA, b"\1\1\0\0\x3f\0") + scan + b"\xff\xd9")


def enlarged(pixels, side):
    """Rows of `side` pixels from 0 to 255."""
    times = side // SIDE
    rows = [[min(255, pixel * 16) for pixel in pixels[y * SIDE:(y + 1) * SIDE] for _ in range(times)]
            for y in range(SIDE)]
    return [row for row in rows for _ in range(times)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--classes", default="0-9", help="the first and the last digit: 0-4")
    parser.add_argument("--side", type=int, default=16, choices=range(SIDE, 257, SIDE), metavar="PIXELS",
                        help="a multiple of 8, to 256")
    arguments = parser.parse_args()
    classes = re.fullmatch(r"(\d)-(\d)", arguments.classes)
    if classes is None or classes[1] >= classes[2]:
        parser.error(f"--classes={arguments.classes}: give the first and the last digit, 0-4")
    first, last = int(classes[1]), int(classes[2])
    counts = {"train": 0, "test": 0}
    with gzip.open(DIGITS, "rt") as file:
        rows = [[int(value) for value in row] for row in csv.reader(file)]
    for index, row in enumerate(rows):
        if not first <= row[-1] <= last:
            continue
        part = "test" if index % 5 == 4 else "train"
        folder = arguments.folder / part / str(row[-1])
        folder.mkdir(parents=True, exist_ok=True)
        write, suffix = (jpeg, "jpg") if index % 2 else (png, "png")
        (folder / f"{index:04d}.{suffix}").write_bytes(write(enlarged(row[:-1], arguments.side)))
        counts[part] += 1
    print(f"{arguments.folder}: {counts['train']} pictures in train, {counts['test']} in test")


if __name__ == "__main__":
    main()
