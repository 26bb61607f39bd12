#!/usr/bin/env python3
"""Where the time of a packed network's step goes: runs it instruction by instruction and prints the kernels that take
most, summed over their instructions, and the slowest single instructions. All of them are in nodes-NETWORK.json."""

import argparse
import json
import pathlib
import subprocess
import sys

KERNELS = 10
INSTRUCTIONS = 6


def table(instructions):
    """Lines: each kernel's sum, its share and how often it runs; then single instructions."""
    whole = sum(entry["median_us"] for entry in instructions) or 1.0
    sums = {}
    for entry in instructions:
        time, count = sums.get(entry["kernel"], (0.0, 0))
        sums[entry["kernel"]] = (time + entry["median_us"], count + 1)
    lines = [f"{time:9.1f} us {100 * time / whole:5.1f} %  {count:4d} x {kernel[:60]}"
             for kernel, (time, count) in sorted(sums.items(), key=lambda item: -item[1][0])[:KERNELS]]
    lines += [f"{entry['median_us']:9.1f} us  {entry['kernel'][:40]} in {entry['scope'][:50]}"
              for entry in sorted(instructions, key=lambda entry: -entry["median_us"])[:INSTRUCTIONS]]
    return [*lines, f"{whole:9.1f} us in {len(instructions)} instructions"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network")
    parser.add_argument("folder")
    arguments = parser.parse_args()

    times = pathlib.Path(arguments.folder) / f"nodes-{arguments.network}.json"
    command = ["bin/mpc-run", f"programs/{arguments.network}-cuda.mpcx", "--data=synthetic", "--steps=12", "--warmup=4",
               f"--times={times}"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stdout)
    print("\n".join(table(json.loads(times.read_text())["instructions"])))


if __name__ == "__main__":
    main()
