"""Reads the machine code in libmpc_cuda.so: no kernel of any architecture may spill registers.

  check_spills.py LIBRARY

The library carries one ELF file per translation unit and architecture. In each, the attribute FRAME_SIZE gives the bytes
of stack that a function uses per thread. Spilled registers lie there, as do arrays that are indexed at run time: a
kernel with an empty frame has neither.
"""

import collections
import struct
import subprocess
import sys

FAT_MAGIC = 0xBA55ED50
CODE = 2  # kind of a fat binary's entry: machine code; 1 is PTX
COMPRESSED = 0xE000  # flags of an entry
INFO_SECTION = b".nv.info"
SIZED_VALUE = 0x04  # format of an attribute: a 16-bit size, then the value
FRAME_SIZE = 0x11
# Bytes a thread that a kernel may have on the stack, by a part of its name. Sine and cosine of huge f64 arguments go
# through 40 bytes of CUDA's mathematical functions, indexed at run time; normal draws keep registers over that call.
ALLOWED = {"SinOp": 40, "SinGradOp": 40, "CosOp": 40, "CosGradOp": 40, "TruncatedNormalKernel": 40, "NormalDraws": 72}


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
                    sys.exit("check_spills.py: the machine code is compressed; link without --compress-all")
                yield architecture, library[entry + entry_header:entry + entry_header + entry_size]
            entry += entry_header + entry_size
        at = library.find(struct.pack("<I", FAT_MAGIC), end)


def name_at(table, offset):
    return table[offset:table.index(b"\0", offset)]


def frame_sizes(elf):
    """(function, bytes of its stack frame) of every function of an ELF file."""
    (section_table,) = struct.unpack_from("<Q", elf, 40)
    entry_size, count, names_index = struct.unpack_from("<HHH", elf, 58)
    # name, type, flags, address, offset, size, link
    sections = [struct.unpack_from("<IIQQQQI", elf, section_table + i * entry_size) for i in range(count)]
    content = lambda section: elf[section[4]:section[4] + section[5]]
    section_names = content(sections[names_index])
    symbols = next(s for s in sections if s[1] == 2)
    symbol_bytes, symbol_names = content(symbols), content(sections[symbols[6]])
    for section in sections:
        if name_at(section_names, section[0]) != INFO_SECTION:
            continue
        info, at = content(section), 0
        while at < len(info):
            form, attribute, size = struct.unpack_from("<BBH", info, at)
            at += 4
            if form != SIZED_VALUE:
                continue
            if attribute == FRAME_SIZE:
                symbol, frame = struct.unpack_from("<II", info, at)
                (name,) = struct.unpack_from("<I", symbol_bytes, symbol * 24)
                yield name_at(symbol_names, name).decode(), frame
            at += size


def main():
    with open(sys.argv[1], "rb") as file:
        library = file.read()
    functions, framed = collections.Counter(), []
    for architecture, elf in machine_codes(library):
        for function, frame in frame_sizes(elf):
            if function.startswith("$"):  # a subroutine of a kernel, which reports the kernel's frame again
                continue
            functions[architecture] += 1
            if frame > max((most for part, most in ALLOWED.items() if part in function), default=0):
                framed.append((architecture, frame, function))
    if not functions:
        sys.exit(f"check_spills.py: {sys.argv[1]} holds no machine code of a GPU")
    for architecture, number in sorted(functions.items()):
        print(f"sm_{architecture}: {number} kernels")
    if framed:
        names = "\n".join(name for _, _, name in framed)
        try:
            names = subprocess.run(["c++filt"], input=names, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.CalledProcessError):
            pass
        for (architecture, frame, _), name in zip(framed, names.splitlines()):
            print(f"sm_{architecture}: {frame} bytes of stack: {name}")
        sys.exit(f"{len(framed)} kernels use the stack: spilled registers, or arrays with an index known at run time")


if __name__ == "__main__":
    main()
