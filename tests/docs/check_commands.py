"""Runs the commands of ```sh blocks: check_commands.py [--long] PROGRAMS_FOLDER PAGE...

Every block must end with exit status 0, command by command, in a folder of its own, but for blocks that say why they do
not run (tools/benchmark_pages/page_commands.py). --long runs those that are marked as long too, mpc-bench for one step.
The commands that took longest are listed.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "benchmark_pages"))
import page_commands  # noqa: E402  (a module of the tools)

SECONDS = 120
LISTED = 12  # of the commands that took longest


def failure_of(command, folder, programs):
    """What is wrong with the command: nothing where it is None."""
    try:
        result = page_commands.run(command, folder, programs, SECONDS)
    except subprocess.TimeoutExpired:
        return f"has not ended after {SECONDS} seconds"
    return f"exit status {result.returncode}\n{result.stderr[-2000:]}" if result.returncode != 0 else None


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("pages", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    failures, marked, durations = 0, 0, []
    for page in arguments.pages:
        for block in page_commands.blocks(page.name, page.read_text()):
            if block["mark"] in ("not run", "first hour") or (block["mark"] == "long" and not arguments.long):
                marked += 1
                continue
            with tempfile.TemporaryDirectory() as folder:
                for command in page_commands.commands(block["text"]):
                    command = page_commands.shortened(command) if block["mark"] else command
                    if command is None:
                        continue
                    begin = time.monotonic()
                    failure = failure_of(command, folder, arguments.programs.resolve())
                    durations.append((time.monotonic() - begin, page.name, command))
                    if failure:
                        failures += 1
                        print(f"{page.name}: {command}\n  {failure}")
    for seconds, page, command in sorted(durations, reverse=True)[:LISTED]:
        print(f"{seconds:6.1f} s  {page}: {command}")
    print(f"{len(durations)} commands, {failures} fail; {marked} blocks are marked as not run here")
    return 1 if failures or not durations else 0


if __name__ == "__main__":
    sys.exit(main())
