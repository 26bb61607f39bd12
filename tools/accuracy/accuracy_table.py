#!/usr/bin/env python3
"""Trains models with mpc-train at every AMP level and prints the test accuracies as a Markdown table.

    tools/accuracy/accuracy_table.py build/default/bin/mpc-train > table.md

Every setting runs once for each seed. The last column says whether the mean lies within the spread of the f32 runs:
not below their worst seed. Standard library only.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

LEVELS = ["O0", "O1", "O2", "O3", "auto"]


def settings():
    """(level, low type) of each row; nothing is low at O0."""
    yield "O0", None
    for dtype in ["f16", "bf16"]:
        for level in LEVELS[1:]:
            yield level, dtype


def accuracy(arguments, model, level, dtype, seed):
    """Test accuracy and skipped steps of one run."""
    with tempfile.TemporaryDirectory() as folder:
        summary = Path(folder) / "summary.json"
        command = [arguments.mpc_train, model, f"--amp-level={level}", f"--seed={seed}", "--quiet",
                   f"--summary={summary}", f"--threads={arguments.threads}", *arguments.flags]
        if dtype:
            command.append(f"--dtype={dtype}")
        # Without a scaler O3 would lose f16 gradients that underflow; its users give one.
        if level == "O3" and dtype == "f16":
            command.append("--loss-scale=dynamic")
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode != 0:
            sys.exit(f"{' '.join(command)}\n{run.stderr}")
        result = json.loads(summary.read_text())
        return 100 * result["test_accuracy"], result["skipped_steps"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mpc_train", help="the mpc-train program")
    parser.add_argument("--models", default="lenet5,bnnet")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("flags", nargs="*", help="further flags of mpc-train, after --")
    arguments = parser.parse_intermixed_args()

    for model in arguments.models.split(","):
        print(f"### {model}\n")
        seeds = " | ".join(f"seed {seed}" for seed in range(arguments.seeds))
        print(f"| level | low type | {seeds} | mean | skipped steps | within the f32 spread |")
        print("|---|---|" + "---|" * (arguments.seeds + 3))
        worst_f32 = None
        for level, dtype in settings():
            runs = [accuracy(arguments, model, level, dtype, seed) for seed in range(arguments.seeds)]
            values = [value for value, _ in runs]
            mean = statistics.mean(values)
            if worst_f32 is None:
                worst_f32 = min(values)
            cells = " | ".join(f"{value:.2f}" for value in values)
            skipped = sum(skips for _, skips in runs)
            verdict = "yes" if mean >= worst_f32 else "no"
            print(f"| {level} | {dtype or '-'} | {cells} | {mean:.2f} | {skipped} | {verdict} |", flush=True)
        print()


if __name__ == "__main__":
    main()
