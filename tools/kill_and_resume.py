#!/usr/bin/env python3
"""Kills mpc-train at random steps, resumes it each time, and compares the last checkpoint with an uninterrupted run's.

    python3 tools/kill_and_resume.py build/default/bin/mpc-train [--kills=20] [--ranks=1,2,4] [-- MODEL FLAGS...]

Each life is told a step, and gets SIGKILL a random time after it has saved a checkpoint of that step or a later one.
With --ranks each life is of a random one of these numbers of processes, and a random one of them is killed. The others
must end by themselves, with exit status 1 and an error that names the rank. The largest number is that of micro-batches
of an update, which the processes of a life share. The uninterrupted run has the largest number of processes.

Prints a line for each life, then PASS where the two files have the same bytes, or with --ranks the same tensors.
Standard library only.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time

import ranks

SAVE_EVERY = 3  # so that most lives redo steps
DEFAULT_RUN = ["lenet5", "--epochs=15", "--amp-level=O2", "--amp-verbosity=0", "--drop-remainder", "--threads=1"]
ENDS_WITHIN = 90  # seconds; mpc promises 60, and a machine may have other work


def newest_step(folder):
    """The step of the newest checkpoint; 0 without one."""
    return max((int(path.stem.rpartition("-")[2]) for path in folder.glob("checkpoint-*.safetensors")), default=0)


def newest(folder):
    return folder / f"checkpoint-{newest_step(folder)}.safetensors"


def start(arguments, folder, size):
    command = [arguments.mpc_train, *(arguments.run or DEFAULT_RUN), "--quiet", "--resume", f"--save={folder}/",
               f"--save-every={SAVE_EVERY}", "--keep=3"]
    if not arguments.ranks:
        return [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)]
    command += ["--distributed", f"--accumulation={max(arguments.ranks) // size}"]
    return ranks.start_ranks(command, size, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def live_to_the_end(arguments, folder, size):
    for process in start(arguments, folder, size):
        errors = process.communicate()[1]
        if process.returncode != 0:
            sys.exit(f"an uninterrupted run ended with status {process.returncode}:\n{errors}")


def live(arguments, folder, size, victim, step, delay):
    """Runs until `delay` seconds after the checkpoint of `step`, and kills process `victim`.

    Returns what is wrong with its end, or with that of the others; None if nothing is.
    """
    processes = start(arguments, folder, size)
    while newest_step(folder) < step and processes[victim].poll() is None:
        time.sleep(0.001)
    time.sleep(delay)
    processes[victim].kill()
    wrong = None
    for rank, process in enumerate(processes):
        try:
            errors = process.communicate(timeout=ENDS_WITHIN)[1]
        except subprocess.TimeoutExpired:
            process.kill()
            errors = process.communicate()[1]
            wrong = f"process {rank} had not ended {ENDS_WITHIN} s after process {victim} was killed:\n{errors}"
            continue
        if rank == victim and process.returncode >= 0:
            wrong = f"process {rank} had ended with status {process.returncode} before it was killed:\n{errors}"
        elif rank != victim and (process.returncode != 1 or f"rank {victim}" not in errors):
            wrong = wrong or f"process {rank} ended with status {process.returncode}:\n{errors}"
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mpc_train", help="the mpc-train program")
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--ranks", type=lambda text: [int(number) for number in text.split(",")], default=[],
                        help="numbers of processes, powers of two; default: one process without --distributed")
    parser.add_argument("run", nargs="*", help=f"what to train, after --; default: {' '.join(DEFAULT_RUN)}")
    arguments = parser.parse_intermixed_args()
    draws = random.Random(arguments.seed)
    sizes = arguments.ranks or [1]
    with tempfile.TemporaryDirectory() as name:
        whole, killed = pathlib.Path(name, "whole"), pathlib.Path(name, "killed")
        whole.mkdir(), killed.mkdir()
        begin = time.monotonic()
        live_to_the_end(arguments, whole, max(sizes))
        steps = newest_step(whole)
        step_seconds = (time.monotonic() - begin) / steps
        for kill, step in enumerate(sorted(draws.sample(range(1, steps * 9 // 10), arguments.kills)), 1):
            size = draws.choice(sizes)
            victim = draws.randrange(size)
            life = time.monotonic()
            wrong = live(arguments, killed, size, victim, step, draws.uniform(0, SAVE_EVERY * step_seconds))
            if wrong:
                sys.exit(f"kill {kill}, of process {victim} of {size} at step {step} or behind it: {wrong}")
            who = f" of process {victim} of {size}" if arguments.ranks else ""
            print(f"kill {kill}{who}: at step {step} or behind it; the newest checkpoint has {newest_step(killed)} of "
                  f"{steps}; {time.monotonic() - life:.1f} s", flush=True)
        live_to_the_end(arguments, killed, draws.choice(sizes))
        content = ranks.tensors if arguments.ranks else pathlib.Path.read_bytes
        same = newest_step(killed) == steps and content(newest(killed)) == content(newest(whole))
    print("PASS" if same else "FAIL: the last checkpoints differ")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
