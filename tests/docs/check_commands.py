"""Runs the commands of ```sh blocks: check_commands.py [--long] PROGRAMS_FOLDER PAGE...

A comment on the line before a block says why it does not run here:
    <!-- not run: REASON -->   never: what it needs or does has no place in a test
    <!-- long: REASON -->      with --long alone. mpc-bench then takes one step, without other frameworks beside it.
Every other block must end with exit status 0, command by command, in a folder of its own. A word in brackets is an
option that a reader may add.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^(?:<!-- (?P<mark>not run|long): (?P<reason>[^\n]+) -->\n)?```sh\n(?P<text>.*?)^```$",
                   re.MULTILINE | re.DOTALL)
SECONDS = 120


def commands(text):
    """The commands of a block, without comments; a line that ends in a backslash goes on."""
    joined = re.sub(r"\\\n\s*", "", text)
    lines = (re.sub(r"(^|\s)#\s.*", "", line).strip() for line in joined.splitlines())
    return [re.sub(r"\s\[[^]]+\]", "", line) for line in lines if line]


def shortened(command):
    """mpc-bench for a moment."""
    if "mpc-bench" not in command:
        return command
    command = re.sub(r" --(peer|python|peer-layout|json|svg|seconds|runs|steps|warmup)=\S+", "", command)
    return command + (" --seconds=0.05 --runs=1" if "--op=" in command else " --steps=1 --warmup=1 --runs=1")


def run(command, folder, programs):
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(["bash", "-c", "set -o pipefail; " + command.replace("build/default/bin/", "")], cwd=folder,
                          capture_output=True, text=True, env=environment, timeout=SECONDS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("pages", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    failures, done, marked = 0, 0, 0
    for page in arguments.pages:
        blocks = list(BLOCK.finditer(page.read_text()))
        if len(blocks) != len(re.findall(r"^```sh$", page.read_text(), re.MULTILINE)):
            sys.exit(f"{page.name}: a block of commands has no end, or a mark that is none")
        for block in blocks:
            if block["mark"] == "not run" or (block["mark"] == "long" and not arguments.long):
                marked += 1
                continue
            with tempfile.TemporaryDirectory() as folder:
                for command in commands(block["text"]):
                    result = run(shortened(command) if block["mark"] else command, folder, arguments.programs.resolve())
                    done += 1
                    if result.returncode != 0:
                        failures += 1
                        print(f"{page.name}: {command}\n  exit status {result.returncode}\n{result.stderr[-2000:]}")
    print(f"{done} commands, {failures} fail; {marked} blocks are marked as not run here")
    return 1 if failures or not done else 0


if __name__ == "__main__":
    sys.exit(main())
