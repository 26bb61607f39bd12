#!/usr/bin/env python3
"""Runs gpu_kernel_test in several processes, plainly or under compute-sanitizer, and counts what became of its tests.
A test that was skipped has shown nothing: it counts as a failure, with the reason that the test gave."""

import argparse
import json
import os
import pathlib
import subprocess
import sys


def counts_of(files):
    """How many tests passed, failed and were skipped, and the names of those that failed."""
    passed, skipped, failed = 0, 0, []
    for file in files:
        for suite in json.loads(pathlib.Path(file).read_text())["testsuites"]:
            for test in suite["testsuite"]:
                if test.get("failures"):
                    failed.append(f"{suite['name']}.{test['name']}")
                elif test["result"] == "SKIPPED":
                    skipped += 1
                elif test["result"] == "COMPLETED":
                    passed += 1
    return passed, skipped, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", help="for results")
    parser.add_argument("--name", default="operations", help="of the results")
    parser.add_argument("--filter", default="*", help="as --gtest_filter")
    parser.add_argument("--sanitizer", choices=["memcheck", "racecheck"])
    parser.add_argument("--processes", type=int, default=max(1, min(8, (os.cpu_count() or 1) // 2)))
    arguments = parser.parse_args()

    folder = pathlib.Path(arguments.folder)
    command = ["bin/gpu_kernel_test", "--gtest_brief=1", f"--gtest_filter={arguments.filter}"]
    if arguments.sanitizer is not None:
        command = ["compute-sanitizer", "--tool", arguments.sanitizer, "--error-exitcode", "1", *command]
    runs = []
    for index in range(arguments.processes):
        results, log = (folder / f"{arguments.name}-{index}.{suffix}" for suffix in ("json", "log"))
        results.unlink(missing_ok=True)
        shard = {"GTEST_TOTAL_SHARDS": str(arguments.processes), "GTEST_SHARD_INDEX": str(index)}
        try:
            with open(log, "w", encoding="utf-8") as output:
                process = subprocess.Popen([*command, f"--gtest_output=json:{results}"], stdout=output,
                                           stderr=subprocess.STDOUT, env={**os.environ, **shard})
        except FileNotFoundError as error:
            sys.exit(f"{error.filename} is not there")
        runs.append((process, results, log))
    statuses = [process.wait() for process, _, _ in runs]

    passed, skipped, failed = counts_of([results for _, results, _ in runs if results.exists()])
    logs = [log.read_text(errors="replace").splitlines() for _, _, log in runs]
    for status, lines in zip(statuses, logs):
        # Under a sanitizer its report is what tells why.
        told = [line for line in lines if "rror" in line or "RACE" in line or "Failure" in line]
        if status != 0:
            print("\n".join((told or lines)[:12]))
            print(f"a process ended with {status}")
    reasons = [line for lines in logs for line in lines if line.startswith("no GPU")]
    if failed:
        print(f"failed: {', '.join(failed[:20])}")
    print(f"{passed} tests passed, {len(failed)} failed, {skipped} skipped"
          + (f": {reasons[0]}" if skipped and reasons else ""))
    sys.exit(0 if passed > 0 and not failed and not skipped and not any(statuses) else 1)


if __name__ == "__main__":
    main()
