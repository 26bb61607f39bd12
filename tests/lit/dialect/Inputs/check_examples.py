"""Checks the example that ends the description of each operation: check_examples.py PAGE, with mpc-opt in the PATH.

PAGE is docs/dialect.md, which is generated from the descriptions. An example is MLIR: functions, and operations of one
more function. Its arguments are the values that the example reads and does not make. A line `// %y = [1.0, 2.0]` states
a value as `dense<...>` takes it. Then the example has no arguments, and the interpreter must give that value. One
mpc-opt parses, verifies and runs all examples.
"""
import pathlib
import re
import subprocess
import sys

SECTION = re.compile(r"^### `mpc\.(\w+)` .*\n", re.MULTILINE)
DESCRIPTION_END = re.compile(r"^(Traits|Interfaces|Effects): |^#", re.MULTILINE)
EXAMPLE = re.compile(r"```mlir\n((?:(?!```).*\n)*)```\Z")
FUNCTION = re.compile(r"^func\.func .*\{\n(?:.*\n)*?\}\n+", re.MULTILINE)
ANSWER = re.compile(r"^// %(\w+) = (.+)\n", re.MULTILINE)
COMMENT = re.compile(r"//.*")
# What an operation makes, its name, and what stands in front of attributes, regions and types.
OPERATION = re.compile(r"(?:(%[^=\n]*) = )?mpc\.(\w+)([^{}:]*)")
# "(T, U) -> V"; "(T, U)", whose results have the first types; "T", the type of all.
TYPES = re.compile(r"\s*: (?:\(([^()]*)\)(?:\s*-> (?:\(([^()]*)\)|(\S+)))?|(tensor<\w+>))")
BLOCK_ARGUMENTS = re.compile(r"^ *\^\w+\((.*)\):", re.MULTILINE)
PIPELINE = ["--mpc-autodiff", "--mpc-interpret"]
SEPARATOR = "// -----\n"
ERROR = re.compile(r"^<stdin>:(\d+):\d+: error: (.*)", re.MULTILINE)
CONSTANTS = re.compile(r"func\.func @(example|answer)_(\w+)\(\)[^\n]*\{\n(.*?)^ *return", re.DOTALL | re.MULTILINE)
VALUE = re.compile(r"\bdense<(.*?)> : tensor<")


def run(command, text=""):
    return subprocess.run(command, input=text, capture_output=True, text=True, check=False)


def listed_operations():
    table = run(["mpc-opt", "--list-operations"])
    if table.returncode != 0:
        sys.exit(table.stderr)
    return {line.split(":")[0] for line in table.stdout.splitlines()}


def descriptions(page):
    """The description of each operation of the page, by name."""
    parts = SECTION.split(page)
    return {name: DESCRIPTION_END.split(text)[0].strip() for name, text in zip(parts[1::2], parts[2::2])}


def behind_braces(text, at):
    """Where the attributes and regions at `at` end."""
    while match := re.compile(r"\s*\{").match(text, at):
        at, depth = match.end(), 1
        while depth and at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
    return at


def listed(text):
    return [item.strip() for item in text.split(",") if item.strip()]


def values(code):
    """The types of the values that operations read, and of those that they make, by name."""
    read, made = {}, {}
    for arguments in BLOCK_ARGUMENTS.findall(code):
        made.update(re.findall(r"%(\w+): (tensor<\w+>)", arguments))
    for match in OPERATION.finditer(code):
        results, _, operands = match.groups()
        types = TYPES.match(code, behind_braces(code, match.end()))
        if not types:
            continue
        names = re.findall(r"%(\w+)", operands)
        of_operands = listed(types.group(1) or "") or [types.group(4)] * len(names)
        for name, of_type in zip(names, of_operands):
            read.setdefault(name, of_type)
        of_results = listed(types.group(2) or types.group(3) or "") or of_operands
        # `%new:2` are two values. No example states one of them.
        for name, of_type in zip(re.findall(r"%(\w+)", results or ""), of_results):
            made[name] = of_type
    return read, made


def function(name, arguments, code, results):
    """A function that returns the values that `results` has the types of."""
    lines = "".join(f"  {line}\n" if line else "\n" for line in code.splitlines())
    types = ", ".join(results.values())
    returned = f"{', '.join('%' + result for result in results)} : {types}" if results else ""
    return f"func.func @{name}({', '.join(arguments)}) -> ({types}) {{\n{lines}  return {returned}\n}}\n"


class Example:
    """An example as a module: its functions, @example_NAME, and @answer_NAME of what it states."""

    def __init__(self, name, code):
        self.name = name
        self.answers = dict(ANSWER.findall(code))
        plain = COMMENT.sub("", code)
        self.operations = {match.group(2) for match in OPERATION.finditer(plain)}
        body = FUNCTION.sub("", plain).strip()
        read, made = values(body)
        self.free = [value for value in read if value not in made]
        self.unknown = [value for value in self.answers if value not in made]
        stated = {value: made[value] for value in self.answers if value in made}
        arguments = [f"%{value}: {read[value]}" for value in self.free]
        self.module = "".join(FUNCTION.findall(plain)) + function(f"example_{name}", arguments, body, stated)
        if stated:
            constants = "\n".join(f"%{value} = mpc.constant {{value = dense<{self.answers[value]}> : {of_type}}} : () -> {of_type}"
                                  for value, of_type in stated.items())
            self.module += function(f"answer_{name}", [], constants, stated)

    def faults(self):
        """What mpc-opt need not be asked for."""
        if self.name not in self.operations:
            shown = ", ".join(sorted("mpc." + name for name in self.operations))
            yield f"the example shows no operation but {shown}" if shown else "the example shows no operation"
        for value in self.unknown:
            yield f"the example states %{value}, which none of its operations makes"
        if self.answers and self.free:
            yield f"the example states an answer, but does not make {', '.join('%' + value for value in self.free)}"


def examples(page):
    """The examples by the names of their operations, and (operation, fault) where there is none."""
    found, faults = {}, []
    for name, description in descriptions(page).items():
        if match := EXAMPLE.search(description):
            found[name] = Example(name, match.group(1))
        else:
            faults.append((name, "the description does not end with an example"))
    return found, faults


def differences(example, printed):
    """The answers of an example that the interpreter does not give."""
    given, stated = (printed.get((kind, example.name), "") for kind in ("example", "answer"))
    if given == stated and given:
        return
    for value, answer, text in zip(example.answers, VALUE.findall(given), VALUE.findall(stated)):
        if answer != text:
            yield f"%{value} is {answer}, the example states {example.answers[value]}"


def checked(found):
    """(operation, fault) of what mpc-opt says of the modules."""
    modules = [example.module for example in found.values()]
    done = run(["mpc-opt", "--split-input-file", *PIPELINE, "-"], SEPARATOR.join(modules))
    first_line, names = 1, {}
    for example in found.values():
        length = example.module.count("\n") + 1
        names.update(dict.fromkeys(range(first_line, first_line + length), example.name))
        first_line += length
    errors = [(names[int(line)], message) for line, message in ERROR.findall(done.stderr)]
    yield from errors
    if done.returncode != 0 and not errors:
        sys.exit(f"mpc-opt exits with {done.returncode}: {done.stderr}")
    printed = {(kind, name): text for kind, name, text in CONSTANTS.findall(done.stdout)}
    failed = {name for name, _ in errors}
    for example in found.values():
        if not example.answers or example.name in failed:
            continue
        if ("example", example.name) not in printed:
            yield example.name, "the interpreter was not run"
        for fault in differences(example, printed):
            yield example.name, fault


def main():
    page = pathlib.Path(sys.argv[1]).read_text()
    found, faults = examples(page)
    operations = listed_operations()
    described = set(descriptions(page))
    faults += [(name, "the page does not describe it") for name in sorted(operations - described)]
    faults += [(name, "the page describes it, and there is no such operation") for name in sorted(described - operations)]
    for example in found.values():
        faults += [(example.name, fault) for fault in example.faults()]
    faulty = {name for name, _ in faults}
    faults += checked({name: example for name, example in found.items() if name not in faulty})
    for name, fault in faults:
        print(f"mpc.{name}: {fault}")
    stated = sum(1 for example in found.values() if example.answers)
    print(f"{len(operations)} operations, {len(found)} with an example, {stated} of which state an answer; {len(faults)} faults")
    sys.exit(1 if faults else 0)


main()
