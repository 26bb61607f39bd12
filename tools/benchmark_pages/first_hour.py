"""Runs the blocks of a page that are marked as its first hour: first_hour.py PROGRAMS_FOLDER PAGE

All run in one fresh folder, one after the other, as a reader does. Each block gives a line with its seconds. The last
line is PASS or FAIL, and the exit status says the same.
"""
import pathlib
import sys
import tempfile
import time

import page_commands

SECONDS = 600  # of a command


def run_block(commands, folder, programs):
    """What the first command printed that failed, or None."""
    for command in commands:
        print(f"$ {command}", flush=True)
        result = page_commands.run(command, folder, programs, SECONDS)
        print(result.stdout, end="", flush=True)
        if result.returncode != 0:
            return f"exit status {result.returncode}\n{result.stderr[-2000:]}"
    return None


def main():
    programs, page = (pathlib.Path(argument).resolve() for argument in sys.argv[1:])
    blocks = [block for block in page_commands.blocks(page.name, page.read_text()) if block["mark"] == "first hour"]
    failure = None if blocks else f"{page.name} has no block of a first hour"
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        for block in blocks:
            begin = time.monotonic()
            failure = run_block(page_commands.commands(block["text"]), folder, programs)
            lines.append(f"{time.monotonic() - begin:8.1f} s  {block['reason']}")
            if failure is not None:
                break
    print("\n".join(lines))
    print("PASS" if failure is None else f"FAIL: {failure}")
    return 0 if failure is None else 1


if __name__ == "__main__":
    sys.exit(main())
