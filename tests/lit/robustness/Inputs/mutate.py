"""Feeds mpc-opt damaged IR and fails if it ever crashes or hangs; an error message is the expected answer.

    mutate.py --tool mpc-opt --count 500 --seed 1 PATH ...     # mutants of these files, or of those in these folders
    mutate.py --tool mpc-opt --corpus PATH ...                 # the files as they are, with every pipeline

Every file is cut at its `// -----` lines. A mutant is one piece with one to three random changes: cut short, a token
lost, doubled or exchanged, a number made zero, negative or huge, a type or an attribute of another kind. Each mutant
meets one pipeline: no pass, a registered pass alone, a pass and then lowering with the runtime's check of the Program,
a whole pipeline, or an output of mpc-opt's own. Mutants run in groups through --split-input-file; a group that kills the
tool is run one by one to name the mutants that do it, which are kept in --keep. What is counted has run.
"""
import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile

SEPARATOR = "// -----"
GROUP = 50
# Own outputs take one module, and a process each: --split-input-file joins several, which is no module any more.
SINGLE_GROUP = 5
SINGLE = ("--report", "--emit=dot")
TIMEOUT_SECONDS = 300

ROOT = pathlib.Path(__file__).resolve().parents[4]
# Where mpc's passes are registered, so that a new pass is among them, and what they do only when they are told to.
PASSES = sorted((ROOT / "passes").rglob("*.td"))
PASS_OPTIONS = ROOT / "tests" / "passes" / "pass_options.txt"
LOWERING = "mpc-check-program"


def registered_passes():
    """Each pass of mpc with each of its options, as text of a pipeline on modules."""
    text = "".join(path.read_text() for path in PASSES)
    found = re.findall(r'^def \w+ : MpcPass<"([\w-]+)", "::mlir::(ModuleOp|func::FuncOp)">', text, re.M)
    lines = [line for line in PASS_OPTIONS.read_text().splitlines() if line and not line.startswith("#")]
    unknown = {line.partition("{")[0] for line in lines} - {name for name, _ in found}
    if unknown or len(found) != text.count("\ndef "):
        sys.exit("mutate.py: *.td of passes/ register other passes than this script can read: %s" % sorted(unknown))
    for name, operation in found:
        for form in [line for line in lines if line.partition("{")[0] == name] or [name]:
            yield form if operation == "ModuleOp" else "func.func(%s)" % form


def pass_pipelines():
    """Lowering alone; each pass alone; each pass with lowering behind it."""
    texts = [LOWERING]
    for text in registered_passes():
        texts += [text, text + "," + LOWERING]
    return [["--pass-pipeline=builtin.module(%s)" % text] for text in texts]


PIPELINES = [
    [],
    ["--canonicalize", "--cse"],
    ["--mpc-amp=level=O3 dtype=bf16", "--mpc-verify-precision=level=O3"],
    ["--mpc-step-pipeline=level=O2 loss-scale=dynamic"],
    ["--pass-pipeline=builtin.module(mpc-step-pipeline{level=O2 loss-scale=dynamic fusion=true}," + LOWERING + ")"],
    ["--mpc-step-pipeline=level=O3"],
    ["--mpc-step-pipeline=level=O2 device=cuda stage=scheduled"],
    ["--report"],
    ["--emit=dot"],
] + pass_pipelines()

TOKEN = re.compile(r'"[^"\n]*"|[%@#!^]?[A-Za-z_][\w.$-]*(?::\d+|#\d+)?|%\d+(?:[:#]\d+)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?|->|\S')
NUMBERS = ["0", "1", "-1", "2", "3", "7", "2147483648", "4294967297", "9223372036854775807", "-9223372036854775808",
           "4611686018427387904", "99999999999999999999", "1.5"]
TYPES = ["tensor<f32>", "tensor<4xf32>", "tensor<0xf32>", "tensor<2x3x4x5xf16>", "tensor<4x4xbf16>", "tensor<i1>",
         "tensor<4xi32>", "tensor<*xf32>", "tensor<?x4xf32>", "tensor<4xcomplex<f32>>", "tensor<4xf8E4M3FN>",
         "tensor<9223372036854775807x2xf32>", "tensor<4611686018427387904x4xf32>", "vector<4xf32>", "memref<4xf32>",
         "f32", "i32", "index", "none", "tuple<>", "tensor<2x0x4x4xf32>", "tensor<4xindex>", "tensor<4xf64>",
         "tensor<4xi64>", "tensor<4xsi32>", "tensor<4xi129>", "()", "(tensor<f32>) -> tensor<f32>"]
ATTRIBUTES = ["1 : i32", "1 : i64", "-1 : i64", "0 : i64", "true", '"text"', "1.0 : f32", "1.0 : f64", "0x7FC00000 : f32",
              "array<i64>", "array<i64: 0>", "array<i64: 0, 0>", "array<i64: -1, -1>", "array<i64: 1, 1, 1, 1>",
              "array<i64: 9223372036854775807, 2>", "array<i64: 4611686018427387904, 4>", "array<i32: 1, 1>", "[1, 2]",
              "unit", "f16", "tensor<4xf32>", "dense<0.0> : tensor<4xf32>", "dense<> : tensor<0xf32>", "@forward",
              "#mpc.scope<\"x\", network>", "#mpc.scope<\"x\", network, pin = i32>",
              "#mpc.scope<\"x\", pin = tensor<4xf16>>", "dense_resource<blob> : tensor<4xf32>",
              "sparse<[[0]], [1.0]> : tensor<4xf32>", "{}", "loc(unknown)", "affine_map<(d0) -> (d0)>", "1 : i128",
              "[]", "[-1, -1]", "[9223372036854775807, 2]", "NHWC", "same", "none", "1.0e39", "0x7FC00000"]
# What stands between the dictionary and the types.
ORIGINS = ["", " backward", ' as <f16, level "O2">', " as <i32, cut>", " as <>", ' as "x"', ' in "x"', ' in <"x">', ' in ""',
           ' in <"x", network, pin = i32>', ' in <"x", level = "O9", low = tensor<4xf16>>', " in #missing", " in 1"]
ELEMENTS = ["f32", "f16", "bf16", "f64", "i32", "i64", "i1", "index", "f8E5M2", "i7"]
OPERATIONS = ["mpc.relu", "mpc.conv2d", "mpc.matmul", "mpc.cast", "mpc.constant", "mpc.reshape", "mpc.transpose",
              "mpc.momentum", "mpc.guarded_update", "mpc.value_and_grad", "mpc.batch_norm_train", "mpc.max_pool2d",
              "mpc.softmax_cross_entropy", "mpc.sum_n", "mpc.select", "mpc.yield", "func.return", "func.call", "return",
              "mpc.reduce_sum", "mpc.unscale", "mpc.random", "mpc.avg_pool2d_grad", "mpc.all_finite"]


def pick(rng, items):
    return items[rng.randrange(len(items))]


def replace(text, span, new):
    return text[: span[0]] + new + text[span[1] :]


def swap_match(rng, text, pattern, choices):
    """Exchanges one occurrence of `pattern` for one of `choices`."""
    spans = [match.span() for match in re.finditer(pattern, text)]
    return replace(text, pick(rng, spans), pick(rng, choices)) if spans else text


# A word without quotes; `mpc.relu` is an operation.
WORD = r"[A-Za-z_]\w*(?![\w.])"


def swap_attribute(rng, text):
    """Another value for one `name = value`."""
    value = r'(?<== )(?:array<[^>]*>|\[[^\]\n]*\]|"[^"]*"|dense<[^>]*> : tensor<[^>]*>|#\w+|%s|[-\d.e+]+(?: : \w+)?)' % WORD
    return swap_match(rng, text, value, ATTRIBUTES)


def rename_attribute(rng, text):
    names = sorted(set(re.findall(r"(\w[\w.]*) = ", text))) + ["mpc.scope", "mpc.precision", "mpc.state"]
    return swap_match(rng, text, r"[\w.]+(?= = )", names)


def add_attribute(rng, text):
    names = sorted(set(re.findall(r"[{,] ?(\w[\w.]*) = ", text))) + ["mpc.scope", "mpc.precision", "mpc.state"]
    spans = [match.span() for match in re.finditer(r"\{(?=\w[\w.]* = )", text)]
    return replace(text, pick(rng, spans), "{" + pick(rng, names) + " = " + pick(rng, ATTRIBUTES) + ", ") if spans else text


def drop_attribute(rng, text):
    value = r"(?:array<[^>]*>|\[[^\]\n]*\]|\"[^\"]*\"|#\w+|%s|[-\d.e+]+(?: : \w+)?)" % WORD
    return swap_match(rng, text, r"[\w.]+ = " + value + "(?:, )?", [""])


def swap_origin(rng, text):
    """Another mark, precision or scope behind one dictionary."""
    return swap_match(rng, text, r' (?:as|in) (?:<[^>\n]*>|"[^"\n]*"|#\w+)| backward(?= )', ORIGINS)


def change_token(rng, text):
    tokens = [match.span() for match in TOKEN.finditer(text)]
    if not tokens:
        return text
    span, other = pick(rng, tokens), pick(rng, tokens)
    word = text[span[0] : span[1]]
    new = pick(rng, ["", word + " " + word, word + ", " + word, text[other[0] : other[1]]])
    return replace(text, span, new)


def change_line(rng, text):
    lines = text.splitlines()
    if len(lines) < 2:
        return text
    at, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    action = rng.randrange(3)
    if action == 0:
        del lines[at]
    elif action == 1:
        lines.insert(at, lines[other])
    else:
        lines[at], lines[other] = lines[other], lines[at]
    return "\n".join(lines) + "\n"


def cut(rng, text):
    return text[: rng.randrange(len(text) + 1)]


def flip_byte(rng, text):
    if not text:
        return text
    at = rng.randrange(len(text))
    return replace(text, (at, at + 1), pick(rng, ["\0", "\x7f", "{", "}", "(", ")", "<", ">", '"', "%", "\xff", ""]))


def everywhere(rng, text, pattern, choices):
    """Exchanges every occurrence of one match: such mutants often pass the verifier and reach the passes."""
    words = re.findall(pattern, text)
    if not words:
        return text
    word, new = pick(rng, words), pick(rng, choices)
    return re.sub(r"(?<![\w-])" + re.escape(word) + r"(?![\w])", lambda _: new, text)


def new_element(rng, text):
    """One element type for another in every tensor type."""
    return re.sub(r"(?<=[<x])%s(?=>)" % pick(rng, ELEMENTS[:6]), pick(rng, ELEMENTS), text)


def new_extent(rng, text):
    """One extent for another, in types and in attributes."""
    extents = re.findall(r"(?<=[<x])\d+(?=x)", text)
    if not extents:
        return text
    return re.sub(r"(?<![\w%%@#.-])%s(?=[x,>])|(?<=[x])%s(?=x)" % ((pick(rng, extents),) * 2), pick(rng, NUMBERS[:6]), text)


CHANGES = [
    (4, lambda rng, text: everywhere(rng, text, r"tensor<[^>]*>", TYPES)),
    (4, new_element), (4, new_extent),
    (4, lambda rng, text: swap_match(rng, text, r"(?<![\w%@#.])-?\d+(?:\.\d+(?:e[+-]?\d+)?)?", NUMBERS)),
    (4, lambda rng, text: swap_match(rng, text, r"tensor<[^>]*>", TYPES)),
    (3, lambda rng, text: swap_match(rng, text, r"(?<=x)(?:f32|f16|bf16|i32|i64)(?=>)", ELEMENTS)),
    (3, lambda rng, text: swap_match(rng, text, r"(?<=[<x])\d+(?=x)", NUMBERS)),
    (3, lambda rng, text: swap_match(rng, text, r"%[\w#]+", re.findall(r"%[\w#]+", text) or [""])),
    (2, lambda rng, text: swap_match(rng, text, r"\bmpc\.\w+(?= )", OPERATIONS)),
    (5, swap_attribute), (2, rename_attribute), (3, add_attribute), (3, drop_attribute), (3, swap_origin),
    (4, change_token),
    (2, change_line), (1, cut), (1, flip_byte),
]
WEIGHTED = [change for weight, change in CHANGES for _ in range(weight)]


def files(paths):
    """The files that `paths` name, and those in the folders that they name."""
    for path in paths:
        yield from sorted(path.rglob("*.mlir")) if path.is_dir() else [path]


def pieces(path):
    """The separate modules of a test file, without its comments."""
    for piece in path.read_text().split(SEPARATOR):
        lines = [line for line in piece.splitlines() if not line.lstrip().startswith("//")]
        text = "\n".join(lines).strip()
        if text:
            yield text + "\n"


# The parser of MLIR 22 itself dies of dense arrays whose elements are no integers or floats, such as array<index: 1>, in
# mlir-opt too: they are left out.
UPSTREAM = re.compile(r"array<(?!i\d|f\d|bf16)")


def mutant(rng, text):
    for _ in range(pick(rng, [1, 1, 1, 2, 3])):
        text = pick(rng, WEIGHTED)(rng, text)
    return UPSTREAM.sub("array<i64", text.replace(SEPARATOR, ""))


def run(tool, options, text, folder):
    """None where the tool answered, else how it died."""
    path = folder / "mutant.mlir"
    path.write_text(text, encoding="latin-1")
    try:
        done = subprocess.run([tool, str(path), *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              timeout=TIMEOUT_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return "ran longer than %d seconds" % TIMEOUT_SECONDS
    message = done.stderr.decode("utf-8", "replace")
    if done.returncode in (0, 1) and "PLEASE submit a bug report" not in message and "Sanitizer" not in message:
        return None
    return "exit status %d: %s" % (done.returncode, message[-600:])


def group_size(options):
    return SINGLE_GROUP if options and options[0] in SINGLE else GROUP


def batches(arguments):
    """Groups of texts, each with the options to run it with."""
    sources = [piece for path in files(arguments.paths) for piece in pieces(path)]
    if arguments.corpus:
        for options in PIPELINES:
            size = group_size(options)
            for at in range(0, len(sources), size):
                yield sources[at : at + size], options
        return
    rng = random.Random(arguments.seed)
    left = arguments.count
    while left > 0:
        options = pick(rng, PIPELINES)
        size = min(group_size(options), left)
        left -= size
        yield [mutant(rng, pick(rng, sources)) for _ in range(size)], options


def suspects(tool, group, options, folder):
    """The texts of a group that a run of their own must show or clear."""
    if options and options[0] in SINGLE:
        return group
    joined = ("\n" + SEPARATOR + "\n").join(group)
    return group if run(tool, options + ["--split-input-file"], joined, folder) else []


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", required=True)
    parser.add_argument("--corpus", action="store_true")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--keep", type=pathlib.Path, help="a folder for the texts that kill the tool")
    parser.add_argument("paths", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    deaths = texts = 0
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for group, options in batches(arguments):
            texts += len(group)
            for text in suspects(arguments.tool, group, options, folder):
                death = run(arguments.tool, options, text, folder)
                if death is None:
                    continue
                deaths += 1
                print("mpc-opt %s died: %s\non\n%s" % (" ".join(options), death, text))
                if arguments.keep:
                    arguments.keep.mkdir(parents=True, exist_ok=True)
                    (arguments.keep / ("death%d.mlir" % deaths)).write_text(
                        "// options: %s\n%s" % (" ".join(options), text), encoding="latin-1")
    print("%d texts, %d deaths" % (texts, deaths))
    return 1 if deaths else 0


if __name__ == "__main__":
    sys.exit(main())
