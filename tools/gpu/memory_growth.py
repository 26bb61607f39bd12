#!/usr/bin/env python3
"""Trains a packed network for many steps and watches the memory of the GPU and of the process: after the first tenth
neither may grow. Nothing else may use the GPU meanwhile."""

import argparse
import pathlib
import subprocess
import sys
import time

# The driver and the allocator of the C library keep some pages of their own.
ALLOWED_HOST_KIB = 4096


def gpu_mib():
    try:
        text = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
                              capture_output=True, text=True, check=True).stdout
    except (FileNotFoundError, subprocess.CalledProcessError) as error:
        sys.exit(f"nvidia-smi does not tell the memory in use: {error}")
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
    parser.add_argument("--steps", type=int, default=50000)
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
        # A process that ends between the two has less memory on the GPU, not more.
        resident, used = host_kib(process), gpu_mib()
        if resident is not None:
            samples.append((int(line.split()[1].rstrip(":")), used, resident))
    if process.wait() != 0:
        sys.exit("".join(output[-10:]))
    steady = [sample for sample in samples if sample[0] >= arguments.steps // 10]
    if len(steady) < 3:
        sys.exit(f"{len(steady)} samples after the first tenth are too few; raise --steps")
    gpu_growth, host_growth = (max(sample[i] for sample in steady[1:]) - steady[0][i] for i in (1, 2))
    print(f"{len(steady)} samples from step {steady[0][0]} to {steady[-1][0]}: GPU {gpu_growth:+d} MiB, process "
          f"{host_growth:+d} KiB at most; allowed 0 MiB, {ALLOWED_HOST_KIB} KiB")
    sys.exit(0 if gpu_growth <= 0 and host_growth <= ALLOWED_HOST_KIB else 1)


if __name__ == "__main__":
    main()
