#!/usr/bin/env python3
"""The page of a step (mpc-opt --emit=html) in headless Chromium: its picture, or how long it takes to open.

    page_picture.py MPC_OPT --out=FILE.png [--model=M] [--batch=N] [--fragment=F] [--size=WxH]
    page_picture.py MPC_OPT --time [--model=M] [--batch=N]

README's picture is that of the default values. A page takes its state from the fragment of its address, as in
level=O2&compare=O0&op=4&theme=dark.
"""
import argparse
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
# What the picture shows: in ResNet-50 the last layer, whose result is cast for the loss.
FRAGMENT = "level=O2&op=175"
LIMIT = 120


def find_browser():
    """The path of a Chromium, MPC_CHROMIUM before those of PATH. None where there is none."""
    return os.environ.get("MPC_CHROMIUM") or next(filter(None, map(shutil.which, BROWSERS)), None)


def run_browser(browser, address, *options):
    """What the browser prints. Nothing of it stays: its profile is a folder of this call."""
    with tempfile.TemporaryDirectory() as profile:
        command = [browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--no-first-run", "--hide-scrollbars", f"--user-data-dir={profile}", *options, address]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=LIMIT).stdout


def address_of(page, fragment=""):
    return pathlib.Path(page).resolve().as_uri() + (f"#{fragment}" if fragment else "")


def document_of(browser, page, fragment=""):
    """The page's document as HTML, after its script."""
    return run_browser(browser, address_of(page, fragment), "--window-size=1600,1000", "--dump-dom")


def write_page(mpc_opt, page, model, *options):
    subprocess.run([mpc_opt, f"--model={model}", "--emit=html", "-o", str(page), *options], check=True, timeout=LIMIT)


def take_picture(browser, page, fragment, size, out):
    run_browser(browser, address_of(page, fragment), f"--window-size={size.replace('x', ',')}", f"--screenshot={out}",
                "--virtual-time-budget=5000")


def print_times(browser, page):
    def wall(address):
        start = time.monotonic()
        text = run_browser(browser, address, "--window-size=1600,1000", "--dump-dom")
        return time.monotonic() - start, text
    empty = statistics.median(wall("about:blank")[0] for _ in range(3))
    runs = [wall(address_of(page)) for _ in range(3)]
    drawn = [int(re.search(r'data-drawn="(\d+)"', text)[1]) for _, text in runs]
    print(f"{page.stat().st_size / 2**20:.1f} MiB; drawn {statistics.median(drawn):.0f} ms after the page was asked for; "
          f"{statistics.median(seconds for seconds, _ in runs):.2f} s from the start of the browser to its end, "
          f"{empty:.2f} s with an empty page")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("mpc_opt")
    parser.add_argument("--model", default="resnet50-imagenet")
    parser.add_argument("--batch", default="32")
    parser.add_argument("--level", default="O2")
    parser.add_argument("--fragment", default=FRAGMENT)
    parser.add_argument("--size", default="1600x1000")
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--time", action="store_true")
    arguments = parser.parse_args()
    browser = find_browser()
    if browser is None:
        sys.exit("page_picture.py: no Chromium: apt-get install chromium, or name one in MPC_CHROMIUM")
    if not arguments.time and arguments.out is None:
        parser.error("say what to do: --out=FILE.png or --time")
    with tempfile.TemporaryDirectory() as folder:
        page = pathlib.Path(folder) / "page.html"
        write_page(arguments.mpc_opt, page, arguments.model, "--train", f"--batch={arguments.batch}",
                   f"--amp-level={arguments.level}")
        if arguments.time:
            print(f"{arguments.model}: ", end="")
            print_times(browser, page)
        if arguments.out:
            take_picture(browser, page, arguments.fragment, arguments.size, arguments.out.resolve())


if __name__ == "__main__":
    main()
