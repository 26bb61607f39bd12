#!/usr/bin/env python3
"""Appends how one part of tools/gpu_check.sh ended to its results, one JSON object a line."""

import argparse
import json
import pathlib


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True)
    parser.add_argument("--stage", required=True)
    parser.add_argument("--part", required=True)
    parser.add_argument("--status", type=int, required=True, help="exit status; 124 and 137: it ran past its limit")
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--limit", type=int, required=True)
    parser.add_argument("--log", required=True)
    arguments = parser.parse_args()

    lines = pathlib.Path(arguments.log).read_text(errors="replace").strip().splitlines()
    result = {"passed": "passed", "124": "ran out of time", "137": "ran out of time"}.get(
        "passed" if arguments.status == 0 else str(arguments.status), f"failed ({arguments.status})")
    record = {"stage": arguments.stage, "part": arguments.part, "result": result, "seconds": arguments.seconds,
              "limit": arguments.limit, "last_line": lines[-1][:300] if lines else "", "tail": lines[-12:]}
    with open(arguments.results, "a", encoding="utf-8") as results:
        results.write(json.dumps(record) + "\n")
    print(f"{arguments.part}: {result} in {arguments.seconds} s", flush=True)


if __name__ == "__main__":
    main()
