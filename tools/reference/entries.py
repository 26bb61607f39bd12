"""The public names that the reference has, of what kind each is, and the table's row for each."""
import dataclasses
import json
import re

import headers

# What a row of each kind says beside "kind" and "name". "?" is what nobody has written yet; null: there is no counterpart.
FIELDS = {
    "operation": ["page", "shapes", "operations", "mindspore", "pytorch"],
    "layer": ["page", "shapes", "operations", "mindspore", "pytorch"],
    "loss": ["shapes", "mindspore", "pytorch"],
    "optimizer": ["mindspore", "pytorch"],
    "schedule": ["mindspore", "pytorch"],
    "metric": ["shapes", "mindspore", "pytorch"],
    "callback": ["mindspore", "pytorch"],
    "source": ["shapes", "mindspore", "pytorch"],
    "sampler": ["mindspore", "pytorch"],
    "stage": ["mindspore", "pytorch"],
    "transform": ["shapes", "mindspore", "pytorch"],
}
# The kinds of classes by their base, the nearest first.
BASES = [("mpc::nn::LossBase", "loss"), ("mpc::nn::Cell", "layer"), ("mpc::nn::Optimizer", "optimizer"),
         ("mpc::Metric", "metric"), ("mpc::Callback", "callback")]
TENSORS = re.compile(r"Tensor|std::vector<Tensor>|std::pair<Tensor, Tensor>")


@dataclasses.dataclass
class Entry:
    kind: str
    name: str
    namespace: str
    comment: str
    header: str
    signatures: list  # Declarations
    members: list  # Declarations of a class that the page shows whole
    row: dict = None


def is_internal(name):
    return "internal" in name.split("::")


class Entries:
    """What the headers below `root` declare, by name. `errors` says what is wrong with the table's rows."""

    def __init__(self, root, table):
        self.headers = headers.Headers(root)
        self.entries = {}
        for function in self.headers.functions:
            self.add_function(function)
        for made in self.headers.classes.values():
            self.add_class(made)
        self.errors = []
        for row in table:
            self.take(row)
        for entry in self.entries.values():
            self.check(entry)

    def add(self, kind, name, of, signatures, members=()):
        if kind is not None and not is_internal(f"{of.namespace}::{name}"):
            name = f"{of.namespace}::{name}".removeprefix("mpc::")
            known = self.entries.setdefault(name, Entry(kind, name, of.namespace, "", of.header, [], list(members)))
            known.comment = known.comment or of.comment
            known.signatures += signatures

    def add_function(self, function):
        if not function.function.startswith("operator"):
            self.add(self.kind_of_function(function), function.function, function, [function])

    def kind_of_function(self, function):
        results = {"Dataset": "source", "Sampler": "sampler"}
        if function.namespace == "mpc::data":
            return results.get(function.result)
        if function.namespace not in ("mpc", "mpc::ops"):
            return None
        made = self.headers.find(function.result, function.namespace) if re.fullmatch(r"\w+", function.result) else None
        gives_tensors = made is not None and any(not member.function and "Tensor" in member.text for member in made.members
                                                 if made.name not in ("Tensor", "Parameter") and member.access == "public")
        return "operation" if TENSORS.fullmatch(function.result) or gives_tensors else None

    def kind_of_class(self, made):
        """The kind, and whether the class is a base, which only those read who derive from it."""
        bases = self.headers.bases(made) | {made.qualified}
        for base, kind in BASES:
            if base in bases:
                return kind, made.qualified == base or made.comment.startswith("Base of")
        public = {member.function for member in made.members if member.access == "public"}
        if made.namespace == "mpc::nn" and {"Validate", "Construct"} <= public:
            return "schedule", False
        if made.namespace == "mpc::data::vision" and "operator()" in public:
            return "transform", False
        return None, False

    def add_class(self, made):
        public = [member for member in made.members if member.access == "public" and "= delete" not in member.text]
        if made.qualified == "mpc::data::Dataset":
            for member in public:
                if member.function and member.result in ("Dataset", "std::vector<Dataset>"):
                    self.add("stage", f"Dataset::{member.function}", member, [member])
            return
        kind, is_base = self.kind_of_class(made)
        constructors = [member for member in public if member.function == made.name and "&&" not in member.signature]
        constructors = [member for member in constructors if f"const {made.name}&" not in member.text]
        if not is_base:
            calls = [member for member in public if member.function in ("Construct", "operator()") and kind in ("layer", "loss")]
            self.add(kind, made.name, made, constructors + calls)

    def take(self, row):
        """Gives its entry a row."""
        name, kind = row.get("name", "?"), row.get("kind", "?")
        made = self.headers.classes.get(f"mpc::{name}")
        if row.get("members") and made is not None and kind in FIELDS:
            public = [member for member in made.members if member.access == "public" and "~" not in member.text]
            self.entries[name] = Entry(kind, name, made.namespace, made.comment, made.header, [], public)
        entry = self.entries.get(name)
        if entry is None or entry.kind != kind:
            what = "no public header declares it" if entry is None else f"the headers say it is of kind {entry.kind}"
            self.errors.append(f"the row of {kind} {name} names nothing: {what}; take the row out, or mend it")
        elif entry.row is not None:
            self.errors.append(f"{name} has two rows")
        else:
            entry.row = row

    def check(self, entry):
        """What the row of an entry lacks."""
        if entry.row is None:
            blank = {"kind": entry.kind, "name": entry.name, **dict.fromkeys(FIELDS[entry.kind], "?")}
            blank.update({"operations": ["?"]} if "operations" in blank else {})
            self.errors.append(f"{entry.name} of {entry.header} has no row; add this one behind its neighbours, with an answer "
                               f"for each \"?\" (null where a library has no counterpart):\n  {json.dumps(blank)},")
            return
        fields = [] if entry.row.get("members") else FIELDS[entry.kind]
        for field in fields:
            if field not in entry.row:
                self.errors.append(f"the row of {entry.name} has no \"{field}\"")
        if "?" in json.dumps(entry.row):
            self.errors.append(f"the row of {entry.name} still has a \"?\"")
        if not entry.comment:
            self.errors.append(f"{entry.name} of {entry.header} has no comment: write /// and a sentence above it")
