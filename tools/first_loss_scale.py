#!/usr/bin/env python3
"""Counts the steps that training skips at first, with the default loss scale and with the derived one.

first_loss_scale.py MPC_TRAIN [--steps=100]: trains each model twice from the same bits, on the same random batches, and
prints a row of a Markdown table for each. docs/ranges.md shows the table.
"""
import argparse
import re
import subprocess

MODELS = {"lenet5": 32, "bnnet": 32, "resnet18": 8, "gpt2-tiny": 32}
SUMMARY = re.compile(r"(\d+) skipped, loss scale (\d+)")
FIRST = re.compile(r"the loss scale begins at (\d+)")


def train(tool, model, batch, steps, scale):
    """What a run says of its scale: the first one (None: the default), the skipped steps, the last one."""
    command = [tool, model, "--data=synthetic", f"--steps={steps}", "--epochs=1", f"--batch-size={batch}",
               "--amp-level=O2", "--amp-verbosity=0", f"--loss-scale={scale}"]
    run = subprocess.run(command, capture_output=True, text=True)
    summary, first = SUMMARY.search(run.stdout + run.stderr), FIRST.search(run.stderr)
    if run.returncode != 0 or not summary:
        raise SystemExit(f"{' '.join(command)}:\n{run.stdout}{run.stderr}")
    return first and int(first.group(1)), int(summary.group(1)), int(summary.group(2))


def power(scale):
    """"2^13" of a power of two."""
    return f"2^{scale.bit_length() - 1}"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mpc_train")
    parser.add_argument("--steps", type=int, default=100)
    options = parser.parse_args()
    print(f"| model | rows a step | default: skipped of {options.steps} steps, and the scale then "
          f"| derived first scale: skipped, and the scale then |\n|---|---|---|---|")
    for model, batch in MODELS.items():
        _, skipped, last = train(options.mpc_train, model, batch, options.steps, "dynamic")
        first, few, kept = train(options.mpc_train, model, batch, options.steps, "derived")
        print(f"| {model} | {batch} | 2^24: {skipped}, {power(last)} | {power(first)}: {few}, {power(kept)} |", flush=True)


if __name__ == "__main__":
    main()
