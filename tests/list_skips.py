"""Names the tests that skipped in a run of ctest, with their reasons.

    list_skips.py LastTest.log allowed_skips.txt [--strict]

A GoogleTest binary and the lit suite are one entry of ctest each: their own tests are found in what they printed. A line
of the list of allowed skips is "<entry of ctest>: <reason>", where * stands for any text. Exit status 1: with --strict,
a skip that the list does not allow; no test ran. 2: a file or an argument that cannot be used.
"""
import argparse
import collections
import fnmatch
import pathlib
import re
import sys

ENTRY = re.compile(r"^\d+/\d+ Testing: (?P<name>.+)\n(?P<rest>(?:.*\n)*?)\"(?P=name)\" end time:", re.MULTILINE)
OUTPUT = re.compile(r"^Output:\n-+\n(.*?)^<end of output>$", re.MULTILINE | re.DOTALL)
# "file:line: Skipped", the message, then the verdict.
GTEST_SKIP = re.compile(r": Skipped\n(?P<reason>.*?)\n*^\[  SKIPPED \] (?P<test>\S+)(?:, where .*)? \(\d+ ms\)",
                        re.MULTILINE | re.DOTALL)
LIT_SKIP = re.compile(r"^Unsupported Tests \(\d+\):\n((?:  .+\n)+)", re.MULTILINE)

Skip = collections.namedtuple("Skip", "entry test reason")


def one_line(text):
    return " ".join(text.split())


def skips_of(entry, output):
    """The skipped tests of one entry of ctest."""
    found = [Skip(entry, match["test"], one_line(match["reason"])) for match in GTEST_SKIP.finditer(output)]
    for match in LIT_SKIP.finditer(output):
        for line in match[1].splitlines():
            found.append(Skip(entry, line.split("::")[-1].strip(), "a feature that it requires is missing"))
    found += [Skip(entry, entry, reason) for reason in re.findall(r"^skipped: (.*)", output, re.MULTILINE)]
    return found


def read_log(path):
    """The entries of the log as (name, skips)."""
    for match in ENTRY.finditer(path.read_text(errors="replace")):
        output = OUTPUT.search(match["rest"])
        yield match["name"], skips_of(match["name"], output[1] if output else "")


def read_allowed(path):
    lines = (line.strip() for line in path.read_text().splitlines())
    return [tuple(line.split(": ", 1)) for line in lines if line and not line.startswith("#")]


def is_allowed(skip, allowed):
    return any(fnmatch.fnmatchcase(skip.entry, entry) and fnmatch.fnmatchcase(skip.reason, reason)
               for entry, reason in allowed)


def print_skips(skips, allowed):
    """Tests of one entry that skipped for one reason share a line."""
    groups = collections.defaultdict(list)
    for skip in skips:
        groups[skip.entry, skip.reason].append(skip)
    for (entry, reason), members in groups.items():
        tests = [skip.test for skip in members if skip.test != entry]
        names = f" ({tests[0]}{f' and {len(tests) - 1} more' if len(tests) > 1 else ''})" if tests else ""
        mark = "" if is_allowed(members[0], allowed) else " [not in the list of allowed skips]"
        print(f"  skipped: {entry}{names}: {reason}{mark}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("log", type=pathlib.Path)
    parser.add_argument("allowed", type=pathlib.Path)
    parser.add_argument("--strict", action="store_true")
    arguments = parser.parse_args()
    try:
        entries = list(read_log(arguments.log))
        allowed = read_allowed(arguments.allowed)
    except OSError as error:
        print(f"list_skips: {error}", file=sys.stderr)
        return 2
    skips = [skip for _, found in entries for skip in found]
    print(f"Tests that skipped: {len(skips)} in {len(entries)} entries of ctest")
    print_skips(skips, allowed)
    unlisted = [skip for skip in skips if not is_allowed(skip, allowed)]
    if arguments.strict and unlisted:
        print(f"list_skips: {len(unlisted)} tests skipped that {arguments.allowed} does not allow", file=sys.stderr)
    return 1 if not entries or (arguments.strict and unlisted) else 0


if __name__ == "__main__":
    sys.exit(main())
