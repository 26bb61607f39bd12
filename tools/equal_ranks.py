#!/usr/bin/env python3
"""Trains models in 1, 2 and 4 processes, and compares the state bit for bit.

    python3 tools/equal_ranks.py build/default/bin/mpc-train [--mpirun=mpirun] [--models=lenet5,bnnet,gpt2-tiny]

An update has four micro-batches: N processes run 4 / N of them each. One process accumulates all four. Each model is
trained at O0 and at O2 in f16, with LAMB and clipping, for 100 updates or a few more. N = 2 and 4 run over the transport
"shared", and with --mpirun over "mpi" too. --micro-batches=V takes another power of two than four.

Prints a line for each run, then PASS where all states of a model and a level are equal. Standard library only.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

import ranks

# 1,437 digits make 44 batches, which are 11 updates of four.
DIGITS = ["--epochs=10", "--drop-remainder"]
DATA = {"lenet5": DIGITS, "bnnet": DIGITS, "gpt2-tiny": ["--data=text", "--steps=400", "--sample=0"]}
LEVELS = {"O0": ["--amp-level=O0"], "O2 f16": ["--amp-level=O2", "--dtype=f16"]}
LIMIT = 600  # seconds a run


def train(arguments, model, level, size, transport, path):
    """The tensors of the checkpoint that a run leaves at `path`."""
    command = [arguments.mpc_train, model, *DATA[model], *LEVELS[level], "--optimizer=lamb", "--clip-norm=1",
               "--amp-verbosity=0", "--threads=1", "--quiet", f"--save={path}", "--distributed",
               f"--accumulation={arguments.micro_batches // size}"]
    if transport:
        command.append(f"--transport={transport}")
    if transport == "mpi":
        processes = [subprocess.Popen(ranks.mpirun_command(arguments.mpirun, size, command), stdin=subprocess.DEVNULL,
                                      stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)]
    else:
        processes = ranks.start_ranks(command, size, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    for process in processes:
        errors = process.communicate(timeout=LIMIT)[1]
        if process.returncode != 0:
            sys.exit(f"{model} at {level} in {size} processes ended with status {process.returncode}:\n{errors}")
    return ranks.tensors(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mpc_train", help="the mpc-train program")
    parser.add_argument("--mpirun", default="", help="Open MPI's mpirun; default: the transport mpi is left out")
    parser.add_argument("--models", type=lambda text: text.split(","), default=list(DATA),
                        help=f"of {','.join(DATA)}; default: all")
    parser.add_argument("--ranks", type=lambda text: [int(number) for number in text.split(",")], default=[2, 4],
                        help="numbers of processes that are compared with one: 2, 4; default: both")
    parser.add_argument("--transports", type=lambda text: text.split(","), default=[],
                        help="default: shared, and with --mpirun mpi")
    parser.add_argument("--micro-batches", type=int, default=4, help="of an update; default: 4")
    arguments = parser.parse_args()
    transports = arguments.transports or ["shared"] + (["mpi"] if arguments.mpirun else [])
    same = True
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name, "state.safetensors")
        for model in arguments.models:
            for level in LEVELS:
                alone = train(arguments, model, level, 1, "", path)
                for size in arguments.ranks:
                    for transport in transports:
                        begin = time.monotonic()
                        state = train(arguments, model, level, size, transport, path)
                        differing = sorted(key for key in alone.keys() | state.keys() if alone.get(key) != state.get(key))
                        print(f"{model} at {level}, {size} processes over {transport}: {len(state)} tensors, "
                              f"{len(differing)} differ from one process; {time.monotonic() - begin:.1f} s", flush=True)
                        same = same and not differing
    print("PASS" if same else "FAIL")
    sys.exit(0 if same else 1)


if __name__ == "__main__":
    main()
