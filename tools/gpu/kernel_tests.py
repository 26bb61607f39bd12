#!/usr/bin/env python3
"""Runs gpu_kernel_test, or another of the packed tests, in several processes, plainly or under compute-sanitizer, and
counts what became of its tests. A test that was skipped has shown nothing: it counts as a failure, with the reason that
the test gave. So does one that was begun when a process died or ran out of time.

A kernel that reads or writes where it must not takes every later test of its process with it. So tests that failed run
once more, each in a process of its own, and those that fail alone too are named first."""

import argparse
import concurrent.futures
import json
import os
import pathlib
import re
import signal
import subprocess
import sys

MOST_AGAIN = 48
SECONDS_AGAIN = 20
LINE = re.compile(r"^\[ *(RUN|OK|FAILED|SKIPPED) *\] ([^ ,]+)(?:, where .*)?(?: \(\d+ ms\))?$")


def outcomes_of(lines):
    """What became of each test that a log of GoogleTest names: OK, FAILED, SKIPPED, or RUN where it did not end."""
    found = {}
    for line in lines:
        match = LINE.match(line)
        if match is not None and "." in match[2]:
            found[match[2]] = match[1]
    return found


def run_alone(command, name):
    """The end of what one test says in a process of its own; None if it passes."""
    try:
        done = subprocess.run([*command, f"--gtest_filter={name}"], capture_output=True, text=True, check=False,
                              errors="replace", timeout=SECONDS_AGAIN)
    except subprocess.TimeoutExpired:
        return f"does not end within {SECONDS_AGAIN} s"
    if done.returncode == 0:
        return None
    lines = (done.stdout + done.stderr).splitlines()
    told = [line for line in lines if not line.startswith("[") and line.strip() and not line.startswith("Note:")]
    return "\n".join(told[1:15]) or f"ends with {done.returncode}"


def run_again(command, failed, processes, log):
    """Of tests that failed, those that fail alone too; the log has what they say."""
    with concurrent.futures.ThreadPoolExecutor(processes) as pool:
        ends = list(pool.map(lambda name: run_alone(command, name), failed))
    alone = [(name, end) for name, end in zip(failed, ends) if end is not None]
    log.write_text("".join(f"--- {name}\n{end}\n" for name, end in alone))
    return alone


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="for results")
    parser.add_argument("--name", default="operations", help="of the results")
    parser.add_argument("--program", default="gpu_kernel_test", help="one of bin/")
    parser.add_argument("--filter", default="*", help="as --gtest_filter")
    parser.add_argument("--sanitizer", choices=["memcheck", "racecheck"])
    parser.add_argument("--processes", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)))
    arguments = parser.parse_args()
    # Out of time: the test processes have been told so too, and what they have shown by now counts.
    out_of_time = []
    signal.signal(signal.SIGTERM, lambda *_: out_of_time.append(True))

    folder = pathlib.Path(arguments.folder)
    command = [f"bin/{arguments.program}"]
    if arguments.sanitizer is not None:
        command = ["compute-sanitizer", "--tool", arguments.sanitizer, "--error-exitcode", "1", *command]
    runs = []
    for index in range(arguments.processes):
        log = folder / f"{arguments.name}-{index}.log"
        shard = {"GTEST_TOTAL_SHARDS": str(arguments.processes), "GTEST_SHARD_INDEX": str(index)}
        try:
            with open(log, "w", encoding="utf-8") as output:
                process = subprocess.Popen([*command, f"--gtest_filter={arguments.filter}"], stdout=output,
                                           stderr=subprocess.STDOUT, env={**os.environ, **shard})
        except FileNotFoundError as error:
            sys.exit(f"{error.filename} is not there")
        runs.append((process, log))
    statuses = [process.wait() for process, _ in runs]

    logs = [log.read_text(errors="replace").splitlines() for _, log in runs]
    outcomes = {name: outcome for lines in logs for name, outcome in outcomes_of(lines).items()}
    (folder / f"{arguments.name}.json").write_text(json.dumps(outcomes, indent=0))
    named = {outcome: [name for name, found in outcomes.items() if found == outcome]
             for outcome in ("OK", "FAILED", "SKIPPED", "RUN")}
    failed = named["FAILED"] + named["RUN"]
    for status, lines in zip(statuses, logs):
        # Under a sanitizer its report is what tells why.
        told = [line for line in lines if "ERROR" in line or "RACE" in line or "=========" in line]
        if status != 0:
            if arguments.sanitizer is not None:
                print("\n".join(told[:12]))
            print(f"a process ended with {status}" + (": " + lines[-1][:200] if lines else ""))
    if failed and not out_of_time and arguments.sanitizer is None:
        alone = run_again(command, failed[:MOST_AGAIN], arguments.processes, folder / f"{arguments.name}-alone.log")
        for name, end in alone[:8]:
            print(f"{name}: {' '.join(end.split())[:400]}")
        print(f"of {len(failed[:MOST_AGAIN])} that failed, {len(alone)} fail alone too: "
              + ", ".join(name for name, _ in alone[:40]))
    elif failed:
        print(f"failed: {', '.join(failed[:20])}")
    reasons = [line for lines in logs for line in lines if line.startswith("no GPU")]
    print(f"{len(named['OK'])} tests passed, {len(failed)} failed, {len(named['SKIPPED'])} skipped"
          + (", out of time" if out_of_time else "")
          + (f": {reasons[0]}" if named["SKIPPED"] and reasons else ""))
    sys.exit(0 if named["OK"] and not failed and not named["SKIPPED"] and not any(statuses) else 1)


if __name__ == "__main__":
    main()
