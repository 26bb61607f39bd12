"""What the PyTorch peers of mpc-bench share: arguments, precision, timing, weights.

A peer gives a network, its batches and an optimizer; `run` times whole training steps, the copy of each batch from
pinned host memory included, and prints one JSON object: step_seconds (one a measured step), first_step_seconds
(compiling and capturing included), peak_bytes (CUDA), version, settings, threads, final_loss. With --json the object
goes to a file and a line of percentiles is printed. PyTorch is needed for these scripts only; nothing in mpc's build or
tests uses it.
"""

import argparse
import contextlib
import json
import struct
import sys
import time

import torch

BATCHES = 8
LOW_TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}
# How safetensors names element types.
STORED_TYPES = {"F32": torch.float32, "F16": torch.float16, "BF16": torch.bfloat16, "I32": torch.int32,
                "I64": torch.int64}


def parse(description, modes, batch):
    """The flags of every peer; `modes` are those that this one has, the first by default."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--batch", "--batch-size", type=int, default=batch)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--warmup", type=int, default=50)
    parser.add_argument("--steps", type=int, default=200)
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
    parser.add_argument("--image-size", type=int, default=224)
    parser.add_argument("--tokens", type=int, default=1024)
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
    torch.set_num_threads(arguments.threads)
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = arguments.allow_tf32
    torch.backends.cudnn.allow_tf32 = arguments.allow_tf32
    torch.backends.cudnn.benchmark = True
    return arguments


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


class Step:
    """One training step on a batch that lies in fixed tensors."""

    def __init__(self, arguments, network, loss_of, optimizer, settings):
        self.arguments = arguments
        self.device = arguments.device
        self.low = LOW_TYPES[arguments.dtype]
        self.autocast = arguments.amp_level in ("O1", "O2")
        self.scaler = torch.amp.GradScaler(self.device, enabled=self.autocast and arguments.dtype == "f16")
        self.network = network
        if arguments.mode == "compile":
            self.network = torch.compile(network)
        elif arguments.mode == "max-autotune":
            self.network = torch.compile(network, mode="max-autotune")
        self.loss_of = loss_of
        self.optimizer = optimizer
        self.graph = None
        self.batch = None
        self.loss = None
        precision = "f32" if arguments.amp_level == "O0" else arguments.dtype
        if self.autocast:
            precision = "autocast " + precision + (" with GradScaler" if self.scaler.is_enabled() else "")
        self.settings = ", ".join([arguments.mode, precision, settings,
                                   "TF32 " + ("on" if arguments.allow_tf32 else "off"), "not deterministic"])

    def compute(self):
        self.optimizer.zero_grad(set_to_none=True)
        precision = torch.autocast(self.device, dtype=self.low) if self.autocast else contextlib.nullcontext()
        with precision:
            output = self.network(self.batch[0])
        loss = self.loss_of(output, self.batch[1])
        self.scaler.scale(loss).backward()
        self.scaler.step(self.optimizer)
        self.scaler.update()
        return loss.detach()

    def take(self, batch):
        """Copies a batch to the device, into the same tensors each time."""
        if self.device == "cpu":
            self.batch = batch
        elif self.batch is None:
            self.batch = [column.to(self.device) for column in batch]
        else:
            for place, column in zip(self.batch, batch):
                place.copy_(column, non_blocking=True)

    def capture(self):
        # Warm-up on a stream of its own, as capture asks for.
        stream = torch.cuda.Stream()
        stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.compute()
        torch.cuda.current_stream().wait_stream(stream)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.loss = self.compute()

    def run(self, batch):
        self.take(batch)
        if self.arguments.mode == "graph":
            if self.graph is None:
                self.capture()
            self.graph.replay()
        else:
            self.loss = self.compute()


def run(arguments, network, make_batch, loss_of, make_optimizer, settings):
    """`make_batch()` gives the host tensors of a batch; `make_optimizer(parameters, fused)` the optimizer."""
    if arguments.weights:
        load_weights(network, arguments.weights)
    network = network.to(arguments.device)
    if arguments.amp_level == "O3":
        network = network.to(LOW_TYPES[arguments.dtype])
    on_cuda = arguments.device == "cuda"
    # Fused kernels take the scaler's flag on the device: no step waits for the host.
    optimizer = make_optimizer(network.parameters(), {"fused": True} if on_cuda else {})
    step = Step(arguments, network, loss_of, optimizer, settings + (" fused" if on_cuda else ""))
    batches = [make_batch() for _ in range(BATCHES)]
    if arguments.amp_level == "O3":
        batches = [[column.to(step.low) if column.is_floating_point() else column for column in batch]
                   for batch in batches]
    if on_cuda:
        batches = [[column.pin_memory() for column in batch] for batch in batches]

    begin = time.perf_counter()
    step.run(batches[0])
    if on_cuda:
        torch.cuda.synchronize()
    first = time.perf_counter() - begin
    for index in range(arguments.warmup):
        step.run(batches[index % BATCHES])
    if on_cuda:
        torch.cuda.synchronize()
        events = [torch.cuda.Event(enable_timing=True) for _ in range(arguments.steps + 1)]
        events[0].record()
        for index in range(arguments.steps):
            step.run(batches[index % BATCHES])
            events[index + 1].record()
        torch.cuda.synchronize()
        seconds = [1e-3 * events[i].elapsed_time(events[i + 1]) for i in range(arguments.steps)]
    else:
        seconds = []
        for index in range(arguments.steps):
            begin = time.perf_counter()
            step.run(batches[index % BATCHES])
            seconds.append(time.perf_counter() - begin)
    report(arguments, {"step_seconds": seconds, "first_step_seconds": first,
                       "peak_bytes": torch.cuda.max_memory_allocated() if on_cuda else 0,
                       "version": "PyTorch " + torch.__version__, "settings": step.settings,
                       "threads": torch.get_num_threads(), "final_loss": float(step.loss)})


def report(arguments, result):
    if arguments.json is None:
        print(json.dumps(result))
        return
    with open(arguments.json, "w", encoding="utf-8") as file:
        json.dump(result, file)
    seconds = sorted(result["step_seconds"])
    low, median, high = (seconds[round(share * (len(seconds) - 1))] for share in (0.05, 0.5, 0.95))
    print(f"{arguments.batch / median:.1f} samples/s; ms a step: median {1e3 * median:.3f}, p5 {1e3 * low:.3f}, "
          f"p95 {1e3 * high:.3f}; peak {result['peak_bytes'] / 2**20:.0f} MiB; first step "
          f"{result['first_step_seconds']:.1f} s; {result['version']}, {result['settings']}")
