#!/usr/bin/env python3
"""Trains a packed network for many steps and watches the memory of the GPU and of the process: after the first tenth
neither may grow."""

import argparse
import pathlib
import subprocess
import sys
import time

# The driver and the allocator of the C library keep some pages of their own.
ALLOWED_HOST_KIB = 4096


def gpu_mib():
    text = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                          capture_output=True, text=True, check=True).stdout
    return int(text.split()[0])


def host_kib(process):
    try:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    except FileNotFoundError:
        return None
    lines = [line for line in status.splitlines() if line.startswith("VmRSS")]
    return int(lines[0].split()[1]) if lines else None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("network")
    parser.add_argument("folder")
    parser.add_argument("--steps", type=int, default=10000)
    arguments = parser.parse_args()

    command = ["bin/mpc-run", f"programs/{arguments.network}-cuda.mpcx", f"--steps={arguments.steps}",
               "--data=synthetic", "--print-every=100"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    samples, last = [], 0.0
    output = []
    for line in process.stdout:
        output.append(line)
        if not line.startswith("step ") or time.monotonic() - last < 0.1:
            continue
        last = time.monotonic()
        resident = host_kib(process)
        if resident is not None:
            samples.append((int(line.split()[1].rstrip(":")), gpu_mib(), resident))
    if process.wait() != 0:
        sys.exit("".join(output[-10:]))
    steady = [sample for sample in samples if sample[0] >= arguments.steps // 10]
    if len(steady) < 2:
        sys.exit(f"{len(samples)} samples are too few; raise --steps")
    gpu_growth, host_growth = steady[-1][1] - steady[0][1], steady[-1][2] - steady[0][2]
    print(f"from step {steady[0][0]} to {steady[-1][0]}: GPU {gpu_growth:+d} MiB, process {host_growth:+d} KiB")
    sys.exit(0 if gpu_growth <= 0 and host_growth <= ALLOWED_HOST_KIB else 1)


if __name__ == "__main__":
    main()
