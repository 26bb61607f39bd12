"""Rules of the source tree that a machine can check: python3 check_style.py <rule> <root> [--update].

`--update` writes what a rule compares a page with: the table of `arrows`.
Exit status 0: clean; 1: violations, one a line; 77: skipped, with the reason.
"""
import pathlib
import re
import shutil
import subprocess
import sys

import complexity
import sentences

FOLDERS = ["compiler", "passes", "runtime", "kernels", "frontend", "models", "tools", "tests"]
SOURCES = {".h", ".cc"}
TOP_FILES = {"CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "LICENSE", "README.md"}
LENGTH_LIMIT = 500
CLANG_FORMAT_MAJOR = 14
SKIPPED = 77
OPERATIONS_LIMIT = 8

# Files that name more operations than OPERATIONS_LIMIT, and why they must.
OPERATIONS_NAMED = {
    "passes/memory/chunk_head_pass.cc": "matches and writes the operations of a language model's head",
}

# What sources include as "mpc/nn.h" lies below this folder.
PUBLIC_HEADERS = "frontend/include/"
GENERATED_PAGES = {"dialect.md", "passes.md"}
ARROWS_PAGE = "docs/architecture.md"
ARROWS_TABLE = re.compile(r"(<!-- folders -->\n)((?:\|.*\n)*)")


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
    """The top folder holds what it names; runtime/ and kernels/ know nothing of the compiler; the front end's headers are
    free of MLIR."""
    list_kept = ["git", "-C", root, "ls-files"]
    kept = subprocess.run(list_kept, capture_output=True, text=True).stdout if shutil.which("git") else ""
    for name in kept.splitlines():
        if "/" not in name and not name.startswith(".") and name not in TOP_FILES:
            yield name, f"a file of the top folder that is none of {', '.join(sorted(TOP_FILES))}"
    include = re.compile(r'^\s*#\s*include\s*[<"](llvm|mlir|compiler|passes|frontend|models)/')
    for path in files(root, SOURCES, ["runtime", "kernels"]):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if include.match(line):
                yield f"{path}:{number}", f"a header of a higher layer: {line.strip()}"
    for path in files(root, SOURCES, ["frontend", "models"]):
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if re.match(r'^\s*#\s*include\s*[<"](llvm|mlir)/', line):
                yield f"{path}:{number}", f"an MLIR or LLVM header: {line.strip()}"


def included_folders(root):
    """The folders of the tree that each folder's sources include headers of: {folder: {folder: an include}}."""
    include = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)
    folders = {}
    for path in files(root, SOURCES | {".cu", ".cuh"}, [name for name in FOLDERS if name != "tests"]):
        folder = path.parent.relative_to(root).as_posix()
        for header in include.findall(path.read_text()):
            target = (PUBLIC_HEADERS + header if header.startswith("mpc/") else header).rpartition("/")[0]
            if target != folder and (root / target).is_dir() and target.split("/")[0] in FOLDERS:
                folders.setdefault(folder, {}).setdefault(target, f"{path.relative_to(root)} includes {header}")
    return folders


def arrows(root):
    """Includes run one way between folders: no folder reaches itself by way of others."""
    folders = included_folders(root)
    def reaches(start, goal):
        seen, stack = {start}, [start]
        while stack:
            folder = stack.pop()
            for target in folders.get(folder, {}):
                if target not in seen:
                    seen.add(target)
                    stack.append(target)
        return goal in seen

    for source in sorted(folders):
        for target, example in sorted(folders[source].items()):
            if reaches(target, source):
                yield source, f"{target} is built on it, by way of others or not: {example}"
    table = ARROWS_TABLE.search((root / ARROWS_PAGE).read_text())
    if table is None:
        yield ARROWS_PAGE, "has no line <!-- folders -->, behind which the table of folders stands"
    elif table.group(2) != arrows_table(folders):
        yield ARROWS_PAGE, "its table of folders is old: check_style.py arrows . --update writes it"


def arrows_table(folders):
    """A row a folder: what it includes."""
    rows = ["| folder | includes |", "|---|---|"]
    for source in sorted(folders):
        rows.append(f"| `{source}` | {', '.join(sorted(folders[source]))} |")
    return "\n".join(rows) + "\n"


def update_arrows(root):
    page = root / ARROWS_PAGE
    page.write_text(ARROWS_TABLE.sub(lambda match: match.group(1) + arrows_table(included_folders(root)), page.read_text()))


def operations(root):
    """Outside the dialect no file of the compiler and the passes names more than 8 operations: the others ask properties."""
    definitions = "\n".join(path.read_text() for path in sorted((root / "compiler" / "dialect").rglob("*.td")))
    classes = set(re.findall(r"^def Mpc_(\w+Op)\b", definitions, re.MULTILINE))
    mnemonics = {name: symbol for symbol, name in re.findall(r'^def Mpc_(\w+Op)\b[^"{]*"(\w+)"', definitions, re.MULTILINE)}
    for path in files(root, SOURCES, ["compiler", "passes"]):
        name = path.relative_to(root).as_posix()
        if name.startswith("compiler/dialect/"):
            continue
        text = path.read_text()
        named = set(re.findall(r"\b\w+Op\b", text)) & classes
        named |= {mnemonics[word] for word in re.findall(r'"(?:mpc\.)?(\w+)"', text) if word in mnemonics}
        if len(named) > OPERATIONS_LIMIT and name not in OPERATIONS_NAMED:
            yield name, f"names {len(named)} operations; the limit is {OPERATIONS_LIMIT}: {', '.join(sorted(named))}"
        if len(named) <= OPERATIONS_LIMIT and name in OPERATIONS_NAMED:
            yield name, "names few enough operations by now: take it out of OPERATIONS_NAMED"


def length(root):
    """No file is longer than 500 lines."""
    for path in files(root, SOURCES | {".td", ".py", ".mlir", ".sh", ".cu", ".cuh"}):
        lines = len(path.read_text().splitlines())
        if lines > LENGTH_LIMIT:
            yield path, f"{lines} lines; the limit is {LENGTH_LIMIT}"


def anchors_of(page):
    """The fragments that lead to headings of a page, as GitHub makes them."""
    found, is_code = [], False
    for line in page.read_text().splitlines():
        if line.startswith("```"):
            is_code = not is_code
        heading = re.match(r"#+ +(.*)", line)
        if heading is None or is_code:
            continue
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
        slug = re.sub(r"[^\w\- ]", "", text).strip().replace(" ", "-")
        found.append(f"{slug}-{found.count(slug)}" if slug in found else slug)
    return set(found)


def docs(root):
    """Documentation names no place of one machine, no link that leads nowhere, no test that does not exist."""
    tests = "\n".join(path.read_text() for path in files(root, SOURCES, ["tests"]))
    place = re.compile(r"(?<![\w.$}/-])/(home|work|root|tmp|Users|mnt|opt)/")
    link = re.compile(r"\]\(([^)#\s]*)(?:#([^)\s]*))?\)")
    for path in [*sorted(root.glob("*.md")), *files(root, {".md"}, ["docs", "data", *FOLDERS])]:
        for number, line in enumerate(path.read_text().splitlines(), 1):
            if place.search(line):
                yield f"{path}:{number}", f"an absolute path: {line.strip()}"
            for name in re.findall(r"`((?:AMP_|Amp)\d+\w*)", line):
                if name not in tests:
                    yield f"{path}:{number}", f"a test that does not exist: {name}"
            for target, fragment in link.findall(line):
                page = path.parent / target if target else path
                if "://" in target:
                    continue
                if not page.exists():
                    yield f"{path}:{number}", f"a link that leads nowhere: {target}"
                elif fragment and page.suffix == ".md" and fragment not in anchors_of(page):
                    yield f"{path}:{number}", f"a link to a heading that is not there: {target}#{fragment}"


def plain_sentences(root):
    """Comments, descriptions and pages are sentences that a reader holds at once. Left out are pages of measurements, and
    pages that are generated from descriptions."""
    pages = [*sorted(root.glob("*.md")), *sorted((root / "docs").glob("*.md"))]
    pages = [page for page in pages if page.name not in GENERATED_PAGES]
    sources = files(root, SOURCES | {".td", ".cu", ".cuh"}, [folder for folder in FOLDERS if folder != "tests"])
    for path in [*pages, *sources]:
        for line, text in sentences.violations(path, path.read_text()):
            yield f"{path.relative_to(root)}:{line}", text


def paths(root):
    """No function has more than 20 paths, as McCabe counts them."""
    for path in files(root, SOURCES | {".cu", ".cuh"}, [folder for folder in FOLDERS if folder != "tests"]):
        for line, text in complexity.violations(path.read_text()):
            yield f"{path.relative_to(root)}:{line}", text


RULES = {
    "clang_format": clang_format,
    "layers": layers,
    "arrows": arrows,
    "operations": operations,
    "length": length,
    "docs": docs,
    "sentences": plain_sentences,
    "paths": paths,
}


def main():
    update = sys.argv[3:] == ["--update"] and sys.argv[1] == "arrows"
    if len(sys.argv) != 3 + update or sys.argv[1] not in RULES:
        sys.exit(f"usage: check_style.py {'|'.join(RULES)} <root>, or check_style.py arrows <root> --update")
    if update:
        update_arrows(pathlib.Path(sys.argv[2]))
    violations = [f"{place}: {text}" for place, text in RULES[sys.argv[1]](pathlib.Path(sys.argv[2]))]
    print("\n".join(violations) if violations else "clean")
    sys.exit(1 if violations else 0)


if __name__ == "__main__":
    main()
