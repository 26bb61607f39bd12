"""The ```sh blocks of a page and their commands.

A comment on the line before a block says why a test does not run it:
    <!-- not run: REASON -->   never: what it needs or does has no place in a test
    <!-- long: REASON -->      only where that is asked for
    <!-- first hour: WHAT -->  tools/first_hour.sh runs it, in one folder with the other blocks of that mark
"""
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^(?:<!-- (?P<mark>not run|long|first hour): (?P<reason>[^\n]+) -->\n)?```sh\n(?P<text>.*?)^```$",
                   re.MULTILINE | re.DOTALL)


def blocks(name, text):
    """The blocks as matches. Errors: a block that does not end, or a mark that is none."""
    found = list(BLOCK.finditer(text))
    if len(found) != len(re.findall(r"^```sh$", text, re.MULTILINE)):
        raise ValueError(f"{name}: a block of commands has no end, or a mark that is none")
    return found


def commands(text):
    """The commands of a block, without comments; a line that ends in a backslash goes on.

    A word in brackets is an option that a reader may add; it is left out.
    """
    joined = re.sub(r"\\\n\s*", "", text)
    lines = (re.sub(r"(^|\s)#\s.*", "", line).strip() for line in joined.splitlines())
    return [re.sub(r"\s\[[^]]+\]", "", line) for line in lines if line]


def located(command, programs):
    """The command with the paths of a page, which is read at the root of a clone, made absolute."""
    return re.sub(r"(^|\s)tools/", rf"\g<1>{ROOT}/tools/", command.replace("build/default/bin/", f"{programs}/"))


def run(command, folder, programs, seconds):
    """Runs a command of a page in `folder`, with the programs of the folder `programs`."""
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(["bash", "-c", "set -o pipefail; " + located(command, programs)], cwd=folder,
                          capture_output=True, text=True, env=environment, timeout=seconds)


def with_small_batches(network):
    """NETWORK:32,256 as NETWORK:2,3, of a match of both parts."""
    return f"{network[1]}:" + ",".join(str(2 + i) for i in range(network[2].count(",") + 1))


def small_shape(shape):
    """--shape=ROWSxCOLUMNS with no extent above 1,024, of a match of the extents."""
    return "--shape=" + "x".join(str(min(int(extent), 1024)) for extent in shape[1].split("x"))


def shortened(command, keep=()):
    """The command for a moment: mpc-bench takes a step without other frameworks beside it, accuracies are of an epoch.

    The step is of two rows, or of three and more where a network has several batches, and of a short language model of
    one layer. Operations have small shapes. Options of mpc-bench that `keep` names stay. None where a command is nothing without PyTorch.
    """
    if "torch/bin/python " in command:
        return None
    if "accuracy_table.py" in command:
        command, to, file = command.partition(" > ")
        return f"{command} --models=lenet5 --seeds=1 -- --epochs=1{to}{file}"
    if "mpc-bench" not in command:
        return command
    dropped = {"peer", "python", "peer-layout", "json", "svg", "seconds", "runs", "steps", "warmup"} - set(keep)
    command = re.sub(r" --(%s)=\S+" % "|".join(sorted(dropped)), "", command)
    command = re.sub(r"--shape=(\d+(?:x\d+)*)", small_shape, command)
    if "--op=" in command or "--all-reduce" in command:
        return command + " --seconds=0.05"
    command = re.sub(r"(?<=\s)([a-z][a-z0-9-]*):(\d[\d,]*)", with_small_batches, command)
    command = re.sub(r" --tokens=\d+", " --tokens=16", re.sub(r" --layers=\d+", " --layers=1", command))
    return command + " --steps=1 --warmup=1" + ("" if "--profile" in command else " --runs=1")
