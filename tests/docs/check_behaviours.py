"""python3 check_behaviours.py <amp.md> <tests folder>: the table of behaviours is complete and names tests that exist.

Each of AMP-1 to AMP-38 has one row. A test in it is `file` or `file:Case`; the case, in which * stands for any characters,
is one of the file's TESTs.
"""
import fnmatch
import pathlib
import re
import sys

BEHAVIOURS = range(1, 39)


def problems(page, tests):
    rows = re.findall(r"^\| AMP-(\d+) \| (.*) \| (.*) \|$", page.read_text(), re.MULTILINE)
    numbers = [int(number) for number, _, _ in rows]
    if numbers != list(BEHAVIOURS):
        yield f"rows are not AMP-{BEHAVIOURS[0]} to AMP-{BEHAVIOURS[-1]}, each once: {numbers}"
    for number, _, cell in rows:
        references = re.findall(r"`([^`]+)`", cell)
        if not references:
            yield f"AMP-{number}: no test"
        for reference in references:
            name, _, case = reference.partition(":")
            path = tests / name
            if not path.is_file():
                yield f"AMP-{number}: no file {name}"
                continue
            cases = re.findall(r"^TEST(?:_F|_P)?\(\s*\w+,\s*(\w+)\)", path.read_text(), re.MULTILINE)
            if case and not fnmatch.filter(cases, case):
                yield f"AMP-{number}: {name} has no test {case}"
            if path.suffix == ".cc" and not case:
                yield f"AMP-{number}: which test of {name}?"


page, tests = (pathlib.Path(argument) for argument in sys.argv[1:])
found = list(problems(page, tests))
if found:
    sys.exit("\n".join(found))
print(f"{page.name}: {len(BEHAVIOURS)} behaviours have tests that exist")
