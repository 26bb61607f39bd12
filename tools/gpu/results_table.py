#!/usr/bin/env python3
"""Prints a stage's results as a table of at most 10,000 characters. Exit status 1 if a part did not pass."""

import argparse
import json
import sys

LONGEST = 9900


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results")
    parser.add_argument("--stage", required=True)
    arguments = parser.parse_args()

    with open(arguments.results, encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    # A stage that was run again appends; the last run of a part counts.
    parts = {record["part"]: record for record in records if record["stage"] == arguments.stage}
    failed = [record for record in parts.values() if record["result"] != "passed"]
    lines = [f"stage {arguments.stage}: {len(parts) - len(failed)} of {len(parts)} parts passed"]
    for record in parts.values():
        lines.append(f"{record['part']:<28} {record['result']:<16} {record['seconds']:>4} s  {record['last_line'][:110]}")
    for record in failed:
        lines += ["", f"--- end of {record['part']}:"] + [line[:160] for line in record["tail"]]
    text = "\n".join(lines)
    print(text if len(text) <= LONGEST else text[:LONGEST] + "\n...")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
