#!/usr/bin/env python3
"""Hardware counters of the kernels that take most of a packed network's step: a timed run says which instructions they
are, Nsight Compute (ncu) profiles one step without a graph."""

import argparse
import csv
import io
import json
import pathlib
import subprocess
import sys

METRICS = ",".join(["gpu__time_duration.sum", "dram__throughput.avg.pct_of_peak_sustained_elapsed",
                    "sm__throughput.avg.pct_of_peak_sustained_elapsed"])
KERNELS = 5


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network")
    parser.add_argument("folder")
    arguments = parser.parse_args()

    program = f"programs/{arguments.network}-cuda.mpcx"
    times = pathlib.Path(arguments.folder) / f"times-{arguments.network}.json"
    subprocess.run(["bin/mpc-run", program, "--data=synthetic", "--steps=12", "--warmup=8", f"--times={times}"],
                   check=True, stdout=subprocess.DEVNULL)
    worst = sorted(json.loads(times.read_text())["instructions"], key=lambda entry: -entry["median_us"])[:KERNELS]
    for entry in worst:
        print(f"{entry['median_us']:10.1f} us  {entry['kernel']} in {entry['scope']}")

    profile = subprocess.run(
        ["ncu", "--csv", "--clock-control", "none", "--metrics", METRICS, "bin/mpc-run", program, "--data=synthetic",
         "--steps=1", "--graph=off"], capture_output=True, text=True, check=False)
    rows = [line for line in profile.stdout.splitlines() if line.startswith('"')]
    if not rows:
        sys.exit(f"ncu gave no counters:\n{profile.stdout[-1500:]}{profile.stderr[-1500:]}")
    (pathlib.Path(arguments.folder) / f"counters-{arguments.network}.csv").write_text("\n".join(rows))
    kernels = {}
    for row in csv.DictReader(io.StringIO("\n".join(rows))):
        kernels.setdefault((row["ID"], row["Kernel Name"]), {})[row["Metric Name"]] = float(
            row["Metric Value"].replace(",", ""))
    slowest = sorted(kernels.items(), key=lambda item: -item[1].get("gpu__time_duration.sum", 0))[:KERNELS]
    for (_, name), values in slowest:
        time, memory, arithmetic = (values.get(metric, 0) for metric in METRICS.split(","))
        print(f"{time / 1e3:10.1f} us  {memory:5.1f} % of memory  {arithmetic:5.1f} % of arithmetic  {name[:80]}")


if __name__ == "__main__":
    main()
