#!/usr/bin/env python3
"""Writes docs/reference/*.md: write_pages.py [--check] [--root=FOLDER]

Signatures, defaults and comments are those of the public headers. Kinds, shapes and the names of other libraries are those of
tools/reference/table.json. AMP classes are those of the table of operations that mpc-opt --list-operations prints.
`--check` writes nothing. It fails where a page is stale, a public name has no row, or a row names nothing.
"""
import argparse
import json
import pathlib
import re
import sys

import entries

OPERATIONS_TABLE = "tests/lit/tools/Inputs/operations.txt"
TABLE = "tools/reference/table.json"
PAGES_FOLDER = "docs/reference"
NOTE = "<!-- Written by tools/reference/write_pages.py, which reads the public headers and tools/reference/table.json. -->"
AMP = ("AMP classes are those of the [operations](../dialect.md) that an entry becomes. "
       "[Mixed precision](../amp.md#classes) says what they mean.")
IN_MPC = "Names are in the namespace `mpc`, and functions of tensors are found without it. "

MOVED = ("What moves elements takes f32, f16, bf16, i32, i64 and i1, as [`where`](elementwise.md#where) and "
         "[`stop_gradient`](steps.md#stop_gradient) do. Bits move, so integers of any size come through. Reductions, sorts, "
         "`cumsum` and `scatter_add` take floating values. Indices are i32 or i64. `arange` and `iota` give f32, i32 or i64. ")

# Pages by file name: title, the kinds or pages of the table, what stands below the title.
PAGES = {
    "elementwise": ("Element-wise operations", ["elementwise"], IN_MPC + "Operators `+`, `-`, `*` and `/` are `add`, `sub`, `mul` "
                    "and `div`. Shapes broadcast as NumPy's. A number beside a tensor becomes a constant of its type with one element. "
                    + AMP),
    "products": ("Products, pooling, normalisation, attention", ["products"], IN_MPC + AMP),
    "movement": ("Data movement and reductions", ["movement"], IN_MPC + "Negative axes count from the end. " + MOVED + AMP),
    "steps": ("Training steps", ["steps"], "What steps of one's own are written with. "
              "[Training steps](../training_steps.md) shows how. " + AMP),
    "layers": ("Layers", ["layers"], AMP),
    "activations": ("Activation layers", ["activations"], AMP),
    "losses": ("Losses", ["loss"], "Every loss Cell is of the class Loss: it computes in f32 at each AMP level."),
    "optimizers": ("Optimizers", ["optimizer"], "Parameters, slots and updates are f32 at every AMP level, but for parameters that "
                   "O3 makes low. [The update](../update.md) says how they run."),
    "schedules": ("Schedules", ["schedule"], "A schedule is a `learning_rate` of an optimizer. It computes the rate in the graph, "
                  "from the number of updates that were done, `step`."),
    "metrics": ("Metrics", ["metric"], "What `Model::Eval` and `Model::Fit` measure. Shapes are those of predictions and labels."),
    "callbacks": ("Callbacks", ["callback"], "What is hooked into `Model::Train` and `Model::Fit`. "
                  "[Evaluating while training](../evaluation.md) shows several."),
    "sources": ("Sources and samplers of data", ["source", "sampler"], "[Data](../data.md) shows them. Shapes are those of the "
                "columns of a row."),
    "stages": ("Stages of data pipelines", ["stage"], "Methods of `data::Dataset`, each of which gives a new one. "
               "[Data](../data.md#stages) shows them."),
    "transforms": ("Transforms of pictures and labels", ["transform"], "What `Map` takes. [Data](../data.md#pictures) shows them. "
                   "`u8` and `f32` pictures are [height, width, channels], or [height, width] of grey ones."),
}


def amp_classes(root):
    """The AMP class of each operation of the dialect: {"relu": "Clear"}. Those that no level changes have None."""
    rows = re.findall(r"^(\w+): (?:amp (\w+))?", (root / OPERATIONS_TABLE).read_text(), re.MULTILINE)
    return {name: None if word in ("", "exempt") else word.capitalize() for name, word in rows}


def cell(text):
    """Text for a cell of a table."""
    return str(text).replace("|", "\\|")


def code(text):
    return f"`{text}`" if text else "-"


def anchor(name):
    return re.sub(r"[^\w-]", "", name).lower()


def comment_lines(comment):
    """What a page shows of a comment: its first paragraph on one line, and the rest from a first block of code on.

    Where the first paragraph ends in a colon, a paragraph behind it is a block of code.
    """
    paragraphs = re.split(r"\n\s*\n", comment)
    first = paragraphs[0].splitlines()
    lines = [escaped(" ".join(line.strip() for line in first if not line.startswith("    ")))]
    formula = [line.strip() for line in first if line.startswith("    ")]
    rest = paragraphs[1:]
    if not formula and lines[0].endswith(":") and rest:
        formula, rest = [line.strip() for line in rest[0].splitlines()], rest[1:]
    if not formula:
        return lines
    lines += ["", "```", *formula, "```"]
    for paragraph in rest:
        written = paragraph.splitlines()
        if all(line.startswith("    ") for line in written):
            lines += ["", "```", *(line.strip() for line in written), "```"]
        else:
            lines += ["", escaped(" ".join(line.strip() for line in written))]
    return lines


def escaped(text):
    return text.replace("<", "\\<").replace("*", "\\*")


class Writer:
    def __init__(self, root):
        self.root = root
        self.amp = amp_classes(root)
        table = json.loads((root / TABLE).read_text())
        self.names = [row["name"] for row in table]
        self.entries = entries.Entries(root, table)
        self.errors = list(self.entries.errors)
        for entry in self.entries.entries.values():
            for name in (entry.row or {}).get("operations", []):
                if name not in self.amp and name != "?":
                    self.errors.append(f"the row of {entry.name} names the operation {name}, which {OPERATIONS_TABLE} lacks")
        self.check_pages()

    def check_pages(self):
        """Errors for rows of pages that there are none of."""
        pages = {kind for _, kinds, _ in PAGES.values() for kind in kinds}
        for entry in self.entries.entries.values():
            page = (entry.row or {}).get("page")
            if page not in (None, "?") and page not in pages:
                names = ", ".join(name for name, page in PAGES.items() if page[1] == [name])
                self.errors.append(f"the row of {entry.name} names the page {page}; there are {names}")

    def classes(self, entry):
        """The AMP classes of what an entry becomes, in words."""
        if entry.kind == "loss":
            return "Loss"
        return ", ".join(sorted({self.amp[name] for name in entry.row.get("operations", [])} - {None})) or "-"

    def options(self, entry):
        """The structs that an entry's parameters and results are of, those of fields alone."""
        found = {}
        for word in re.findall(r"[A-Za-z_][\w:]*", " ".join(made.signature for made in entry.signatures)):
            made = self.entries.headers.find(word, entry.namespace)
            if made is not None and made.members and not any(member.function for member in made.members):
                found[made.qualified] = made
        return list(found.values())

    def columns(self, kinds):
        """The columns of a page's table: title and what it shows of an entry."""
        fields = {field for kind in kinds for field in entries.FIELDS.get(kind, entries.FIELDS["operation"])}
        columns = [("name", lambda entry: f"[`{entry.name}`](#{anchor(entry.name)})")]
        if "shapes" in fields:
            columns.append(("shapes", lambda entry: cell(entry.row.get("shapes") or "-")))
        if "operations" in fields or "loss" in kinds:
            columns.append(("AMP class", self.classes))
        columns.append(("MindSpore", lambda entry: code(entry.row.get("mindspore"))))
        columns.append(("PyTorch", lambda entry: code(entry.row.get("pytorch"))))
        return columns

    def page(self, title, kinds, text):
        shown = [entry for entry in self.entries.entries.values() if entry.row is not None]
        shown = sorted((entry for entry in shown if entry.row.get("page", entry.kind) in kinds),
                       key=lambda entry: (kinds.index(entry.row.get("page", entry.kind)), self.names.index(entry.name)))
        columns = self.columns(kinds)
        lines = [f"# {title}", "", NOTE, "", text, "", "| " + " | ".join(name for name, _ in columns) + " |",
                 "|" + "---|" * len(columns)]
        lines += ["| " + " | ".join(show(entry) for _, show in columns) + " |" for entry in shown]
        uses = [made.qualified for entry in shown for made in self.options(entry)]
        shared = {}
        for entry in shown:
            lines += ["", *self.section(entry, {name for name in uses if uses.count(name) > 1}, shared)]
        for made in shared.values():
            lines += ["", f"## `{short(made)}`", "", *comment_lines(made.comment), "", *self.fields(made)]
        return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)) + "\n"

    def section(self, entry, several, shared):
        lines = [f"## `{entry.name}`", ""]
        if entry.signatures or not entry.members:
            written = [made.signature for made in entry.signatures] or [f"{entry.name.rpartition('::')[2]}()"]
            if entry.kind in ("layer", "loss") and "Construct" in written[0]:
                written.insert(0, f"{entry.name.rpartition('::')[2]}()")
            lines += ["```cpp", *written, "```", ""]
        lines += comment_lines(entry.comment)
        lines += [""] if lines[-1] == "```" else []
        lines[-1] = f"{lines[-1]} ([{entry.header.rpartition('/')[2]}](../../{entry.header}))".strip()
        for made in self.options(entry):
            if made.qualified in several:
                shared[made.qualified] = made
                lines[-1] += f" [Options](#{anchor(short(made))})"
            else:
                lines += ["", *self.fields(made)]
        return lines + (["", *self.members(entry)] if entry.members else [])

    def fields(self, made):
        lines = [f"| `{made.name}` | default | |", "|---|---|---|"]
        for member in made.members:
            name, _, default = member.text.partition(" = ")
            lines.append(f"| `{cell(name)}` | {code(cell(default))} | {cell(' '.join(member.comment.split()))} |")
        return lines

    def members(self, entry):
        lines = ["| member | |", "|---|---|"]
        for member in entry.members:
            if re.match(r"(set_|using )", member.function or member.text) or (member.function or "").startswith("operator"):
                continue
            text = member.signature if member.function else member.text
            lines.append(f"| `{cell(text)}` | {cell(' '.join(member.comment.split()))} |")
        return lines

    def pages(self):
        """The text of every page by its path."""
        found = {f"{PAGES_FOLDER}/{name}.md": self.page(*page) for name, page in PAGES.items()}
        index = ["# Reference", "", NOTE, "", "What the public headers declare, with signatures, defaults, shapes, AMP classes and "
                 "the names of MindSpore and PyTorch.", "", "| page | entries |", "|---|---|"]
        for name, (title, kinds, _) in PAGES.items():
            text = found[f"{PAGES_FOLDER}/{name}.md"]
            links = re.findall(r"^\| \[(`[^`]+`)\]\(#([^)]+)\)", text, re.MULTILINE)
            index.append(f"| [{title}]({name}.md) | " + ", ".join(f"[{word}]({name}.md#{to})" for word, to in links) + " |")
        return {f"{PAGES_FOLDER}/README.md": "\n".join(index) + "\n", **found}


def short(made):
    return made.qualified.removeprefix("mpc::")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    arguments = parser.parse_args()
    writer = Writer(arguments.root)
    if writer.errors:
        sys.exit("\n".join(f"{TABLE}: {error}" for error in writer.errors))
    for name, text in writer.pages().items():
        path = arguments.root / name
        if arguments.check and (not path.exists() or path.read_text() != text):
            sys.exit(f"{name} is stale; build the target mpc-references, or run tools/reference/write_pages.py, to write it again")
        if not arguments.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)


if __name__ == "__main__":
    main()
