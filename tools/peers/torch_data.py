"""What mpc-bench hands to its peers: initial weights and batches, as safetensors."""

import json
import struct

import torch

# How safetensors names element types.
STORED_TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I32": torch.int32,
                "I64": torch.int64}


def read_safetensors(path):
    """Name -> tensor. The format: a length, a JSON table, the bytes."""
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        table = json.loads(file.read(length))
        content = bytearray(file.read())
    tensors = {}
    for name, entry in table.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        flat = torch.frombuffer(content, dtype=torch.uint8)[begin:end].clone().view(STORED_TYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"])
    return tensors


def load_weights(network, path):
    """Every entry of the network must be in the file, and the other way round."""
    weights = {name.replace("embedding_table", "weight"): value for name, value in read_safetensors(path).items()}
    known = network.state_dict()
    for name in known:
        if name.endswith("num_batches_tracked"):
            weights[name] = known[name]
    network.load_state_dict(weights)


def read_batches(path):
    """Lists of columns, in mpc's order; whole numbers as PyTorch's losses and embeddings take them."""
    tensors = read_safetensors(path)
    batches = []
    while f"batch{len(batches)}.column0" in tensors:
        prefix = f"batch{len(batches)}.column"
        columns = [tensors[f"{prefix}{i}"] for i in range(len(tensors)) if f"{prefix}{i}" in tensors]
        batches.append([column if column.is_floating_point() else column.long() for column in columns])
    return batches
