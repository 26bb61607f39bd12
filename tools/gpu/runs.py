"""Runs of bin/mpc-run on packed programs, for the scripts of tools/gpu_check.sh. State files are safetensors."""

import json
import pathlib
import struct
import subprocess

import numpy

ITEM_TYPES = {"F32": numpy.float32, "F16": numpy.float16, "BF16": numpy.uint16, "I32": numpy.int32, "I64": numpy.int64,
              "BOOL": numpy.uint8}


class RunFailed(Exception):
    """mpc-run ended with an error; the text is what it said."""


def run(program, folder, name, *flags):
    """Runs programs/<program>.mpcx; returns its results and the path of its final state."""
    folder = pathlib.Path(folder)
    results, state = folder / f"{name}.json", folder / f"{name}.safetensors"
    command = ["bin/mpc-run", f"programs/{program}.mpcx", f"--json={results}", f"--dump-state={state}", *flags]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RunFailed(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return json.loads(results.read_text()), state


def read_state(path):
    """Tensors by name, as arrays; bf16 as its bits."""
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    tensors = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = numpy.frombuffer(data[begin:end], ITEM_TYPES[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def write_state(path, source, changes):
    """Writes `source` (a state file) to `path` with the bytes of the tensors in `changes` replaced."""
    data = bytearray(pathlib.Path(source).read_bytes())
    size = struct.unpack("<Q", data[:8])[0]
    header = json.loads(data[8:8 + size])
    for name, value in changes.items():
        begin, end = (8 + size + offset for offset in header[name]["data_offsets"])
        replacement = numpy.asarray(value, ITEM_TYPES[header[name]["dtype"]]).tobytes()
        if len(replacement) != end - begin:
            raise ValueError(f"{name} has {end - begin} bytes, not {len(replacement)}")
        data[begin:end] = replacement
    pathlib.Path(path).write_bytes(bytes(data))


def different_bits(first, second):
    """Names of the tensors that differ between two states, or are in one only."""
    names = sorted(set(first) | set(second))
    return [name for name in names
            if name not in first or name not in second or first[name].tobytes() != second[name].tobytes()]
