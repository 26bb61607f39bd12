#!/usr/bin/env python3
"""Compares pictures of drawn sizes that data::vision made with Pillow's, OpenCV's and torchvision's.

    python3 tools/parity/vision_parity.py build/default/tests/data/vision_pixels > table.md

Prints a Markdown table and PASS. PNG and lossless WebP must be exact. JPEG must be within 2 levels of Pillow's and 0.1
in the mean of each picture. Resized pictures must be within a level of OpenCV's, exact where the nearest pixel is taken,
and with antialias exactly Pillow's. Pillow resizes the width first, by a call of its own. Pillow 13 may begin with the
height, which clips what bicubic overshoots at another place. Operations of TrivialAugmentWide and RandAugment must be
torchvision's. Those that blend may be a level apart. Needs numpy, Pillow, opencv-python-headless and torchvision.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile

import cv2
import numpy
import PIL
import torchvision
from PIL import Image
from torchvision.transforms import InterpolationMode, autoaugment

from make_vision_goldens import encode

OPENCV = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC}
PILLOW = {"nearest": Image.NEAREST, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}
JPEG_MODES = ["RGB", "RGB", "RGB", "L", "CMYK"]
AUGMENT_BINS = 31
BLENDS = ["Brightness", "Color", "Contrast", "Sharpness"]
PNG_MODES = ["RGB", "L", "1", "P", "RGBA", "LA"]


def draw_pixels(random, longest):
    """Waves, an edge and noise, in one of several mixtures; sides from 1 to `longest`."""
    height, width = (int(side) for side in random.integers(1, longest + 1, 2))
    y, x = numpy.meshgrid(numpy.arange(height), numpy.arange(width), indexing="ij")
    steps = random.uniform(0, 0.5, (2, 3))
    image = 127 + random.uniform(0, 120) * numpy.sin(x[..., None] * steps[0] + y[..., None] * steps[1])
    image += random.uniform(-100, 100, 3) * (x + y > random.integers(1, height + width + 1))[..., None]
    image += random.uniform(0, 255) * random.uniform(-0.5, 0.5, image.shape) * random.integers(0, 2)
    return numpy.clip(image, 0, 255).astype(numpy.uint8)


def draw_jpeg(random, picture):
    mode = str(random.choice(JPEG_MODES))
    options = {"quality": int(random.integers(20, 101)), "progressive": bool(random.integers(2)),
               "optimize": bool(random.integers(2))}
    if mode == "RGB":
        options["subsampling"] = int(random.integers(3))  # 4:4:4, 4:2:2, 4:2:0
    return encode(picture.convert(mode), "JPEG", **options)


def draw_png(random, picture):
    mode = str(random.choice(PNG_MODES))
    options = {"compress_level": int(random.integers(10))}
    if mode == "P":
        return encode(picture.quantize(int(random.integers(2, 257))), "PNG", **options)
    if mode in ("RGBA", "LA"):
        alpha = picture.convert("L")
        picture = picture.convert(mode[:-1])
        picture.putalpha(alpha)
        return encode(picture, "PNG", **options)
    return encode(picture.convert(mode), "PNG", **options)


def draw_webp(_, picture):
    return encode(picture, "WEBP", lossless=True)


FORMATS = {"PNG": draw_png, "lossless WebP": draw_webp, "JPEG": draw_jpeg}


def resized_by_pillow(pixels, height, width, interpolation):
    """What one call of Pillow gave before version 13: the width first, then the height."""
    wide = Image.fromarray(pixels).resize((width, len(pixels)), interpolation)
    return numpy.asarray(wide.resize((width, height), interpolation))


class Comparison:
    """Jobs of vision_pixels, and what other libraries make of the same pictures."""

    def __init__(self, folder):
        self.folder = folder
        self.jobs = []  # (row of the table, expected pixels, path of mpc's)
        self.lines = []

    def add(self, row, path, expected, *resizing):
        output = self.folder / f"{len(self.jobs)}.npy"
        self.jobs.append((row, expected, output))
        self.lines.append(" ".join(str(word) for word in (path, output, *resizing)))

    def add_decoded(self, random, name, count, longest):
        for index in range(count):
            path = self.folder / f"{name.split()[-1]}_{index}"
            path.write_bytes(FORMATS[name](random, Image.fromarray(draw_pixels(random, longest))))
            self.add((name, "Pillow"), path, numpy.asarray(Image.open(path).convert("RGB")))

    def add_resized(self, random, count, longest):
        for index in range(count):
            pixels = draw_pixels(random, longest)
            path = self.folder / f"resize_{index}"
            path.write_bytes(encode(Image.fromarray(pixels), "PNG"))
            height, width = (int(side) for side in random.integers(1, longest + 1, 2))
            for name in OPENCV:
                self.add((name, "OpenCV"), path,
                         cv2.resize(pixels, (width, height), interpolation=OPENCV[name]), name, height, width, "opencv")
                self.add((f"{name}, antialias", "Pillow"), path,
                         resized_by_pillow(pixels, height, width, PILLOW[name]), name, height, width, "pillow")

    def add_augmented(self, random, count, longest):
        """Each operation at a bin that is drawn. Its magnitude is rounded, since torch.linspace has those of f32."""
        for index in range(count):
            pixels = draw_pixels(random, longest)
            path = self.folder / f"augment_{index}"
            path.write_bytes(encode(Image.fromarray(pixels), "PNG"))
            spaces = {"TrivialAugmentWide": autoaugment.TrivialAugmentWide()._augmentation_space(AUGMENT_BINS),
                      "RandAugment": autoaugment.RandAugment()._augmentation_space(AUGMENT_BINS, pixels.shape[:2])}
            for table, space in spaces.items():
                for name, (magnitudes, signed) in space.items():
                    index, sign = int(random.integers(AUGMENT_BINS)), int(random.choice([1, -1])) if signed else 1
                    magnitude = round(sign * float(magnitudes.reshape(-1)[index % magnitudes.numel()]), 5)
                    expected = autoaugment._apply_op(Image.fromarray(pixels), name, magnitude,
                                                     InterpolationMode.NEAREST, None)
                    row = ("operations that blend" if name in BLENDS else "other operations", "torchvision")
                    self.add(row, path, numpy.asarray(expected), table, name, index, AUGMENT_BINS, sign)

    def run(self, program):
        subprocess.run([program], input="\n".join(self.lines) + "\n", text=True, check=True)
        results = {}
        for row, expected, path in self.jobs:
            pixels = numpy.load(path)
            if pixels.shape != expected.shape:
                sys.exit(f"{row}: {path} is {pixels.shape}, not {expected.shape}")
            distance = numpy.abs(pixels.astype(numpy.int64) - expected)
            results.setdefault(row, []).append((int(distance.max()), float(distance.mean())))
        return results


def allowed(row):
    """The largest difference of a pixel, and the largest mean over a picture."""
    if row[0] == "JPEG":
        return 2, 0.1
    rounded = (("bilinear", "OpenCV"), ("bicubic", "OpenCV"), ("operations that blend", "torchvision"))
    return (1, 1.0) if row in rounded else (0, 0.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program", help="tests/data/vision_pixels of a build")
    parser.add_argument("--pictures", type=int, default=200, help="of each format, and for resizing")
    parser.add_argument("--longest", type=int, default=200, help="pixels of a side")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    random = numpy.random.default_rng(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        comparison = Comparison(pathlib.Path(folder))
        for name in FORMATS:
            comparison.add_decoded(random, name, arguments.pictures, arguments.longest)
        comparison.add_resized(random, arguments.pictures, arguments.longest)
        comparison.add_augmented(random, arguments.pictures, arguments.longest)
        results = comparison.run(arguments.program)
    print(f"Pillow {PIL.__version__}, OpenCV {cv2.__version__}, torchvision {torchvision.__version__}; sides of 1 to {arguments.longest} pixels\n")
    print("| | beside | pictures | largest difference | allowed | largest mean of a picture | allowed |\n"
          "|---|---|---|---|---|---|---|")
    passes = True
    for row, differences in results.items():
        largest = max(difference for difference, _ in differences)
        mean = max(mean for _, mean in differences)
        limit, mean_limit = allowed(row)
        passes = passes and largest <= limit and mean <= mean_limit
        print(f"| {row[0]} | {row[1]} | {len(differences)} | {largest} | {limit} | {mean:.4f} | {mean_limit} |")
    print("\nPASS" if passes else "\nFAIL")
    sys.exit(0 if passes else 1)


if __name__ == "__main__":
    main()
