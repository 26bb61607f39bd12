#!/usr/bin/env python3
"""Measures what the benchmark pages show, and writes their tables anew.

    tools/benchmark_pages/write_pages.py --python=torch/bin/python            # every page; takes an hour
    tools/benchmark_pages/write_pages.py --only=busy.json docs/benchmarks/cpu.md
    tools/benchmark_pages/write_pages.py --file=input.txt docs/benchmarks/text.md

The commands that a page marks as long run in their order, in a folder of their own. A table stands between two marks:

    <!-- table: KIND FILE... -->     from the JSON files that the page's commands wrote
    <!-- table: printed FILE -->     what a command wrote into FILE, as it is
    <!-- end of table -->

KIND is ratios, memory, busy, profile, operations, choices, ranks, reading or reductions, or conditions: date, revision,
versions and processor. A file that a command wrote and that the page links to is copied beside the page. A page is
written complete or not at all. Of text outside of tables nothing changes: figures belong into tables. Python's standard
library only.
"""
import argparse
import datetime
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import page_commands
import tables

ROOT = page_commands.ROOT
TABLE = re.compile(r"^<!-- table: (?P<kind>[\w-]+)(?P<files>(?: \S+)*) -->\n(?P<text>.*?)^<!-- end of table -->$",
                   re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?P<file>[\w.-]+)\)")


class PageError(Exception):
    """What is wrong with a page or its commands, in words for who called."""


def revision():
    """The commit that is measured; a tree with changes of its own, or without git, says so."""
    def git(*arguments):
        return subprocess.run(["git", "-C", str(ROOT), *arguments], capture_output=True, text=True)
    commit = git("rev-parse", "--short", "HEAD")
    if commit.returncode != 0:
        return "unknown to git"
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":!docs").stdout.strip()
    return commit.stdout.strip() + (" with changes" if changed else "")


def version():
    """mpc's version, from the one place that has it."""
    return re.search(r"project\(\s*mpc\s+VERSION\s+([\d.]+)", (ROOT / "CMakeLists.txt").read_text())[1]


def files_written(command):
    """Names of files that a command writes: --json=FILE, --svg=FILE, > FILE."""
    return re.findall(r"(?:--(?:json|svg)=|> )(\S+)", command)


def measure(page, text, folder, arguments):
    """Runs the page's long commands in `folder`."""
    environment = {**os.environ, "PATH": f"{arguments.programs}{os.pathsep}{os.environ['PATH']}"}
    wanted = set(arguments.only.split(",")) if arguments.only else None
    unknown = set(wanted or ())
    for block in page_commands.blocks(page.name, text):
        if block["mark"] != "long":
            continue
        for command in page_commands.commands(block["text"]):
            written = files_written(command)
            if wanted is not None and not wanted & set(written):
                continue
            unknown -= set(written)
            if arguments.short:
                command = page_commands.shortened(command, keep=["json"])
                if command is None:
                    continue
            command = page_commands.located(command.replace("torch/bin/python", str(arguments.python)),
                                            arguments.programs)
            print(f"{page.name}: {command}", flush=True)
            run = subprocess.run(["bash", "-c", "set -o pipefail; " + command], cwd=folder, env=environment,
                                 capture_output=True, text=True)
            if run.returncode != 0:
                raise PageError(f"{page.name}: exit status {run.returncode} of {command}\n{run.stderr[-2000:]}")
    if unknown:
        raise PageError(f"{page.name}: no command writes {', '.join(sorted(unknown))}")


def processor():
    """The name that the processor gives itself, and the instructions that products of low types may take."""
    text = pathlib.Path("/proc/cpuinfo").read_text()
    name = re.search(r"^model name\s*: (.*)$", text, re.MULTILINE)
    flags = [flag for flag in ("avx2", "avx512f", "avx512_bf16", "amx_bf16") if re.search(rf"\b{flag}\b", text)]
    return f"{name[1] if name else 'a processor without a name'} ({', '.join(flags)})"


def table_text(page, kind, files, folder):
    """The lines of one table."""
    paths = [folder / name for name in files]
    if kind == "printed":
        return "".join(path.read_text() for path in paths).strip("\n").splitlines()
    contents = [json.loads(path.read_text()) for path in paths]
    try:
        if kind == "conditions":
            versions = tables.versions(contents) or [f"mpc {version()}"]
            return [f"Measured on {datetime.date.today()} at revision {revision()}: {' and '.join(versions)}; "
                    f"{processor()}."]
        return tables.KINDS[kind](contents)
    except (KeyError, ValueError) as error:
        raise PageError(f"{page.name}: table '{kind} {' '.join(files)}': {error!r}") from error


def with_new_tables(page, text, folder, partial):
    """The page with its tables written anew. With `partial`, those whose files are not all there stay."""
    if len(TABLE.findall(text)) != text.count("<!-- table:") or text.count("<!-- end of table -->") != text.count(
            "<!-- table:"):
        raise PageError(f"{page.name}: a table has no end, no file, or a mark that is none")
    known = {*tables.KINDS, "conditions", "printed"}

    def write(match):
        files = match["files"].split()
        if match["kind"] not in known:
            raise PageError(f"{page.name}: table '{match['kind']}'; there are {', '.join(sorted(known))}")
        missing = [name for name in files if not (folder / name).exists()]
        if missing and partial:
            return match[0]
        if missing:
            raise PageError(f"{page.name}: no command wrote {', '.join(missing)}")
        lines = table_text(page, match["kind"], files, folder)
        first = match[0].splitlines()[0]
        return "\n".join([first, "", *lines, "", "<!-- end of table -->"])

    return TABLE.sub(write, text)


def write_beside(path, text):
    """Replaces a file by its new text, complete or not at all."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=path.name, delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.chmod(file.name, path.stat().st_mode if path.exists() else 0o644)
    os.replace(file.name, path)


def write_page(page, arguments):
    """Measures, and writes the page and the files that it links to."""
    text = page.read_text()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for file in arguments.file:
            (folder / file.name).symlink_to(file.resolve(strict=True))
        measure(page, text, folder, arguments)
        changed = with_new_tables(page, text, folder, partial=bool(arguments.only))
        if arguments.short:
            return
        if arguments.keep:
            shutil.copytree(folder, arguments.keep, dirs_exist_ok=True)
        for link in LINK.finditer(text):
            if (folder / link["file"]).exists():
                write_beside(page.parent / link["file"], (folder / link["file"]).read_text())
        write_beside(page, changed)
    print(f"{page} is written")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, default=ROOT / "build/default/bin", metavar="FOLDER",
                        help="where mpc-bench is (build/default/bin)")
    parser.add_argument("--python", type=pathlib.Path, default=ROOT / "torch/bin/python", metavar="PROGRAM",
                        help="the Python that has PyTorch, for the peers (torch/bin/python)")
    parser.add_argument("--only", metavar="FILE,...", help="measure the commands that write these files alone")
    parser.add_argument("--short", action="store_true",
                        help="one step of each command without peers, and no page is written: a test of the commands")
    parser.add_argument("--file", type=pathlib.Path, action="append", default=[], metavar="FILE",
                        help="a file that commands read by its name alone; may be given several times")
    parser.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="where to keep the files of the commands")
    parser.add_argument("pages", type=pathlib.Path, nargs="*", help="pages; every one of docs/benchmarks with a table")
    arguments = parser.parse_args()
    # Links of a virtual environment are not followed: they are what makes it one.
    arguments.programs, arguments.python = arguments.programs.resolve(), arguments.python.absolute()
    pages = arguments.pages or [page for page in sorted((ROOT / "docs/benchmarks").glob("*.md"))
                                if "<!-- table:" in page.read_text()]
    try:
        for page in pages:
            write_page(page, arguments)
    except (PageError, OSError, ValueError) as error:
        sys.exit(f"write_pages.py: {error}")


if __name__ == "__main__":
    main()
