"""What C++ headers declare: a reader of this tree's headers, which clang-format lays out in one way.

It knows namespaces, classes, functions, fields, aliases and the comments on them. It evaluates nothing: macros are words,
and what a function or an enum has in its braces is passed over.
"""
import dataclasses
import re

TOKEN = re.compile(
    r"""(?P<trailing>///<[^\n]*)|(?P<doc>///[^\n]*)|(?P<comment>//[^\n]*|/\*.*?\*/)|(?P<directive>^[ \t]*\#(?:[^\n\\]|\\.)*)
      |(?P<macro>\bMPC_CELL\([^)]*\)[^\n]*)|(?P<string>"(?:\\.|[^"\\\n])*")|(?P<number>\b\d[\w.']*)|(?P<char>'(?:\\.|[^'\\\n])*')
      |(?P<access>\b(?:public|private|protected)\s*:(?!:))|(?P<blank>\n[ \t]*(?=\n))|(?P<space>\s+)|(?P<word>\w+)|(?P<mark>.)""",
    re.VERBOSE | re.DOTALL | re.MULTILINE)
TYPE_HEAD = re.compile(r"^(?:template\s*<.*>\s*)?(?P<key>class|struct|enum(?:\s+class)?|union)\s+(?P<name>\w+)[^(]*$")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


@dataclasses.dataclass
class Declaration:
    """A function, a field or an alias. `text` is what stands in the header, without the body."""
    namespace: str
    owner: object  # the Class whose member it is, or None
    access: str
    text: str
    comment: str
    header: str

    @property
    def function(self):
        """The name of a function or constructor, else None."""
        plain, before = self.text, None
        while plain != before:
            plain, before = re.sub(r"<[^<>]*>", "", plain), plain
        plain = re.sub(r"^template\s*(requires.*?\)\s+)?", "", plain)
        match = re.match(r"[^=(]*?(operator\s*\(\)|operator\s*[^\s(]+|~?\w+)\s*\(", plain)
        return match.group(1) if match and f"{match.group(1)}(" in self.text else None

    @property
    def signature(self):
        """The function up to its parameters, and `const`, without words that only a compiler needs."""
        start = self.text.index(f"{self.function}(") + len(self.function) + 1
        end, depth = start, 1
        while depth:
            depth += {"(": 1, ")": -1}.get(self.text[end], 0)
            end += 1
        text = re.sub(r"\b(virtual|static|inline|constexpr|explicit)\s+", "", self.text[:end])
        return text + (" const" if self.text[end:].startswith(" const") else "")

    @property
    def result(self):
        """The type that a function returns; of a constructor it is empty."""
        head = self.signature.partition(f"{self.function}(")[0]
        return re.sub(r"^template\s*<.*>\s+(?=\S+\s*$)", "", head).strip()


@dataclasses.dataclass
class Class:
    namespace: str
    name: str
    bases: list
    comment: str
    header: str
    members: list = dataclasses.field(default_factory=list)

    @property
    def qualified(self):
        return f"{self.namespace}::{self.name}"


class Reader:
    """Reads one header into `classes`, `declarations` (functions outside classes) and `aliases`."""

    def __init__(self, header, text):
        self.header = header
        self.tokens = [(match.lastgroup, match.group()) for match in TOKEN.finditer(text)]
        self.position = 0
        self.classes, self.declarations, self.aliases = [], [], {}
        self.scopes = []  # namespaces as strings, classes as [Class, access]
        self.buffer, self.comment, self.pending, self.parentheses = "", "", [], 0
        self.last = None
        while self.position < len(self.tokens):
            self.step(*self.tokens[self.position])
            self.position += 1

    def namespace(self):
        return "::".join(scope for scope in self.scopes if isinstance(scope, str))

    def owner(self):
        return self.scopes[-1] if self.scopes and isinstance(self.scopes[-1], list) else None

    def step(self, kind, text):
        if kind == "trailing":
            if self.last is not None:
                self.last.comment = f"{self.last.comment} {text[4:].strip()}".strip()
        elif kind == "doc":
            self.pending.append(text[3:].removeprefix(" "))
        elif kind == "blank":
            if not self.buffer.strip():
                self.pending = []
        elif kind == "access":
            self.scopes[-1][1] = text.rstrip(": \n")
        elif kind in ("comment", "directive", "macro"):
            return
        elif kind == "mark" and text in "{};" and self.parentheses == 0:
            {"{": self.open, "}": self.close, ";": self.end}[text]()
        else:
            self.append(kind, text)

    def append(self, kind, text):
        if not self.buffer.strip() and kind != "space":
            self.comment, self.pending = "\n".join(self.pending), []
        self.parentheses += {"(": 1, ")": -1}.get(text, 0)
        self.buffer += text

    def open(self):
        head = " ".join(self.buffer.split())
        if head.startswith("namespace"):
            self.scopes.append(head.removeprefix("namespace").strip())
            self.buffer = ""
        elif (match := TYPE_HEAD.match(head)) and not match["key"].startswith("enum"):
            bases = re.findall(r"\b(?!public|private|protected)[\w:]+", head.partition(f"{match['name']} :")[2])
            made = Class(self.namespace_of_class(), match["name"], bases, self.comment, self.header)
            if self.owner() is None or self.owner()[1] == "public":
                self.classes.append(made)
            self.scopes.append([made, "public" if match["key"] == "struct" else "private"])
            self.buffer = ""
        elif head.endswith("=") or TYPE_HEAD.match(head) or not re.search(r"\(", head):
            self.buffer += self.skip_braces()
        else:
            while True:  # the body, behind what a constructor initialises in braces
                self.skip_braces()
                following = self.following()
                if following not in (",", "{"):
                    break
                while self.tokens[self.position][1] != "{":
                    self.position += 1
            self.end()

    def namespace_of_class(self):
        owner = self.owner()
        return owner[0].qualified if owner else self.namespace()

    def skip_braces(self):
        """Goes to the brace that closes the one at `position`; returns the text of both and of what is between them."""
        depth, text = 0, ""
        while True:
            kind, token = self.tokens[self.position]
            text += token if kind not in ("comment", "trailing", "doc") else ""
            depth += {"{": 1, "}": -1}.get(token, 0) if kind == "mark" else 0
            if depth == 0:
                return text
            self.position += 1

    def following(self):
        """The next mark or word behind `position`, which moves up to it where it goes on with initialisers."""
        place = self.position + 1
        while place < len(self.tokens) and self.tokens[place][0] in ("space", "blank", "comment"):
            place += 1
        text = self.tokens[place][1] if place < len(self.tokens) else ""
        if text in (",", "{"):
            self.position = place
        return text

    def close(self):
        self.scopes.pop()
        self.buffer, self.pending = "", []

    def end(self):
        text, self.buffer = " ".join(self.buffer.split()), ""
        owner = self.owner()
        names_nothing = r"$|friend\b|using namespace\b|static_assert\b|(template\s*<.*>\s*)?(class|struct|enum)\b"
        if re.match(names_nothing, text):
            return
        if match := re.match(r"using (\w+) = (.*)", text):
            self.aliases[f"{self.namespace_of_class()}::{match[1]}"] = match[2]
            return
        made = Declaration(self.namespace(), owner[0] if owner else None, owner[1] if owner else "public", text,
                           self.comment, self.header)
        self.last = made
        (owner[0].members if owner else self.declarations).append(made)


class Headers:
    """The public headers, and what they include of the front end."""

    def __init__(self, root):
        self.classes, self.functions, self.aliases, self.headers = {}, [], {}, []
        waiting = sorted(path.relative_to(root).as_posix() for path in (root / "frontend/include/mpc").glob("*.h"))
        seen = set(waiting)
        while waiting:
            header = waiting.pop(0)
            text = (root / header).read_text()
            self.headers.append(header)
            reader = Reader(header, text)
            self.classes.update({made.qualified: made for made in reader.classes})
            self.functions += [made for made in reader.declarations if made.function]
            self.aliases.update(reader.aliases)
            for name in INCLUDE.findall(text):
                if name.startswith("frontend/") and name not in seen:
                    seen.add(name)
                    waiting.append(name)

    def find(self, name, namespace, passed=()):
        """The class that `name` means where it is written in `namespace`, or None. Aliases in `passed` are left alone."""
        parts = namespace.split("::")
        for depth in range(len(parts), -1, -1):
            qualified = "::".join([*parts[:depth], name])
            if qualified in self.aliases and qualified not in passed:
                return self.find(self.aliases[qualified], "::".join(parts[:depth]), (*passed, qualified))
            if qualified in self.classes:
                return self.classes[qualified]
        return None

    def bases(self, made):
        """The qualified names of all classes that `made` is derived from."""
        found, waiting = set(), [made]
        while waiting:
            derived = waiting.pop()
            for base in (self.find(name, derived.namespace) for name in derived.bases):
                if base is not None and base.qualified not in found:
                    found.add(base.qualified)
                    waiting.append(base)
        return found
