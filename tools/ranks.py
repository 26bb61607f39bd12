"""Processes of mpc-train that train together, and what they have saved, for scripts and tests. Standard library only."""

import json
import os
import pathlib
import socket
import struct
import subprocess


def free_port():
    """A port of this machine that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def start_rank(command, rank, size, port, **keywords):
    """Starts one process with the variables of torchrun. `keywords` are those of Popen."""
    environment = dict(os.environ, RANK=str(rank), WORLD_SIZE=str(size), LOCAL_RANK=str(rank),
                       LOCAL_WORLD_SIZE=str(size), MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    return subprocess.Popen(command, env=environment, **keywords)


def start_ranks(command, size, **keywords):
    """Starts a group of `size` processes, in the order of ranks."""
    port = free_port()
    return [start_rank(command, rank, size, port, **keywords) for rank in range(size)]


def mpirun_command(mpirun, size, command):
    """The command that starts a group of `size` processes on this machine, whatever cores it has."""
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return [mpirun, "-n", str(size), "--oversubscribe", "--bind-to", "none", *root, *command]


def tensors(path):
    """The bytes of each tensor of a checkpoint, without the sums over micro-batches, which one process may have."""
    content = pathlib.Path(path).read_bytes()
    length = struct.unpack("<Q", content[:8])[0]
    header = json.loads(content[8:8 + length])
    data = content[8 + length:]
    return {name: data[slice(*entry["data_offsets"])] for name, entry in header.items()
            if name != "__metadata__" and not name.startswith("accumulator.")}
