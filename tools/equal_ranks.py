#!/usr/bin/env python3
"""Trains models in 1, 2 and 4 processes, and compares the state bit for bit.

    python3 tools/equal_ranks.py build/default/bin/mpc-train [--mpirun=mpirun] [--models=lenet5,bnnet,gpt2-tiny]

An update has four micro-batches: N processes run 4 / N of them each. One process accumulates all four. Each model is
trained at O0 and at O2 in f16, with LAMB and clipping, for 100 updates or a few more. GPT-2-tiny has dropout too. N = 2 and 4 run over the transport
"shared", and with --mpirun over "mpi" too. --micro-batches=V takes another power of two than four.

Prints a line for each run, then PASS where all states of a model and a level are equal. A run that fails ends the tool,
which then prints the exit status and the last lines of every process. Standard library only.
"""

import argparse
import pathlib
import sys
import tempfile
import time

import ranks

# 1,437 digits make 44 batches, which are 11 updates of four.
DIGITS = ["--epochs=10", "--drop-remainder"]
DATA = {"lenet5": DIGITS, "bnnet": DIGITS,
        "gpt2-tiny": ["--data=text", "--steps=400", "--sample=0", "--dropout=0.1"]}
LEVELS = {"O0": ["--amp-level=O0"], "O2 f16": ["--amp-level=O2", "--dtype=f16"]}
LIMIT = 600  # seconds a run


def train(arguments, model, level, size, transport, path):
    """The tensors of the checkpoint that a run leaves at `path`."""
    command = [arguments.mpc_train, model, *DATA[model], *LEVELS[level], "--optimizer=lamb", "--clip-norm=1",
               "--amp-verbosity=0", "--threads=1", "--quiet", f"--save={path}", "--distributed",
               f"--accumulation={arguments.micro_batches // size}"]
    if transport:
        command.append(f"--transport={transport}")
    mpirun = arguments.mpirun if transport == "mpi" else ""
    failure = ranks.Group(command, size, path.parent, mpirun).failure(LIMIT)
    if failure:
        sys.exit(f"{model} at {level} in {size} processes over {transport or 'nothing'} failed:\n{failure}")
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
    parser.add_argument("--repeat", type=int, default=1, help="runs of each case; default: 1")
    parser.add_argument("--levels", type=lambda text: text.split(","), default=list(LEVELS),
                        help=f"of {','.join(LEVELS)}; default: all")
    parser.add_argument("--micro-batches", type=int, default=4, help="of an update; default: 4")
    arguments = parser.parse_args()
    transports = arguments.transports or ["shared"] + (["mpi"] if arguments.mpirun else [])
    same = True
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name, "state.safetensors")
        for model in arguments.models:
            for level in arguments.levels:
                alone = train(arguments, model, level, 1, "", path)
                for size in arguments.ranks:
                    for transport in transports * arguments.repeat:
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
