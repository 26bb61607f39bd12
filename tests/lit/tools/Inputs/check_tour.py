"""Runs the commands of a page's console blocks and compares what they print: check_tour.py [--measured] PAGE.

A block is `$ command`, then its output; a line `...` leaves out any number of lines. Sizes that depend on the planner and
on kernels' workspaces, in the lines of the memory plan, are compared as "some size": counts beside them are not left out.

`<!-- processor: avx512f -->` before a block: which kernels are planned depends on the processor. Where this one lacks the
feature, the command runs, and what it prints is not compared.

--measured: commands train, and standard error belongs to what they print. Processors differ in the last bits of sums, so
that measured values may differ by a hundredth, or a hundredth of a percent: numbers with a point or an exponent, and
magnitudes. Spaces that align columns do not count. All other numbers are counts.
"""
import math
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


MEASURED = re.compile(r"(?<=magnitude before it: )\d+|(?<=magnitude in it: )\d+|\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+")


def is_close(expected, line):
    """Whether a line of measured values shows the same, but for last bits."""
    words = [" ".join(MEASURED.sub("value", text).split()) for text in (expected, line)]
    values = [[float(value) for value in MEASURED.findall(text)] for text in (expected, line)]
    return words[0] == words[1] and all(
        math.isclose(a, b, rel_tol=0.01, abs_tol=0.0100001 if max(a, b) >= 0.01 else 0) for a, b in zip(*values))


def is_same(expected, line):
    return comparable(expected) == comparable(line)


def missing(expected, actual, same):
    """The first expected line that does not follow, or None."""
    at, anywhere = 0, False
    for line in expected:
        if line == "...":
            anywhere = True
            continue
        rest = actual[at:] if anywhere else actual[at : at + 1]
        found = next((index for index, other in enumerate(rest) if same(line, other)), None)
        if found is None:
            return line
        at, anywhere = at + found + 1, False
    return None if anywhere or at == len(actual) else "(end of output)"


def has_feature(feature):
    """Whether this processor has a feature; every one has ""."""
    flags = re.search(r"^flags\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return not feature or (flags is not None and feature in flags.group(1).split())


failures = 0
measured = "--measured" in sys.argv
page = pathlib.Path(sys.argv[-1]).read_text()
blocks = re.findall(r"(?:<!-- processor: (\w+) -->\n)?```console\n\$ (.*)\n((?:.*\n)*?)```", page)
for feature, command, output in blocks:
    done = subprocess.run(["bash", "-c", "set -o pipefail; " + command], capture_output=True, text=True, check=False)
    printed = (done.stderr if measured else "") + done.stdout
    line = missing(output.splitlines(), [text.rstrip() for text in printed.splitlines()], is_close if measured else is_same)
    if line is not None and not has_feature(feature):
        print("%s\n  not compared: this processor has no %s" % (command, feature))
        line = None
    if done.returncode != 0 or line is not None:
        failures += 1
        print("%s\n  exit status %d; not in its output, in its place: %s" % (command, done.returncode, line))
        print(done.stderr)
print("%d commands, %d differ" % (len(blocks), failures))
sys.exit(1 if failures or not blocks else 0)
