"""What the PyTorch peers of mpc-bench share: arguments, the run, the report.

A peer gives a network, its batches and an optimizer; `run` times whole training steps, on a GPU with the copy of each
batch from pinned host memory, and prints one JSON object: step_seconds (one a measured step), first_step_seconds
(compiling and capturing included), peak_bytes (CUDA: the allocator's maximum), resident_bytes and
steps_resident_bytes (CPU: see Resident), version, settings, threads, first_loss, final_loss, losses (CPU: one a measured
step), steps_before (CPU: steps before the measured ones). With --ranks=N it is one of N processes, as torchrun's
variables say: torch_ranks.py. With --json the object goes to a file and a line of percentiles is printed. PyTorch is
needed for these scripts only; nothing in mpc's build or tests uses it.
"""

import argparse
import importlib
import json
import sys
import time

import torch
import torch._dynamo  # optimizers load it when they are first used: neither memory nor time of a step

import resident_memory
import torch_data
import torch_ranks
from torch_step import LOW_TYPES, Step

BATCHES = 8


def parse(description, modes, batch, add_sizes=None):
    """The flags of every peer; `modes` are those that this one has, the first by default; `add_sizes(parser)` adds its
    own."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--batch", "--batch-size", type=int, default=batch)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--ranks", type=int, default=1,
                        help="CPU: processes that train together by DistributedDataParallel over gloo; --batch is theirs "
                             "together, --threads those of each")
    parser.add_argument("--warmup", type=int, default=50)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0,
                        help="CPU: fewer steps where they take longer than this, but three; 0: no limit")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cuda" if torch.cuda.is_available() else "cpu")
    captured = ["captured"] if "graph" in modes else []
    parser.add_argument("--mode", choices=modes + captured, default=modes[0],
                        help="graph or captured: the whole step captured by hand as one CUDA graph; compile: "
                             "torch.compile; max-autotune: torch.compile in that mode")
    parser.add_argument("--amp-level", choices=["O0", "O1", "O2", "O3"], default="O0",
                        help="O1, O2: autocast, with a GradScaler for f16; O3: the network itself in the low type")
    parser.add_argument("--dtype", choices=list(LOW_TYPES), default="f16")
    parser.add_argument("--amp", choices=["none", *LOW_TYPES], help="short for --amp-level=O2 --dtype=...; none: O0")
    parser.add_argument("--allow-tf32", action="store_true")
    parser.add_argument("--json", help="a file for the result")
    parser.add_argument("--weights", help="safetensors to begin from, with mpc's paths and PyTorch's names")
    parser.add_argument("--data", help="safetensors of batches; left out: made-up ones")
    if add_sizes is not None:
        add_sizes(parser)
    arguments = parser.parse_args()
    if arguments.mode == "captured":
        arguments.mode = "graph"
    if arguments.amp is not None:
        arguments.amp_level = "O0" if arguments.amp == "none" else "O2"
        arguments.dtype = arguments.dtype if arguments.amp == "none" else arguments.amp
    if arguments.device == "cuda" and not torch.cuda.is_available():
        sys.exit("torch: --device=cuda: PyTorch sees no CUDA device")
    if arguments.mode == "graph" and arguments.device != "cuda":
        sys.exit("torch: --mode=graph and --device=" + arguments.device + " contradict each other: graphs are CUDA's")
    if arguments.ranks > 1 and (arguments.device != "cpu" or arguments.mode != "eager"):
        sys.exit("torch: --ranks is of --device=cpu and --mode=eager")
    if arguments.batch % arguments.ranks != 0:
        sys.exit(f"torch: --ranks={arguments.ranks} does not divide --batch={arguments.batch}")
    if arguments.mode in ("compile", "max-autotune"):
        importlib.import_module("torch._inductor.compile_fx")
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = arguments.allow_tf32
    torch.backends.cudnn.allow_tf32 = arguments.allow_tf32
    torch.backends.cudnn.benchmark = True
    return arguments


class Resident:
    """Growth of the process's resident memory since PyTorch was imported and the batches were made: everything that
    training takes (weights, gradients, optimizer, activations, caches, compiled code)."""

    def __init__(self):
        self.known = resident_memory.forget_peak()
        self.base = resident_memory.resident_bytes()
        self.first_step = 0

    def end_first_step(self):
        self.first_step = resident_memory.peak_bytes() - self.base
        self.known = resident_memory.forget_peak() and self.known

    def result(self):
        """The steps after the first one, and the whole run with compiling."""
        if not self.known:
            return {}
        steps = max(0, resident_memory.peak_bytes() - self.base)
        return {"steps_resident_bytes": steps, "resident_bytes": max(steps, self.first_step)}


def time_on_cpu(arguments, step, batches, first):
    """Seconds and losses, one a measured step, and the steps before those. `first` is what the first step took."""
    limit = arguments.seconds if arguments.seconds > 0 else float("inf")

    def run(before, count, limit, least, each):
        """At most `count` steps behind the first `before` ones; each takes the batch of its number. Ranks, which must
        run equally many, agree on what fits if a step takes `each`."""
        if arguments.ranks > 1:
            count = torch_ranks.from_first(min(count, max(least, int(min(limit / each, count)))))
            limit = float("inf")
        seconds, losses = [], []
        start = time.perf_counter()
        for index in range(count):
            if index >= least and time.perf_counter() - start > limit:
                break
            begin = time.perf_counter()
            step.run(batches[(before + index) % len(batches)])
            seconds.append(time.perf_counter() - begin)
            losses.append(float(step.loss))
        return seconds, losses

    # A third of the time is for warming up, as in mpc-bench.
    warm, _ = run(1, arguments.warmup, limit / 3, 1, first)
    before = 1 + len(warm)
    return *run(before, arguments.steps, limit, 3, sorted(warm)[len(warm) // 2] if warm else first), before


def time_on_cuda(arguments, step, batches, _):
    for index in range(arguments.warmup):
        step.run(batches[index % len(batches)])
    torch.cuda.synchronize()
    events = [torch.cuda.Event(enable_timing=True) for _ in range(arguments.steps + 1)]
    events[0].record()
    for index in range(arguments.steps):
        step.run(batches[index % len(batches)])
        events[index + 1].record()
    torch.cuda.synchronize()
    return [1e-3 * events[i].elapsed_time(events[i + 1]) for i in range(arguments.steps)], [], 0


def run(arguments, make_network, make_batch, loss_of, make_optimizer, settings, place_batch=None):
    """`make_network()` gives the network; `make_batch()` the host tensors of a batch; `make_optimizer(parameters,
    options)` the optimizer; `place_batch(batch)` brings a batch into the network's layout."""
    on_cuda = arguments.device == "cuda"
    batches = torch_data.read_batches(arguments.data) if arguments.data else [make_batch() for _ in range(BATCHES)]
    torch_ranks.join(arguments)
    batches = torch_ranks.rows_of(arguments, batches)
    if place_batch is not None:
        batches = [place_batch(batch) for batch in batches]
    if arguments.amp_level == "O3":
        low = LOW_TYPES[arguments.dtype]
        batches = [[column.to(low) if column.is_floating_point() else column for column in batch]
                   for batch in batches]
    if on_cuda:
        batches = [[column.pin_memory() for column in batch] for batch in batches]

    resident = Resident()
    network = make_network()
    if arguments.weights:
        torch_data.load_weights(network, arguments.weights)
    network = network.to(arguments.device)
    if arguments.amp_level == "O3":
        network = network.to(LOW_TYPES[arguments.dtype])
    # Fused kernels: on a GPU they take the scaler's flag on the device, so that no step waits for the host.
    optimizer = make_optimizer(network.parameters(), {"fused": True})
    settings = [*settings, "fused optimizer", *torch_ranks.settings(arguments)]
    step = Step(arguments, torch_ranks.wrapped(arguments, network), loss_of, optimizer, settings)

    begin = time.perf_counter()
    step.run(batches[0])
    first_loss = float(step.loss)
    first = time.perf_counter() - begin
    resident.end_first_step()
    seconds, losses, before = (time_on_cuda if on_cuda else time_on_cpu)(arguments, step, batches, first)
    report(arguments, {"step_seconds": seconds, "first_step_seconds": first,
                       "peak_bytes": torch.cuda.max_memory_allocated() if on_cuda else 0,
                       **({} if on_cuda else resident.result()),
                       "version": "PyTorch " + torch.__version__, "settings": ", ".join(step.settings),
                       "threads": torch.get_num_threads(), "first_loss": first_loss,
                       "final_loss": float(step.loss), "losses": losses, "steps_before": before})
    torch_ranks.leave(arguments)


def report(arguments, result):
    if arguments.json is None:
        print(json.dumps(result))
        return
    with open(arguments.json, "w", encoding="utf-8") as file:
        json.dump(result, file)
    seconds = sorted(result["step_seconds"])
    low, median, high = (seconds[round(share * (len(seconds) - 1))] for share in (0.05, 0.5, 0.95))
    peak = result["peak_bytes"] or result.get("steps_resident_bytes", 0)
    print(f"{arguments.batch / median:.1f} samples/s; ms a step: median {1e3 * median:.3f}, p5 {1e3 * low:.3f}, "
          f"p95 {1e3 * high:.3f}; peak {peak / 2**20:.0f} MiB; first step "
          f"{result['first_step_seconds']:.1f} s; {result['version']}, {result['settings']}")
