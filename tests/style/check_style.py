"""Rules of the source tree that a machine can check: python3 check_style.py <rule> <root>.

Exit status 0: clean; 1: violations, one a line; 77: skipped, with the reason.
"""
import pathlib
import re
import shutil
import subprocess
import sys

FOLDERS = ["compiler", "passes", "runtime", "kernels", "frontend", "models", "tools", "tests"]
SOURCES = {".h", ".cc"}
LENGTH_LIMIT = 500
CLANG_FORMAT_MAJOR = 14
SKIPPED = 77


def files(root, suffixes, folders=FOLDERS):
    found = [path for folder in folders for path in (root / folder).rglob("*") if path.suffix in suffixes]
    return sorted(path for path in found if path.is_file())


def clang_format(root):
    """Sources are formatted as their folder's .clang-format says. Other versions of the tool format differently."""
    for name in (f"clang-format-{CLANG_FORMAT_MAJOR}", "clang-format"):
        program = shutil.which(name)
        version = subprocess.run([program, "--version"], capture_output=True, text=True).stdout if program else ""
        if f"version {CLANG_FORMAT_MAJOR}." in version:
            break
    else:
        print(f"skipped: clang-format {CLANG_FORMAT_MAJOR} is not installed")
        sys.exit(SKIPPED)
    command = [program, "--dry-run", "-Werror", *map(str, files(root, SOURCES))]
    complaints = subprocess.run(command, capture_output=True, text=True).stderr
    for path in sorted(set(re.findall(r"^(.+?):\d+:\d+: error:", complaints, re.MULTILINE))):
        yield path, f"{program} would change it"


def layers(root):
    """runtime/ and kernels/ know nothing of the compiler; the front end's headers are free of MLIR."""
    include = re.compile(r'^\s*#\s*include\s*[<"](llvm|mlir|compiler|passes|frontend|models)/')
    for path in files(root, SOURCES, ["runtime", "kernels"]):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if include.match(line):
                yield f"{path}:{number}", f"a header of a higher layer: {line.strip()}"
    for path in files(root, SOURCES, ["frontend", "models"]):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.match(r'^\s*#\s*include\s*[<"](llvm|mlir)/', line):
                yield f"{path}:{number}", f"an MLIR or LLVM header: {line.strip()}"


def length(root):
    """No file is longer than 500 lines."""
    for path in files(root, SOURCES | {".td", ".py", ".mlir", ".sh", ".cu", ".cuh"}):
        lines = len(path.read_text().splitlines())
        if lines > LENGTH_LIMIT:
            yield path, f"{lines} lines; the limit is {LENGTH_LIMIT}"


def docs(root):
    """Documentation names no place of one machine, no link that leads nowhere, no test that does not exist."""
    tests = "\n".join(path.read_text() for path in files(root, SOURCES, ["tests"]))
    place = re.compile(r"(?<![\w.$}/-])/(home|work|root|tmp|Users|mnt|opt)/")
    link = re.compile(r"\]\(([^)#\s]+)(#[^)]*)?\)")
    for path in [*sorted(root.glob("*.md")), *files(root, {".md"}, ["docs", "data", *FOLDERS])]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if place.search(line):
                yield f"{path}:{number}", f"an absolute path: {line.strip()}"
            for name in re.findall(r"`((?:AMP_|Amp)\d+\w*)", line):
                if name not in tests:
                    yield f"{path}:{number}", f"a test that does not exist: {name}"
            for target, _ in link.findall(line):
                if "://" not in target and not (path.parent / target).exists():
                    yield f"{path}:{number}", f"a link that leads nowhere: {target}"


RULES = {"clang_format": clang_format, "layers": layers, "length": length, "docs": docs}


def main():
    if len(sys.argv) != 3 or sys.argv[1] not in RULES:
        sys.exit(f"usage: check_style.py {'|'.join(RULES)} <root>")
    violations = [f"{place}: {text}" for place, text in RULES[sys.argv[1]](pathlib.Path(sys.argv[2]))]
    print("\n".join(violations) if violations else "clean")
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
