#!/usr/bin/env python3
"""Thins state files (safetensors) in place: of each tensor stay at most 4,096 elements, evenly spread, as a list. So an
archive holds what the CPU computed for networks of millions of parameters."""

import json
import pathlib
import struct
import sys

MOST = 4096
ITEM_BYTES = {"F32": 4, "F16": 2, "BF16": 2, "I32": 4, "I64": 8, "BOOL": 1}


def stride_of(elements):
    """How far apart elements are that stay."""
    return max(1, -(-elements // MOST))


def thin(path):
    data = pathlib.Path(path).read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    header, kept = {}, bytearray()
    for name, entry in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            header[name] = entry
            continue
        begin, end = (8 + size + offset for offset in entry["data_offsets"])
        item = ITEM_BYTES[entry["dtype"]]
        step = item * stride_of((end - begin) // item)
        tensor = b"".join(data[at:at + item] for at in range(begin, end, step))
        header[name] = {"dtype": entry["dtype"], "shape": [len(tensor) // item],
                        "data_offsets": [len(kept), len(kept) + len(tensor)]}
        kept += tensor
    text = json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + kept)


def main():
    for path in sys.argv[1:]:
        thin(path)


if __name__ == "__main__":
    main()
