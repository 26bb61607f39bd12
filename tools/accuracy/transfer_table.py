#!/usr/bin/env python3
"""Fine-tunes LeNet-5 from PyTorch's weights with mpc-train and prints test accuracies as a Markdown table, then PASS.

    python3 tools/accuracy/transfer_table.py build/default/bin/mpc-train > table.md

PyTorch trains LeNet-5 on the digits 0 to 4, draws the last layer anew and saves safetensors. mpc-train learns the digits
5 to 9: from its own initial values, and with --init and --freeze from that file. PASS says two things. At a quarter of
the steps the mean over the seeds is at least that from scratch, and every frozen parameter has the bytes of the file.
The digits are those that come with mpc, or MNIST's test set with --mnist=FOLDER. Needs torch, safetensors and numpy.
"""

import argparse
import gzip
import json
import pathlib
import statistics
import struct
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

import numpy
import torch
from safetensors.numpy import load_file
from safetensors.torch import save_file
from torch.nn import functional

DIGITS = pathlib.Path(__file__).resolve().parents[2] / "data" / "digits.csv.gz"
FROZEN = ["conv1", "conv2"]
QUARTER = 4
BATCH = 32
MOMENTUM = 0.9
RATE = 0.03  # mpc-train's default for momentum
HEAD_DEVIATION = 0.02  # of models::LeNet5
MEAN, DEVIATION = 0.1307, 0.3081  # of data::Mnist
SIDE = 32


class LeNet5(torch.nn.Module):
    """models::LeNet5 under the same names, whose convolutions have no bias."""

    def __init__(self):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 6, 5, bias=False)
        self.conv2 = torch.nn.Conv2d(6, 16, 5, bias=False)
        self.fc1 = torch.nn.Linear(400, 120)
        self.fc2 = torch.nn.Linear(120, 84)
        self.fc3 = torch.nn.Linear(84, 10)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = functional.relu(self.fc2(functional.relu(self.fc1(x.flatten(1)))))
        return self.fc3(x)


def bundled_digits():
    """Pictures u8 [rows, 24, 24] and labels of the digits that come with mpc, three times as large."""
    rows = numpy.loadtxt(gzip.open(DIGITS, "rt"), delimiter=",", dtype=numpy.int64)
    pictures = numpy.minimum(rows[:, :64] * 16, 255).astype(numpy.uint8).reshape(-1, 8, 8)
    return pictures.repeat(3, axis=1).repeat(3, axis=2), rows[:, 64]


def mnist_digits(folder):
    """Pictures u8 [rows, 28, 28] and labels of MNIST's test set."""
    def content(name, header):
        return numpy.frombuffer(gzip.open(folder / f"{name}.gz").read()[header:], numpy.uint8)

    return content("t10k-images-idx3-ubyte", 16).reshape(-1, 28, 28), content("t10k-labels-idx1-ubyte", 8)


def write_idx(folder, part, pictures, labels):
    header = struct.pack(">IIII", 0x0803, *pictures.shape)
    (folder / f"{part}-images-idx3-ubyte").write_bytes(header + pictures.tobytes())
    (folder / f"{part}-labels-idx1-ubyte").write_bytes(struct.pack(">II", 0x0801, len(labels)) +
                                                       labels.astype(numpy.uint8).tobytes())


def write_new_digits(folder, pictures, labels, rows):
    """The digits 5 to 9 as mpc-train --data=mnist reads them: the first `rows` for training, all others for testing."""
    pictures, labels = pictures[labels > 4], labels[labels > 4]
    write_idx(folder, "train", pictures[:rows], labels[:rows])
    write_idx(folder, "t10k", pictures[rows:], labels[rows:])
    return len(labels) - rows


def pretrain(pictures, labels, epochs, seed):
    """PyTorch's LeNet-5 after `epochs` on the digits 0 to 4, with a last layer that has learned nothing."""
    torch.manual_seed(seed)
    border = (SIDE - pictures.shape[1]) // 2
    images = (torch.from_numpy(pictures[labels < 5].copy()).float() / 255 - MEAN) / DEVIATION
    images = functional.pad(images, [border] * 4, value=-MEAN / DEVIATION).unsqueeze(1)
    answers = torch.from_numpy(labels[labels < 5].astype(numpy.int64))
    network = LeNet5()
    optimizer = torch.optim.SGD(network.parameters(), lr=RATE, momentum=MOMENTUM)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, epochs)
    for _ in range(epochs):
        for rows in torch.randperm(len(images)).split(BATCH):
            optimizer.zero_grad()
            functional.cross_entropy(network(images[rows]), answers[rows]).backward()
            optimizer.step()
        schedule.step()
    torch.nn.init.normal_(network.fc3.weight, std=HEAD_DEVIATION)
    torch.nn.init.zeros_(network.fc3.bias)
    return network


def train(arguments, folder, name, epochs, *more):
    """The summary of a run of mpc-train, and the weights that it saved."""
    summary, saved = folder / f"{name}.json", folder / f"{name}.safetensors"
    command = [arguments.mpc_train, "lenet5", "--data=mnist", f"--data-dir={folder}", f"--epochs={epochs}",
               f"--batch-size={BATCH}", f"--lr={RATE}", "--quiet", f"--summary={summary}", f"--save={saved}", *more,
               *arguments.flags]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{run.stderr}")
    return json.loads(summary.read_text()), load_file(saved)


def changed(before, after):
    """The frozen parameters whose bytes are not those of the file."""
    names = [name for name in before if name.split(".")[0] in FROZEN]
    return [name for name in names if before[name].tobytes() != after[name].tobytes()]


def run_seed(arguments, folder, seed, file):
    """A row of the table: two runs from scratch, and one from PyTorch's weights."""
    epochs, short = arguments.epochs, arguments.epochs // QUARTER
    whole, _ = train(arguments, folder, f"whole_{seed}", epochs, f"--seed={seed}")
    quarter, _ = train(arguments, folder, f"quarter_{seed}", short, f"--seed={seed}")
    tuned, after = train(arguments, folder, f"tuned_{seed}", short, f"--seed={seed}", f"--init={file}",
                         f"--freeze={','.join(FROZEN)}")
    accuracies = [100 * run["test_accuracy"] for run in (whole, quarter, tuned)]
    return {"seed": seed, "steps": whole["steps"], "short": tuned["steps"], "accuracies": accuracies,
            "changed": changed(load_file(file), after)}


def print_table(rows):
    """True where the claims hold."""
    print("| seed | steps | from scratch, % | a quarter of the steps | from scratch, % | from PyTorch's weights, % | "
          "frozen parameters |\n|---|---|---|---|---|---|---|")
    for row in rows:
        frozen = "changed: " + ", ".join(row["changed"]) if row["changed"] else "unchanged"
        whole, quarter, tuned = row["accuracies"]
        print(f"| {row['seed']} | {row['steps']} | {whole:.2f} | {row['short']} | {quarter:.2f} | {tuned:.2f} | {frozen} |")
    whole, quarter, tuned = (statistics.mean(column) for column in zip(*(row["accuracies"] for row in rows)))
    print(f"| mean | | {whole:.2f} | | {quarter:.2f} | {tuned:.2f} | |\n")
    passes = tuned >= whole and not any(row["changed"] for row in rows)
    print("PASS" if passes else "FAIL")
    return passes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("mpc_train", help="the mpc-train program")
    parser.add_argument("--mnist", type=pathlib.Path, help="a folder with MNIST's t10k-* files, compressed")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=717, help="digits 5 to 9 that are trained on")
    parser.add_argument("--epochs", type=int, default=4, help="from scratch, a multiple of 4")
    parser.add_argument("--pretrain-epochs", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=1, help="seeds that mpc-train learns at a time")
    parser.add_argument("flags", nargs="*", help="further flags of mpc-train, after --")
    arguments = parser.parse_intermixed_args()
    if arguments.epochs % QUARTER != 0:
        parser.error(f"--epochs={arguments.epochs} has no quarter")

    torch.set_num_threads(1)
    pictures, labels = mnist_digits(arguments.mnist) if arguments.mnist else bundled_digits()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        test_rows = write_new_digits(folder, pictures, labels, arguments.rows)
        print(f"PyTorch {torch.__version__}: digits 0 to 4; mpc: digits 5 to 9, {arguments.rows} for training and "
              f"{test_rows} for testing\n", flush=True)
        files = {seed: folder / f"torch_{seed}.safetensors" for seed in range(arguments.seeds)}
        for seed, file in files.items():
            save_file(pretrain(pictures, labels, arguments.pretrain_epochs, seed).state_dict(), file)
        with ThreadPoolExecutor(arguments.jobs) as pool:
            rows = list(pool.map(lambda seed: run_seed(arguments, folder, seed, files[seed]), files))
    sys.exit(0 if print_table(rows) else 1)


if __name__ == "__main__":
    main()
