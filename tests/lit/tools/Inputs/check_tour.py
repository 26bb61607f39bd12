"""Runs the commands of a page's console blocks and compares what they print: check_tour.py PAGE.

A block is `$ command`, then its output; a line `...` leaves out any number of lines. Sizes that depend on the planner and
on kernels' workspaces, in the lines of the memory plan, are compared as "some size": counts beside them are not left out.
"""
import pathlib
import re
import subprocess
import sys


# Lines of the memory plan.
PLANNED = re.compile(r"arena|^ *(activations|state):")
SIZE = re.compile(r"\d[\d,]*(\.\d+)? (bytes|[KMGT]iB)")


def comparable(line):
    """The line without what depends on buffer sizes."""
    return SIZE.sub("some size", line) if PLANNED.search(line) else line


def missing(expected, actual):
    """The first expected line that does not follow, or None."""
    at, anywhere = 0, False
    for line in expected:
        if line == "...":
            anywhere = True
            continue
        rest = actual[at:] if anywhere else actual[at : at + 1]
        found = next((index for index, other in enumerate(rest) if comparable(other) == comparable(line)), None)
        if found is None:
            return line
        at, anywhere = at + found + 1, False
    return None if anywhere or at == len(actual) else "(end of output)"


failures = 0
page = pathlib.Path(sys.argv[1]).read_text()
blocks = re.findall(r"```console\n\$ (.*)\n((?:.*\n)*?)```", page)
for command, output in blocks:
    done = subprocess.run(["bash", "-c", "set -o pipefail; " + command], capture_output=True, text=True, check=False)
    line = missing(output.splitlines(), [text.rstrip() for text in done.stdout.splitlines()])
    if done.returncode != 0 or line is not None:
        failures += 1
        print("%s\n  exit status %d; not in its output, in its place: %s" % (command, done.returncode, line))
        print(done.stderr)
print("%d commands, %d differ" % (len(blocks), failures))
sys.exit(1 if failures or not blocks else 0)
