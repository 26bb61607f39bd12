"""Runs the commands of ```sh blocks: check_commands.py [--long] PROGRAMS_FOLDER PAGE...

Every block must end with exit status 0, command by command, in a folder of its own, but for blocks that say why they do
not run (tools/benchmark_pages/page_commands.py). --long runs those that are marked as long too, mpc-bench for one step.
"""
import argparse
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools" / "benchmark_pages"))
import page_commands  # noqa: E402  (a module of the tools)

SECONDS = 120


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--long", action="store_true")
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("pages", type=pathlib.Path, nargs="+")
    arguments = parser.parse_args()
    failures, done, marked = 0, 0, 0
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
                    result = page_commands.run(command, folder, arguments.programs.resolve(), SECONDS)
                    done += 1
                    if result.returncode != 0:
                        failures += 1
                        print(f"{page.name}: {command}\n  exit status {result.returncode}\n{result.stderr[-2000:]}")
    print(f"{done} commands, {failures} fail; {marked} blocks are marked as not run here")
    return 1 if failures or not done else 0


if __name__ == "__main__":
    sys.exit(main())
