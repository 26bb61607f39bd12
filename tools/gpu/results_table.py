#!/usr/bin/env python3
"""Prints a stage's results as a table of less than 10,000 characters. Exit status 1 if a part did not pass."""

import argparse
import json
import sys

MOST_CHARACTERS = 9900
LINE = 170
LOG_LINE = 300
FAILURE_LINES = 12


def last_records(lines, stage):
    """By part. A stage that was run again appends; the last run of a part counts."""
    records = [json.loads(line) for line in lines if line.strip()]
    return {record["part"]: record for record in records if record["stage"] == stage}


def format_table(stage, parts):
    """All parts, one a line; what some of them show beside; then, as far as there is room, the logs of failures, an
    equal share for each."""
    failed = [record for record in parts.values() if record["result"] != "passed"]
    lines = [f"stage {stage}: {len(parts) - len(failed)} of {len(parts)} parts passed"]
    for record in parts.values():
        line = f"{record['part']:<24} {record['result']:<15} {record['seconds']:>4} s  {record['last_line']}"
        lines.append(line[:LINE])
    for record in parts.values():
        if record["result"] == "passed" and record["show"] > 1:
            lines += ["", f"--- {record['part']}:"] + [line[:LINE] for line in record["tail"][-record["show"]:]]
    text = "\n".join(lines)
    told = [record for record in failed if len(record["tail"]) > 1]
    for index, record in enumerate(told):
        share = (MOST_CHARACTERS - len(text)) // (len(told) - index)
        end = "\n".join(line[:LOG_LINE] for line in record["tail"][-FAILURE_LINES:])
        heading = f"\n\n--- end of {record['part']}:\n"
        if share > len(heading) + 80:
            text += heading + end[-(share - len(heading)):]
    return text if len(text) <= MOST_CHARACTERS else text[:MOST_CHARACTERS] + "\n..."


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results")
    parser.add_argument("--stage", required=True)
    arguments = parser.parse_args()

    with open(arguments.results, encoding="utf-8") as file:
        parts = last_records(file, arguments.stage)
    print(format_table(arguments.stage, parts))
    sys.exit(0 if parts and all(record["result"] == "passed" for record in parts.values()) else 1)


if __name__ == "__main__":
    main()
