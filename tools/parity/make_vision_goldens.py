#!/usr/bin/env python3
"""Writes pictures and what Pillow and OpenCV make of them for tests/data/vision_*_test.cc.

    python3 tools/parity/make_vision_goldens.py tests/data/vision

Needs numpy, Pillow and opencv-python-headless. The committed files come from Pillow 13.0 and OpenCV 5.0. A picture
`NAME.jpg`, `.png` or `.webp` stands beside `NAME.npy`, its pixels in RGB as Pillow decodes them. `photo.npy` is also the
source of `resize_*.npy` and `rotate_*.npy`.
"""

import io
import pathlib
import sys

import cv2
import numpy
from PIL import Image, ImageOps

WIDTH = 45
HEIGHT = 31
SIZES = {"up": (40, 56), "down": (13, 10), "mixed": (40, 17)}  # height, width


def photo() -> numpy.ndarray:
    """Waves, an edge and noise: smooth parts, and parts in which every filter differs."""
    y, x = numpy.meshgrid(numpy.arange(HEIGHT), numpy.arange(WIDTH), indexing="ij")
    waves = [127 + 90 * numpy.sin(0.21 * x + 0.13 * y * (c + 1)) for c in range(3)]
    image = numpy.stack(waves, axis=2) + 60 * (x + y > 40)[:, :, None]
    image += numpy.random.default_rng(1).uniform(-25, 25, image.shape) * (y > 15)[:, :, None]
    return numpy.clip(image, 0, 255).astype(numpy.uint8)


def save_decoded(folder: pathlib.Path, name: str, encoded: bytes) -> None:
    (folder / name).write_bytes(encoded)
    decoded = ImageOps.exif_transpose(Image.open(io.BytesIO(encoded))).convert("RGB")
    numpy.save(folder / (name.rpartition(".")[0] + ".npy"), numpy.asarray(decoded))


def encode(image: Image.Image, file_format: str, **options) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, file_format, **options)
    return buffer.getvalue()


def save_pictures(folder: pathlib.Path, rgb: Image.Image) -> None:
    grey = rgb.convert("L")
    alpha = rgb.copy()
    alpha.putalpha(grey)
    palette = rgb.quantize(16)
    save_decoded(folder, "jpeg_420.jpg", encode(rgb, "JPEG", quality=85))
    save_decoded(folder, "jpeg_444.jpg", encode(rgb, "JPEG", quality=85, subsampling=0))
    save_decoded(folder, "jpeg_progressive.jpg", encode(rgb, "JPEG", quality=85, progressive=True))
    save_decoded(folder, "jpeg_grey.jpg", encode(grey, "JPEG", quality=85))
    save_decoded(folder, "jpeg_cmyk.jpg", encode(rgb.convert("CMYK"), "JPEG", quality=85))
    small = rgb.resize((12, 7))
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        save_decoded(folder, f"exif_{orientation}.png", encode(small, "PNG", exif=exif))
    exif = Image.Exif()
    exif[0x0112] = 6
    save_decoded(folder, "jpeg_exif.jpg", encode(small, "JPEG", exif=exif))
    save_decoded(folder, "webp_exif.webp", encode(small, "WEBP", lossless=True, exif=exif))
    save_decoded(folder, "png_rgb.png", encode(rgb, "PNG"))
    save_decoded(folder, "png_grey.png", encode(grey, "PNG"))
    save_decoded(folder, "png_bits.png", encode(grey.point(lambda value: 255 * (value > 127)).convert("1"), "PNG"))
    save_decoded(folder, "png_alpha.png", encode(alpha, "PNG"))
    save_decoded(folder, "png_palette.png", encode(palette, "PNG"))
    save_decoded(folder, "png_transparent.png", encode(palette, "PNG", transparency=3))
    wide = numpy.asarray(rgb)[:, :, ::-1].astype(numpy.uint16) * 256 + 77  # OpenCV takes BGR
    save_decoded(folder, "png_16.png", cv2.imencode(".png", wide)[1].tobytes())
    save_decoded(folder, "webp_lossless.webp", encode(rgb, "WEBP", lossless=True))
    save_decoded(folder, "webp_lossy.webp", encode(rgb, "WEBP", quality=80))


def save_resized(folder: pathlib.Path, pixels: numpy.ndarray) -> None:
    opencv = {"nearest": cv2.INTER_NEAREST, "bilinear": cv2.INTER_LINEAR, "bicubic": cv2.INTER_CUBIC}
    pillow = {"nearest": Image.NEAREST, "bilinear": Image.BILINEAR, "bicubic": Image.BICUBIC}
    for size, (height, width) in SIZES.items():
        for name in opencv:
            resized = cv2.resize(pixels, (width, height), interpolation=opencv[name])
            numpy.save(folder / f"resize_opencv_{name}_{size}.npy", resized)
            resized = numpy.asarray(Image.fromarray(pixels).resize((width, height), pillow[name]))
            numpy.save(folder / f"resize_pillow_{name}_{size}.npy", resized)


def save_rotated(folder: pathlib.Path, rgb: Image.Image) -> None:
    save = lambda name, image: numpy.save(folder / f"rotate_{name}.npy", numpy.asarray(image))
    save("nearest", rgb.rotate(30, Image.NEAREST))
    save("bilinear", rgb.rotate(-17, Image.BILINEAR, fillcolor=(9, 8, 7)))
    save("expanded", rgb.rotate(30, Image.BILINEAR, expand=True))
    save("centered", rgb.rotate(30, Image.NEAREST, center=(5, 9)))
    save("right", rgb.rotate(90, Image.NEAREST, expand=True))


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    pixels = photo()
    numpy.save(folder / "photo.npy", pixels)
    save_pictures(folder, Image.fromarray(pixels))
    save_resized(folder, pixels)
    save_rotated(folder, Image.fromarray(pixels))


if __name__ == "__main__":
    main()
