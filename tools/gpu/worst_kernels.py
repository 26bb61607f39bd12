#!/usr/bin/env python3
"""Hardware counters of the kernels that take most of a packed network's step: Nsight Compute (ncu) profiles one step
without a graph. All kernels are in counters-NETWORK.csv."""

import argparse
import csv
import io
import pathlib
import subprocess
import sys

TIME = "gpu__time_duration.sum"
MEMORY = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
ARITHMETIC = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
KERNELS = 12


def number(text):
    """0 where ncu could not measure ("n/a")."""
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def table(text):
    """Lines for the kernels that take most, of ncu's CSV, summed by name; shares of the peaks are weighted by time."""
    launches = {}
    for row in csv.DictReader(io.StringIO(text)):
        launches.setdefault((row["ID"], row["Kernel Name"]), {})[row["Metric Name"]] = number(row["Metric Value"])
    kernels = {}
    for (_, name), values in launches.items():
        time, memory, arithmetic, count = kernels.get(name, (0.0, 0.0, 0.0, 0))
        spent = values.get(TIME, 0.0)
        kernels[name] = (time + spent, memory + spent * values.get(MEMORY, 0.0),
                         arithmetic + spent * values.get(ARITHMETIC, 0.0), count + 1)
    lines = []
    for name, (time, memory, arithmetic, count) in sorted(kernels.items(), key=lambda item: -item[1][0])[:KERNELS]:
        lines.append(f"{time / 1e3:9.1f} us {count:4d} x  memory {memory / max(time, 1):5.1f} %  arithmetic "
                     f"{arithmetic / max(time, 1):5.1f} %  {name[:70]}")
    whole = sum(values[0] for values in kernels.values())
    return [*lines, f"{whole / 1e3:9.1f} us in {len(launches)} launches of {len(kernels)} kernels"]


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network")
    parser.add_argument("folder")
    arguments = parser.parse_args()

    # The counters take several passes. The whole run is repeated for each: repeating a kernel would save and restore
    # the gigabytes that it may write, launch by launch. A step has the same kernels and values each time.
    command = ["ncu", "--csv", "--print-units", "base", "--clock-control", "none", "--replay-mode", "application",
               "--metrics", ",".join([TIME, MEMORY, ARITHMETIC]), "bin/mpc-run",
               f"programs/{arguments.network}-cuda.mpcx", "--data=synthetic", "--steps=1", "--graph=off"]
    try:
        profile = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        sys.exit("ncu is not on PATH")
    rows = [line for line in profile.stdout.splitlines() if line.startswith('"')]
    if not rows:
        sys.exit(f"ncu gave no counters:\n{profile.stdout[-1500:]}{profile.stderr[-1500:]}")
    (pathlib.Path(arguments.folder) / f"counters-{arguments.network}.csv").write_text("\n".join(rows) + "\n")
    print("\n".join(table("\n".join(rows))))


if __name__ == "__main__":
    main()
