#!/usr/bin/env python3
"""Kills mpc-train at random steps, resumes it each time, and compares the last checkpoint with an uninterrupted run's.

    python3 tools/kill_and_resume.py build/default/bin/mpc-train [--kills=20] [-- MODEL FLAGS...]

Each life is told a step, and gets SIGKILL a random time after it has saved a checkpoint of that step or a later one.
Prints a line for each life, then PASS where the two files have the same bytes. Standard library only.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time

SAVE_EVERY = 3  # so that most lives redo steps
DEFAULT_RUN = ["lenet5", "--epochs=15", "--amp-level=O2", "--amp-verbosity=0"]


def newest_step(folder):
    """The step of the newest checkpoint; 0 without one."""
    return max((int(path.stem.rpartition("-")[2]) for path in folder.glob("checkpoint-*.safetensors")), default=0)


def command(arguments, folder):
    return [arguments.mpc_train, *(arguments.run or DEFAULT_RUN), "--quiet", "--resume", f"--save={folder}/",
            f"--save-every={SAVE_EVERY}", "--keep=3"]


def live(arguments, folder, step, delay):
    """Runs until `delay` seconds after the checkpoint of `step`. False if the run ended by itself."""
    tool = subprocess.Popen(command(arguments, folder), stdout=subprocess.DEVNULL)
    while newest_step(folder) < step:
        if tool.poll() is not None:
            return False
        time.sleep(0.001)
    time.sleep(delay)
    tool.kill()
    return tool.wait() < 0


def content(folder):
    return (folder / f"checkpoint-{newest_step(folder)}.safetensors").read_bytes()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mpc_train", help="the mpc-train program")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("run", nargs="*", help=f"what to train, after --; default: {' '.join(DEFAULT_RUN)}")
    arguments = parser.parse_intermixed_args()
    draws = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as name:
        whole, killed = pathlib.Path(name, "whole"), pathlib.Path(name, "killed")
        whole.mkdir(), killed.mkdir()
        begin = time.monotonic()
        subprocess.run(command(arguments, whole), check=True, stdout=subprocess.DEVNULL)
        steps = newest_step(whole)
        step_seconds = (time.monotonic() - begin) / steps
        for kill, step in enumerate(sorted(draws.sample(range(1, steps * 9 // 10), arguments.kills)), 1):
            if not live(arguments, killed, step, draws.uniform(0, SAVE_EVERY * step_seconds)):
                sys.exit(f"kill {kill}: the run was over before it, after {newest_step(killed)} of {steps} steps")
            print(f"kill {kill}: at step {step} or behind it; the newest checkpoint has {newest_step(killed)} of "
                  f"{steps}", flush=True)
        subprocess.run(command(arguments, killed), check=True, stdout=subprocess.DEVNULL)
        same = newest_step(killed) == steps and content(killed) == content(whole)
    print("PASS" if same else "FAIL: the last checkpoints differ")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
