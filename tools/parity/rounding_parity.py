#!/usr/bin/env python3
"""Holds mpc's losses of bnnet against PyTorch's in f64, beside the distance that PyTorch's own f32 has from it.

    python3 tools/parity/rounding_parity.py build/default/bin/mpc-bench [--python=torch/bin/python] [--ranks=2]

Batch normalisation amplifies rounding, so that two correct programs part. This tells rounding from a difference of
definition: a definition that differs shows at once, and rounding grows from the last bits. Prints a Markdown table of
largest differences after so many steps. The exit status is 1 where mpc is more than 3 times as far from f64 as the
farthest f32 of PyTorch is, after any of these numbers of steps. This script needs no PyTorch, the interpreter of
--python does.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

STEPS = [1, 5, 10, 20, 50, 100]
ALLOWED = 3.0
NETWORK = "bnnet:64"


def train(arguments, steps, folder):
    """(the largest distance of mpc's losses from PyTorch's in f64, PyTorch's losses by variant)"""
    result, losses = pathlib.Path(folder, "result.json"), pathlib.Path(folder, "losses.json")
    peer = ["--peer=torch-ddp", f"--ranks={arguments.ranks}"] if arguments.ranks > 1 else ["--peer=torch", "--threads=1"]
    script = pathlib.Path(__file__).with_name("torch_rounding.py")
    subprocess.run([arguments.mpc_bench, NETWORK, *peer, f"--python={arguments.python}", f"--peer-script={script}",
                    "--peer-layout=nchw", "--runs=1", "--warmup=0", "--seconds=0", f"--steps={steps}",
                    f"--json={result}"], check=True, stdout=subprocess.DEVNULL,
                   env={**os.environ, "MPC_ROUNDING": str(losses)})
    rows = json.loads(result.read_text(encoding="utf-8"))["rows"]
    row = next(row for row in rows if row["peer"]["name"].startswith("torch"))
    return row["loss_difference"]["largest"], json.loads(losses.read_text(encoding="utf-8"))


def largest(losses, other, steps):
    return max(abs(one - two) for one, two in zip(losses[1:steps + 1], other[1:steps + 1]))


def line(name, distances):
    return f"| {name} | " + " | ".join(f"{distance:.1e}" for distance in distances) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("mpc_bench")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has PyTorch (this one)")
    parser.add_argument("--ranks", type=int, default=2)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = [train(arguments, steps, folder) for steps in STEPS]
    losses = found[-1][1]
    own = [distance for distance, _ in found]
    reference = losses["f64"]
    others = {name: [largest(of_variant, reference, steps) for steps in STEPS]
              for name, of_variant in losses.items() if name != "f64"}
    between = [largest(losses["f32, 1 thread"], losses["f32, 2 threads"], steps) for steps in STEPS]
    print(f"{NETWORK}, {arguments.ranks} ranks: the largest difference of a loss from PyTorch's in f64\n")
    print("| steps | " + " | ".join(map(str, STEPS)) + " |\n" + "|---" * (len(STEPS) + 1) + "|")
    print(line("mpc, f32", own))
    for name, distances in others.items():
        print(line(f"PyTorch, {name}", distances))
    print(line("PyTorch, f32, 1 thread from 2 threads", between))
    worst = max(distance / max(of_variant[i] for name, of_variant in others.items() if name.startswith("f32"))
                for i, distance in enumerate(own))
    print(f"\nmpc is at most {worst:.2g} times as far from f64 as PyTorch's f32, allowed {ALLOWED:.2g}")
    sys.exit(0 if worst <= ALLOWED else 1)


if __name__ == "__main__":
    main()
