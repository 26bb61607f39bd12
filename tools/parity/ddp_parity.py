#!/usr/bin/env python3
"""Trains in two processes in mpc and in PyTorch and compares the losses of every step.

    python3 tools/parity/ddp_parity.py build/default/bin/mpc-bench [--python=torch/bin/python] [--steps=100]

`mpc-bench --ranks=2 --peer=torch-ddp` runs both: mpc over its transport "shared", PyTorch's DistributedDataParallel over
gloo, in f32, from equal weights, on equal batches, with equal optimizers. Prints a Markdown table. The exit status is 1
if two losses differ by more than 1e-4. This script needs no PyTorch, the interpreter of --python does.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

TOLERANCE = 1e-4
NETWORKS = ["lenet5:64", "gpt2-tiny:16"]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("mpc_bench")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has PyTorch (this one)")
    parser.add_argument("--networks", nargs="*", default=NETWORKS, metavar="NETWORK:BATCH",
                        help="of mpc-bench; the batch is that of all ranks (%(default)s)")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=100)
    return parser.parse_args()


def train(arguments, network, folder):
    """The row of mpc-bench with both programs."""
    result = pathlib.Path(folder, "result.json")
    subprocess.run([arguments.mpc_bench, network, f"--ranks={arguments.ranks}", "--peer=torch-ddp",
                    f"--python={arguments.python}", "--peer-layout=nchw", "--runs=1", "--warmup=0", "--seconds=0",
                    f"--steps={arguments.steps}", f"--json={result}"], check=True, stdout=subprocess.DEVNULL)
    rows = json.loads(result.read_text(encoding="utf-8"))["rows"]
    return next(row for row in rows if row["peer"]["name"] == "torch-ddp")


def main():
    arguments = parse()
    worst = 0.0
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for network in arguments.networks:
            row = train(arguments, network, folder)
            difference = row["loss_difference"]
            worst = max(worst, difference["largest"])
            rows.append(f"| {network} | {row['mpc']['first_loss']:.5f} | {row['peer']['first_loss']:.5f} | "
                        f"{row['mpc']['final_loss']:.5f} | {row['peer']['final_loss']:.5f} | "
                        f"{difference['largest']:.2g} |")
    print(f"{row['peer']['version']}, {arguments.ranks} ranks, {arguments.steps} steps\n")
    print("| network:batch | at the start: mpc | PyTorch | at the end: mpc | PyTorch | largest difference of a step |\n"
          "|---|---|---|---|---|---|")
    print("\n".join(rows))
    print(f"\nlargest difference {worst:.2g}, allowed {TOLERANCE}")
    sys.exit(0 if worst <= TOLERANCE else 1)


if __name__ == "__main__":
    main()
