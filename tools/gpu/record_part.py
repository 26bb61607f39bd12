#!/usr/bin/env python3
"""Appends how one part of tools/gpu_check.sh ended to its results, one JSON object a line."""

import argparse
import json
import pathlib

TAIL = 20


def ending(status):
    """In words. `status` is what the shell gave, or "left-out"."""
    return {"0": "passed", "124": "ran out of time", "137": "ran out of time", "left-out": "left out"}.get(
        status, f"failed ({status})")


def step_numbers(result):
    """Step times and what follows from them; {} where no step was timed."""
    seconds = result.get("step_seconds")
    if not seconds:
        return {}
    if isinstance(seconds, list):  # a peer tells each step
        ordered = sorted(seconds)
        seconds = {name: ordered[round(share * (len(ordered) - 1))]
                   for name, share in (("median", 0.5), ("p5", 0.05), ("p95", 0.95))}
    numbers = {"step_ms": {name: 1e3 * value for name, value in seconds.items()}}
    if "batch" in result:
        numbers["samples_per_second"] = result["batch"] / seconds["median"]
    if "steps_per_second" in result:
        numbers["steps_per_second"] = result["steps_per_second"]
    return numbers


def numbers_of(path):
    """The numbers in a result of mpc-run or of a peer that belong in a table; {} where there is none."""
    try:
        result = json.loads(pathlib.Path(path).read_text())
        numbers = step_numbers(result)
    except (FileNotFoundError, KeyError, ValueError):
        return {}
    if "load_seconds" in result:
        numbers["load_seconds"] = result["load_seconds"]
    if "memory_bytes" in result:
        numbers["peak_bytes"] = result["memory_bytes"]["total"]
    elif "peak_bytes" in result:
        numbers["peak_bytes"] = result["peak_bytes"]
    return numbers


def summary(numbers, lines):
    """One line: of mpc-run its numbers, else the last line of the log."""
    peak = f"peak {numbers.get('peak_bytes', 0) / 2**20:.0f} MiB"
    loaded = f"loaded in {numbers['load_seconds']:.2f} s; " if "load_seconds" in numbers else ""
    if "samples_per_second" in numbers:
        times = numbers["step_ms"]
        return (f"{numbers['samples_per_second']:.1f} samples/s; ms a step: median {times['median']:.3f}, p5 "
                f"{times['p5']:.3f}, p95 {times['p95']:.3f}; {loaded}{peak}")
    if loaded:
        return f"{loaded}{peak}"
    return lines[-1].strip()[:300] if lines else ""


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", required=True)
    parser.add_argument("--stage", required=True)
    parser.add_argument("--part", required=True)
    parser.add_argument("--status", required=True,
                        help="exit status; 124 and 137: it ran past its limit; left-out: there was no time to begin")
    parser.add_argument("--seconds", type=int, required=True)
    parser.add_argument("--limit", type=int, required=True)
    parser.add_argument("--log", required=True)
    parser.add_argument("--json", help="what the part measured, as mpc-run or a peer writes it")
    parser.add_argument("--show", type=int, default=1, help="lines at the end of the log that the table shows")
    arguments = parser.parse_args()

    log = pathlib.Path(arguments.log)
    lines = log.read_text(errors="replace").strip("\n").splitlines() if log.exists() else []
    numbers = numbers_of(arguments.json) if arguments.json and arguments.status == "0" else {}
    record = {"stage": arguments.stage, "part": arguments.part, "result": ending(arguments.status),
              "seconds": arguments.seconds, "limit": arguments.limit, "last_line": summary(numbers, lines),
              "show": arguments.show, "tail": [line[:300] for line in lines[-TAIL:]], "numbers": numbers}
    with open(arguments.results, "a", encoding="utf-8") as results:
        results.write(json.dumps(record) + "\n")
    print(f"{arguments.part}: {record['result']} in {arguments.seconds} s", flush=True)


if __name__ == "__main__":
    main()
