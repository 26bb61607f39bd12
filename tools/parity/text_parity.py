#!/usr/bin/env python3
"""Trains GPT-2 on a text in mpc and in PyTorch and compares the validation losses.

    python3 tools/parity/text_parity.py build/default/bin/mpc-train TEXT [--steps=1000 ...]

Both begin at the weights that mpc-train draws, read the same windows in the same order and have the same optimizer,
learning rates, clipping and threads; PyTorch takes them from mpc-train's summary. f32 against f32, bf16 (O2, and O1)
against autocast to bf16. Prints a Markdown table; the exit status is 1 if a loss differs by more than 0.02 nats a byte.
"""

import argparse
import contextlib
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import types

import torch
from torch.nn import functional

from text_windows import TextWindows

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
import torch_data  # noqa: E402
import torch_gpt2  # noqa: E402

TOLERANCE = 0.02
VALIDATION_ROWS = 32
PYTORCH_NAMES = {"embedding_table": "weight", "gamma": "weight", "beta": "bias"}
RUNS = [("f32", ["--amp-level=O0"], None), ("bf16, O2", ["--amp-level=O2", "--dtype=bf16"], torch.bfloat16),
        ("bf16, O1", ["--amp-level=O1", "--dtype=bf16"], torch.bfloat16)]


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("mpc_train")
    parser.add_argument("text")
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--heads", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--batch-size", type=int, default=16)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    names = [name for name, _, _ in RUNS]
    parser.add_argument("--runs", nargs="*", choices=names, default=names)
    return parser.parse_args()


def train_mpc(arguments, folder, more):
    """The summary of one run."""
    sizes = ["steps", "layers", "width", "heads", "tokens", "batch_size", "lr", "seed", "threads"]
    flags = [f"--{name.replace('_', '-')}={getattr(arguments, name)}" for name in sizes]
    summary = pathlib.Path(folder, "summary.json")
    subprocess.run([arguments.mpc_train, "gpt2", f"--text-file={arguments.text}", "--sample=0", "--quiet",
                    "--amp-verbosity=0", f"--summary={summary}", *flags, *more], check=True, stdout=subprocess.DEVNULL)
    return json.loads(summary.read_text(encoding="utf-8"))


def load_start(network, path):
    """Every weight of the network; optimizer and counters stay behind."""
    weights = {}
    for name, value in torch_data.read_safetensors(path).items():
        module, _, member = name.rpartition(".")
        weights[f"{module}.{PYTORCH_NAMES.get(member, member)}"] = value
    network.load_state_dict({name: weights[name] for name in network.state_dict()})


def rate_at(step, options):
    """nn::CosineDecay."""
    warmup, total, top, low = options["warmup_steps"], options["steps"], options["lr"], options["final_lr"]
    if step < warmup:
        return top * (step + 1) / warmup
    return low + (top - low) * (1 + math.cos(math.pi * min(1.0, (step - warmup) / (total - warmup)))) / 2


class TorchTraining:
    """PyTorch's training of the network and the run that a summary tells of."""

    def __init__(self, options, text, start, low):
        self.options = options
        self.low = low
        self.windows = TextWindows(text, options["tokens"], options["seed"])
        self.network = torch_gpt2.Gpt2(types.SimpleNamespace(
            vocabulary=256, context=options["tokens"], width=options["width"], layers=options["layers"],
            heads=options["heads"]))
        load_start(self.network, start)
        matrices = [parameter for parameter in self.network.parameters() if parameter.dim() > 1]
        vectors = [parameter for parameter in self.network.parameters() if parameter.dim() == 1]
        self.optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": options["weight_decay"]},
                                            {"params": vectors, "weight_decay": 0.0}],
                                           betas=(0.9, options["beta2"]), eps=1e-8, fused=True)

    def loss(self, batch):
        ids, labels = (torch.from_numpy(column.copy()) for column in batch)
        precision = torch.autocast("cpu", dtype=self.low) if self.low is not None else contextlib.nullcontext()
        with precision:
            logits = self.network(ids)
        return functional.cross_entropy(logits.float().flatten(0, 1), labels.flatten())

    def validate(self):
        total, rows = 0.0, 0
        with torch.no_grad():
            for batch in self.windows.validation_batches(VALIDATION_ROWS):
                total += float(self.loss(batch)) * len(batch[0])
                rows += len(batch[0])
        return total / rows

    def run(self):
        rows = self.options["batch_size"]
        for step in range(self.options["steps"]):
            for group in self.optimizer.param_groups:
                group["lr"] = rate_at(step, self.options)
            self.optimizer.zero_grad(set_to_none=True)
            self.loss(self.windows.training_batch(0, step * rows, rows)).backward()
            torch.nn.utils.clip_grad_norm_(self.network.parameters(), self.options["clip_norm"])
            self.optimizer.step()


def main():
    arguments = parse()
    torch.set_num_threads(arguments.threads)
    worst = 0.0
    print(f"PyTorch {torch.__version__}, {arguments.steps} steps, seed {arguments.seed}, {arguments.threads} threads\n")
    print("| | at the start: mpc | PyTorch | at the end: mpc | PyTorch | difference |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        start = str(pathlib.Path(folder, "start.safetensors"))
        for name, flags, low in RUNS:
            if name not in arguments.runs:
                continue
            begin = train_mpc(arguments, folder, ["--epochs=0", f"--save={start}", *flags])
            summary = train_mpc(arguments, folder, ["--validate-every=0", f"--load={start}", *flags])
            torch_training = TorchTraining(summary["options"], arguments.text, start, low)
            torch_begin = torch_training.validate()
            torch_training.run()
            torch_loss = torch_training.validate()
            difference = summary["test_loss"] - torch_loss
            worst = max(worst, abs(difference))
            print(f"| {name} | {begin['test_loss']:.4f} | {torch_begin:.4f} | {summary['test_loss']:.4f} | "
                  f"{torch_loss:.4f} | {difference:+.4f} |", flush=True)
    print(f"\nlargest difference {worst:.4f}, allowed {TOLERANCE}")
    sys.exit(0 if worst <= TOLERANCE else 1)


if __name__ == "__main__":
    main()
