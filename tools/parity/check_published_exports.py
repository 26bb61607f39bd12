#!/usr/bin/env python3
"""Loads what mpc saved into torchvision's, transformers' and timm's networks and compares their logits with mpc's.

    python3 tools/parity/check_published_exports.py NETWORK GOLDENS SAVED

NETWORK is resnet18, resnet50, gpt2, bert or vit, GOLDENS its folder of make_published_goldens.py, and SAVED a file of
weights that mpc saved. Exit status: 0 the logits are those of the goldens to 1e-5, 1 they are not.
"""

import pathlib
import shutil
import sys
import tempfile

import torch
import transformers
from make_published_goldens import BasicBlock, Bottleneck, narrow_resnet, vit
from safetensors.torch import load_file

TOLERANCE = 1e-5
RESNETS = {"resnet18": (BasicBlock, [2, 2, 2, 2]), "resnet50": (Bottleneck, [3, 4, 6, 3])}
TRANSFORMERS = {"gpt2": transformers.GPT2LMHeadModel, "bert": transformers.BertForMaskedLM}


def loaded(name: str, goldens: pathlib.Path, saved: pathlib.Path) -> torch.nn.Module:
    if name not in TRANSFORMERS:
        network = vit() if name == "vit" else narrow_resnet(*RESNETS[name], classes=5)
        network.load_state_dict(load_file(saved))
        return network.eval()
    with tempfile.TemporaryDirectory() as folder:
        shutil.copy(goldens / "config.json", folder)
        shutil.copy(saved, pathlib.Path(folder) / "model.safetensors")
        network, report = TRANSFORMERS[name].from_pretrained(folder, output_loading_info=True, dtype=torch.float32)
    strangers = [keys for keys in report.values() if keys]
    if strangers:
        sys.exit(f"{name}: transformers does not take all of the file: {report}")
    return network.eval()


def main() -> None:
    name, goldens, saved = sys.argv[1], pathlib.Path(sys.argv[2]), pathlib.Path(sys.argv[3])
    expected = load_file(goldens / "expected.safetensors")
    network = loaded(name, goldens, saved)
    value = expected["input"]
    with torch.no_grad():
        logits = network(value.long()).logits.flatten(0, 1) if name in TRANSFORMERS else network(value)
    difference = (logits - expected["logits"]).abs().max().item()
    print(f"{name}: largest difference {difference:.3g}")
    if not difference <= TOLERANCE:
        sys.exit(1)


if __name__ == "__main__":
    main()
