"""Cyclomatic complexity of C++ functions: one more than the places where a path divides."""
import re

LIMIT = 20

TOKEN = re.compile(r'//[^\n]*|/\*.*?\*/|R"\(.*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|#(?:[^\n\\]|\\.|\\\n)*|'
                   r"\w+|&&|\|\||::|->|\S|\n", re.DOTALL)
# An rvalue reference in a body counts as `&&` does: both are rare where functions are long.
BRANCHES = {"if", "for", "while", "case", "catch", "&&", "||", "?"}
NO_FUNCTION = {"if", "for", "while", "switch", "catch", "namespace", "class", "struct", "union", "enum", "extern", "do",
               "else", "try", "return", "="}


def tokens(text):
    """(token, line) without comments, strings and directives."""
    line = 1
    for match in TOKEN.finditer(text):
        token = match.group(0)
        if not token.startswith(("//", "/*", "#", '"', "'", 'R"', "\n")):
            yield token, line
        line += token.count("\n")


def name_of(head):
    """The name of the function whose body follows the tokens of `head`; none where no function begins there."""
    depth = 0
    for index, token in enumerate(head):
        if token == "(" and depth == 0 and index > 0 and re.match(r"\w", head[index - 1]):
            if head[index - 1] == "__launch_bounds__":
                continue
            before = head[:index]
            if NO_FUNCTION.intersection(before):
                return None
            first = index - 1
            while first >= 2 and head[first - 1] == "::":
                first -= 2
            return "".join(before[first:])
        depth += (token == "<") - (token == ">")
        depth = max(depth, 0)
    return None


def is_initializer(head):
    """Whether a brace behind the tokens of `head` is that of a member in a constructor's list, as in `: x_{1}`."""
    return ":" in head and re.match(r"\w", head[-1]) is not None


def functions(text):
    """(line, name, complexity) of each function that has a body; lambdas count for the function around them."""
    head, start = [], 1
    name, depth, paths = None, 0, 0
    initializers = 0  # open braces among them
    for token, line in tokens(text):
        if name is not None:
            depth += (token == "{") - (token == "}")
            paths += token in BRANCHES
            if depth == 0:
                yield start, name, paths
                name, head = None, []
        elif initializers > 0:
            initializers += (token == "{") - (token == "}")
        elif token in (";", "}"):
            head = []
        elif token != "{":
            head.append(token)
        elif (found := name_of(head)) is None:
            head = []
        elif is_initializer(head):
            initializers = 1
            head.append(")")
        else:
            name, depth, paths, start = found, 1, 1, line


def violations(text):
    for line, name, paths in functions(text):
        if paths > LIMIT:
            yield line, f"{name} has {paths} paths; the limit is {LIMIT}"
