"""What ptxas made of the project's kernels, for GPUs that need not be here.

    machine_code.py --spills LIBRARY               no kernel of libmpc_cuda.so keeps registers in memory
    machine_code.py BUILD                          the tables of docs/gpu.md: own and generated kernels
    machine_code.py BUILD --compare PAGE           the tables of PAGE are those of this build
    machine_code.py BUILD --update PAGE            writes them there

--spills reads the ELF files that the library carries: no other program is needed. The tables also take nvdisasm and
cuobjdump, which `tools/fetch_python_packages.sh --machine-code` fetches, and ptxas for what mpc-opt generates. BUILD is
a build folder with libmpc_cuda.so, mpc-opt and gpu_occupancy.

Exit status: 0, 1 for a fault of the kernels or of the page, 77 where a program is missing that is optional.
"""

import argparse
import collections
import dataclasses
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ARCHITECTURES = (80, 90)

# Bytes a thread that a kernel may have on the stack, by a part of its name. Sine and cosine of huge f64 arguments go
# through 40 bytes of CUDA's mathematical functions, indexed at run time; normal draws keep registers over that call.
ALLOWED = {"SinOp": 40, "SinGradOp": 40, "CosOp": 40, "CosGradOp": 40, "TruncatedNormalKernel": 40, "NormalDraws": 72}

# ---- Fat binaries and ELF files.

FAT_MAGIC = 0xBA55ED50
CODE = 2  # kind of a fat binary's entry: machine code; 1 is PTX
COMPRESSED = 0xE000  # flags of an entry
SYMBOL_TABLE = 2  # type of a section
SIZED_VALUE = 0x04  # format of an attribute: a 16-bit size, then the value
MOST_THREADS, FRAME_SIZE, REQUIRED_THREADS, REGISTERS = 0x05, 0x11, 0x10, 0x2F  # attributes
TRANSLATION_UNIT = re.compile(r"GLOBAL__N__[0-9a-f]{8}_\d+_(\w+?)_cu_[0-9a-f]{8}")
TOOLKIT = re.compile(rb"Cuda compilation tools, (release [^,]+), V")


@dataclasses.dataclass
class Kernel:
    """One kernel for one architecture. Counts are of instructions as they stand there: a loop's once."""

    architecture: int
    group: str  # the row of the table: a source file, or a network
    name: str
    registers: int = 0  # a thread
    threads: int = 0  # a block, at most
    frame: int = 0  # bytes of stack a thread: spilled registers, and arrays that are indexed at run time
    shared: int = 0  # static, bytes a block
    accesses: int = 0  # loads and stores of global memory
    wide: int = 0  # of those, of 128 bits
    conversions: int = 0
    local: int = 0  # loads and stores of the stack
    occupancy: int = 0  # percent

    def frame_allowed(self):
        return max((most for part, most in ALLOWED.items() if part in self.name), default=0)


def fail(message):
    sys.exit(f"machine_code.py: {message}")


def machine_codes(library):
    """(architecture, ELF file) of every machine code in `library`."""
    at = library.find(struct.pack("<I", FAT_MAGIC))
    while at >= 0:
        _, version, header, size = struct.unpack_from("<IHHQ", library, at)
        if version != 1 or header != 16:  # the number, not a fat binary
            at = library.find(struct.pack("<I", FAT_MAGIC), at + 4)
            continue
        entry, end = at + header, at + header + size
        while entry < end:
            kind, _, entry_header, entry_size = struct.unpack_from("<HHIQ", library, entry)
            (architecture,) = struct.unpack_from("<I", library, entry + 28)
            (flags,) = struct.unpack_from("<Q", library, entry + 40)
            if kind == CODE:
                if flags & COMPRESSED:
                    fail("the machine code is compressed; link without --compress-all")
                yield architecture, library[entry + entry_header:entry + entry_header + entry_size]
            entry += entry_header + entry_size
        at = library.find(struct.pack("<I", FAT_MAGIC), end)


def name_at(table, offset):
    return table[offset:table.index(b"\0", offset)].decode()


class Elf:
    """The sections of a GPU's ELF file and the attributes of its functions."""

    def __init__(self, content):
        (section_table,) = struct.unpack_from("<Q", content, 40)
        entry_size, count, names_index = struct.unpack_from("<HHH", content, 58)
        # name, type, flags, address, offset, size, link
        sections = [struct.unpack_from("<IIQQQQI", content, section_table + i * entry_size) for i in range(count)]
        bytes_of = lambda section: content[section[4]:section[4] + section[5]]
        names = bytes_of(sections[names_index])
        self.content = {name_at(names, section[0]): bytes_of(section) for section in sections}
        self.sizes = {name_at(names, section[0]): section[5] for section in sections}
        table = next(section for section in sections if section[1] == SYMBOL_TABLE)
        self.symbols, self.symbol_names = bytes_of(table), bytes_of(sections[table[6]])

    def attributes(self, section):
        """(attribute, value) of those that have a size."""
        info, at = self.content.get(section, b""), 0
        while at < len(info):
            form, attribute, size = struct.unpack_from("<BBH", info, at)
            at += 4
            if form == SIZED_VALUE:
                yield attribute, info[at:at + size]
                at += size

    def of_functions(self, wanted):
        """{function: number} of an attribute that every function has."""
        numbers = {}
        for attribute, value in self.attributes(".nv.info"):
            if attribute == wanted:
                symbol, number = struct.unpack_from("<II", value)
                (name,) = struct.unpack_from("<I", self.symbols, symbol * 24)
                numbers[name_at(self.symbol_names, name)] = number
        return numbers

    def threads(self, kernel):
        for attribute, value in self.attributes(".nv.info." + kernel):
            if attribute in (MOST_THREADS, REQUIRED_THREADS):
                x, y, z = struct.unpack_from("<III", value)
                return x * y * z
        return 0

    def kernels(self, architecture, group):
        registers = self.of_functions(REGISTERS)
        for name, frame in self.of_functions(FRAME_SIZE).items():
            if name.startswith("$"):  # a subroutine of a kernel, which reports the kernel's frame again
                continue
            yield Kernel(architecture, group, name, registers.get(name, 0), self.threads(name), frame,
                         self.sizes.get(".nv.shared." + name, 0))


def codes_of_library(path):
    """(architecture, source, ELF file) of each machine code of the library. Anonymous namespaces carry the name of the
    source file; one file has none of them in its kernels' names, and is the one that no other ELF file names."""
    codes = list(machine_codes(path.read_bytes()))
    found = [TRANSLATION_UNIT.search(Elf(content).symbol_names.decode()) for _, content in codes]
    sources = [name and name[1] + ".cu" for name in found]
    rest = {source.name for source in (ROOT / "kernels/cuda").glob("*.cu")} - set(sources)
    unnamed = rest.pop() if len(rest) == 1 else "(unnamed)"
    for (architecture, content), source in zip(codes, sources):
        yield architecture, source or unnamed, content


# ---- Spills.


def demangled(names):
    try:
        return subprocess.run(["c++filt"], input="\n".join(names), capture_output=True, text=True,
                              check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return names


def check_frames(kernels):
    """Fails where a kernel uses the stack that may not."""
    framed = [kernel for kernel in kernels if kernel.frame > kernel.frame_allowed()]
    for kernel, name in zip(framed, demangled([kernel.name for kernel in framed])):
        print(f"sm_{kernel.architecture}: {kernel.frame} bytes of stack: {name}")
    if framed:
        fail(f"{len(framed)} kernels use the stack: spilled registers, or arrays with an index known at run time")


def check_spills(library):
    kernels = [kernel for architecture, source, content in codes_of_library(library)
               for kernel in Elf(content).kernels(architecture, source)]
    if not kernels:
        fail(f"{library} holds no machine code of a GPU")
    for architecture, number in sorted(collections.Counter(kernel.architecture for kernel in kernels).items()):
        print(f"sm_{architecture}: {number} kernels")
    check_frames(kernels)


# ---- Disassembly.

# "        /*0130*/              @!P0 LDG.E.128.SYS R8, [R4] ;"
INSTRUCTION = re.compile(r"^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?([A-Z][A-Z0-9_.]*)")
TEXT_SECTION = re.compile(r"^\.text\.(\S+):$")
RESOURCES = re.compile(r"^ Function (\S+):\n  REG:(\d+) STACK:(\d+)", re.MULTILINE)
GLOBAL_ACCESSES = {"LDG", "STG", "LD", "ST"}
LOCAL_ACCESSES = {"LDL", "STL"}
# Widening bf16 is a shift and counts as none. HADD2.F32 widens f16.
CONVERSIONS = {"F2F", "F2FP", "F2I", "F2IP", "I2F", "I2FP", "I2I", "I2IP"}


class Tools:
    """nvdisasm and cuobjdump, of the folder that tools/fetch_python_packages.sh fetched or of the PATH."""

    def __init__(self):
        folders = [str(folder) for folder in sorted((ROOT / ".deps/machine_code").glob("nvidia/*/bin"))]
        self.path = os.pathsep.join(folders + [os.environ.get("PATH", ""), "/usr/local/cuda/bin"])
        for name in ("nvdisasm", "cuobjdump", "ptxas"):
            setattr(self, name, self.find(name))

    def find(self, name):
        for folder in self.path.split(os.pathsep):
            path = pathlib.Path(folder, name)
            if path.is_file():
                if not os.access(path, os.X_OK):  # packages are unpacked without the right to run
                    path.chmod(path.stat().st_mode | 0o100)
                return str(path)
        return None

    def missing(self):
        return [name for name in ("nvdisasm", "cuobjdump", "ptxas") if getattr(self, name) is None]


def output_of(*command, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, **options)
    if done.returncode != 0:
        fail(f"{command[0]} ended with {done.returncode}: {done.stderr.strip()}")
    return done.stdout


def count_instructions(kernel_by_name, listing):
    kernel = None
    for line in listing.splitlines():
        if section := TEXT_SECTION.match(line):
            kernel = kernel_by_name.get(section[1])
            continue
        instruction = INSTRUCTION.match(line)
        if kernel is None or instruction is None:
            continue
        name, _, rest = instruction[1].partition(".")
        if name in GLOBAL_ACCESSES:
            kernel.accesses += 1
            kernel.wide += "128" in rest.split(".")
        elif name in LOCAL_ACCESSES:
            kernel.local += 1
        elif name in CONVERSIONS or name == "HADD2" and rest.startswith("F32"):
            kernel.conversions += 1


def check_resources(kernel_by_name, listing):
    """What was read in the ELF file is what cuobjdump reads there."""
    known = {name: (int(registers), int(stack)) for name, registers, stack in RESOURCES.findall(listing)}
    for name, kernel in kernel_by_name.items():
        if known.get(name) != (kernel.registers, kernel.frame):
            fail(f"{name}: read {kernel.registers} registers and {kernel.frame} bytes of stack, "
                 f"but cuobjdump says {known.get(name)}")


def look_at(tools, path, architecture, group):
    """The kernels of the ELF file `path`, disassembled."""
    kernels = list(Elf(path.read_bytes()).kernels(architecture, group))
    by_name = {kernel.name: kernel for kernel in kernels}
    count_instructions(by_name, output_of(tools.nvdisasm, "--print-code", path))
    check_resources(by_name, output_of(tools.cuobjdump, "--dump-resource-usage", path))
    for kernel in kernels:
        if kernel.local > 0 and kernel.frame == 0:
            fail(f"{kernel.name} loads and stores local memory, but has no stack")
    return kernels


def own_kernels(tools, library):
    with tempfile.TemporaryDirectory() as folder:
        for number, (architecture, source, content) in enumerate(codes_of_library(library)):
            path = pathlib.Path(folder, f"{number}.cubin")
            path.write_bytes(content)
            yield from look_at(tools, path, architecture, source)


# ---- Generated kernels.

NETWORKS = {"lenet5": [], "resnet50": [], "gpt2-tiny": ["--dtype=bf16"]}

# What mpc-opt takes for ptxas: the real one, whose machine code is kept.
KEEPING_PTXAS = """#!/bin/sh
for word; do
  shift
  case "$word" in /dev/null) word="$(mktemp "$MPC_KEPT_CODE/XXXXXXXX.cubin")" ;; esac
  set -- "$@" "$word"
done
exec "$MPC_REAL_PTXAS" "$@"
"""


def generated_kernels(tools, mpc_opt):
    for network, options in NETWORKS.items():
        for architecture in ARCHITECTURES:
            with tempfile.TemporaryDirectory() as folder:
                wrapper = pathlib.Path(folder, "ptxas")
                wrapper.write_text(KEEPING_PTXAS)
                wrapper.chmod(0o700)
                environment = os.environ | {"MPC_PTXAS": str(wrapper), "MPC_REAL_PTXAS": tools.ptxas,
                                            "MPC_KEPT_CODE": folder, "MPC_CACHE_DIR": "off"}
                output_of(mpc_opt, f"--model={network}", "--train", "--amp-level=O2", *options, "--device=cuda",
                          f"--arch=sm_{architecture}", "--fusion", "--report", env=environment)
                codes = sorted(pathlib.Path(folder).glob("*.cubin"))
                if not codes:
                    fail(f"mpc-opt assembled no kernel of {network}")
                for path in codes:
                    yield from look_at(tools, path, architecture, network)


# ---- Tables.


def add_occupancy(kernels, program):
    """Of blocks as large as a kernel takes; of 256 threads, a launch's default, where it does not say."""
    lines = [f"{k.architecture} {k.registers} {k.threads or 256} {k.shared}" for k in kernels]
    answers = output_of(program, input="\n".join(lines) + "\n").split()
    for kernel, answer in zip(kernels, answers, strict=True):
        kernel.occupancy = int(answer)


def percent(part, whole):
    return f"{100 * part / whole:.0f} %" if whole else "-"


def table(kernels, title):
    """A row a group; the numbers of both architectures, where they differ."""
    columns = [
        (title, None),
        ("kernels", lambda row: str(len(row))),
        ("registers", lambda row: str(max(k.registers for k in row))),
        ("stack", lambda row: str(max(k.frame for k in row))),
        ("128-bit", lambda row: percent(sum(k.wide for k in row), sum(k.accesses for k in row))),
        ("conversions", lambda row: str(sum(k.conversions for k in row))),
        ("occupancy", lambda row: f"{min(k.occupancy for k in row)} %"),
    ]
    lines = ["| " + " | ".join(name for name, _ in columns) + " |", "|---" * len(columns) + "|"]
    for group in dict.fromkeys(sorted(k.group for k in kernels) if title == "source" else [k.group for k in kernels]):
        rows = [[k for k in kernels if k.group == group and k.architecture == a] for a in ARCHITECTURES]
        cells = [group]
        for _, value in columns[1:]:
            values = [value(row) for row in rows]
            cells.append(values[0] if values[0] == values[1] else " / ".join(values))
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def toolkit_of(library):
    found = TOOLKIT.search(library.read_bytes())
    return found[1].decode() if found else "unknown"


def tables_of(tools, build):
    library, occupancy = build / "lib/libmpc_cuda.so", build / "bin/gpu_occupancy"
    own = list(own_kernels(tools, library))
    generated = list(generated_kernels(tools, build / "bin/mpc-opt"))
    check_frames(own + generated)
    for kernels in (own, generated):
        add_occupancy(kernels, occupancy)
    return [f"By ptxas of CUDA {toolkit_of(library)}; where sm_80 and sm_90 differ, sm_80 / sm_90.", "",
            *table(own, "source"), "", *table(generated, "generated for"), ""]


BEGIN, END = "<!-- tools/gpu/machine_code.py: begin -->\n", "<!-- tools/gpu/machine_code.py: end -->\n"


def on_page(page, tables):
    before, _, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        fail(f"the page has no lines {BEGIN.strip()} and {END.strip()}")
    return before + BEGIN + "\n" + tables + END + after


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", nargs="?", type=pathlib.Path)
    parser.add_argument("--spills", type=pathlib.Path, metavar="LIBRARY")
    parser.add_argument("--compare", type=pathlib.Path, metavar="PAGE")
    parser.add_argument("--update", type=pathlib.Path, metavar="PAGE")
    arguments = parser.parse_args()
    if arguments.spills:
        return check_spills(arguments.spills)
    if arguments.build is None:
        parser.error("a build folder, or --spills LIBRARY")
    tools = Tools()
    if missing := tools.missing():
        print(f"skipped: {' and '.join(missing)} not found: machine code is not looked at")
        sys.exit(77)
    page = arguments.compare or arguments.update
    text = page.read_text() if page else ""
    release = toolkit_of(arguments.build / "lib/libmpc_cuda.so")
    if arguments.compare and "By ptxas of CUDA " in text and f"By ptxas of CUDA {release};" not in text:
        print(f"skipped: machine code of another CUDA than {release} is in {page.name}")
        sys.exit(77)
    tables = "\n".join(tables_of(tools, arguments.build)) + "\n"
    if arguments.update:
        page.write_text(on_page(text, tables))
    elif arguments.compare and on_page(text, tables) != text:
        print(tables)
        fail(f"{page} has other numbers; machine_code.py BUILD --update {page} writes these")
    elif not arguments.compare:
        print(tables, end="")


if __name__ == "__main__":
    main()
