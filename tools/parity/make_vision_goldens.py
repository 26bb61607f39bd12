#!/usr/bin/env python3
"""Writes pictures and what Pillow and OpenCV make of them for tests/data/vision_*_test.cc.

    python3 tools/parity/make_vision_goldens.py tests/data/vision [--augmented]

Needs numpy, Pillow, opencv-python-headless and torchvision. The committed files come from Pillow 13.0, OpenCV 5.0 and
torchvision 0.29. A picture `NAME.jpg`, `.png` or `.webp` stands beside `NAME.npy`, its pixels in RGB as Pillow decodes
them. `photo.npy` is also the source of `resize_*.npy`, `rotate_*.npy` and `augment_*.npy`.

`--augmented` writes `augment_*.npy` alone, of a `photo.npy` that is there. Pillow and torchvision are enough for it.
"""

import io
import pathlib
import sys

try:
    import cv2
except ImportError:  # --augmented goes without it
    cv2 = None
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


def save_augmented(folder: pathlib.Path, pixels: numpy.ndarray) -> None:
    """Operations of torchvision's tables, stacked: at the bins 26 and 14 of the wide one, and 28 of RandAugment's.

    The sign of bin 14 is negative where there is one. Operations without a magnitude have the picture and a dim one.
    """
    from torchvision.transforms import InterpolationMode, autoaugment

    bins = 31
    wide = autoaugment.TrivialAugmentWide()._augmentation_space(bins)
    narrow = autoaugment.RandAugment()._augmentation_space(bins, pixels.shape[:2])
    rgb = Image.fromarray(pixels)

    def augmented(space, name, index, sign, interpolation=InterpolationMode.NEAREST, fill=None):
        magnitudes, signed = space[name]
        magnitude = float(magnitudes[index]) * (sign if signed else 1)
        return numpy.asarray(autoaugment._apply_op(rgb, name, magnitude, interpolation, fill))

    for name, (magnitudes, _) in wide.items():
        if name == "Identity":
            continue
        if magnitudes.ndim == 0:
            dim = Image.fromarray(pixels // 2 + 40)
            of_each = [autoaugment._apply_op(image, name, 0.0, None, None) for image in (rgb, dim)]
        else:
            of_each = [augmented(wide, name, 26, 1), augmented(wide, name, 14, -1), augmented(narrow, name, 28, 1)]
        numpy.save(folder / f"augment_{name}.npy", numpy.stack([numpy.asarray(image) for image in of_each]))
    bilinear = [augmented(wide, name, 26, 1, InterpolationMode.BILINEAR, (9, 8, 7)) for name in ("ShearX", "Rotate")]
    numpy.save(folder / "augment_bilinear.npy", numpy.stack(bilinear))


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    if sys.argv[2:] == ["--augmented"]:
        save_augmented(folder, numpy.load(folder / "photo.npy"))
        return
    folder.mkdir(parents=True, exist_ok=True)
    pixels = photo()
    numpy.save(folder / "photo.npy", pixels)
    save_pictures(folder, Image.fromarray(pixels))
    save_resized(folder, pixels)
    save_rotated(folder, Image.fromarray(pixels))
    save_augmented(folder, pixels)


if __name__ == "__main__":
    main()
