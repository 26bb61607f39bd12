"""Runs the commands of ```sh blocks: check_commands.py [--long] PROGRAMS_FOLDER PAGE...

Every block must end with exit status 0, command by command, in a folder of its own, but for blocks that say why they do
not run (tools/benchmark_pages/page_commands.py). --long runs those that are marked as long too, mpc-bench for one step.
"""
import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "benchmark_pages"))
import page_commands  # noqa: E402  (a module of the tools)

SECONDS = 120


def run(command, folder, programs):
    environment = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    return subprocess.run(["bash", "-c", "set -o pipefail; " + page_commands.located(command, programs)], cwd=folder,
                          capture_output=True, text=True, env=environment, timeout=SECONDS)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("pages", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    failures, done, marked = 0, 0, 0
    for page in arguments.pages:
        for block in page_commands.blocks(page.name, page.read_text()):
            if block["mark"] == "not run" or (block["mark"] == "long" and not arguments.long):
                marked += 1
                continue
            with tempfile.TemporaryDirectory() as folder:
                for command in page_commands.commands(block["text"]):
                    command = page_commands.shortened(command) if block["mark"] else command
                    if command is None:
                        continue
                    result = run(command, folder, arguments.programs.resolve())
                    done += 1
                    if result.returncode != 0:
                        failures += 1
                        print(f"{page.name}: {command}\n  exit status {result.returncode}\n{result.stderr[-2000:]}")
    print(f"{done} commands, {failures} fail; {marked} blocks are marked as not run here")
    return 1 if failures or not done else 0


if __name__ == "__main__":
    sys.exit(main())
