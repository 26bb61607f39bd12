"""One training step of a PyTorch network."""

import contextlib

import torch

LOW_TYPES = {"f16": torch.float16, "bf16": torch.bfloat16}


class Step:
    """Forward, backward and update on a batch that lies in fixed tensors."""

    def __init__(self, arguments, network, loss_of, optimizer, settings):
        self.arguments = arguments
        self.device = arguments.device
        self.low = LOW_TYPES[arguments.dtype]
        self.autocast = arguments.amp_level in ("O1", "O2")
        self.scaler = torch.amp.GradScaler(self.device, enabled=self.autocast and arguments.dtype == "f16")
        self.network = network
        self.loss_of = loss_of
        self.forward = self.eager_forward
        if arguments.mode == "compile":
            self.forward = torch.compile(self.eager_forward)
        elif arguments.mode == "max-autotune":
            self.forward = torch.compile(self.eager_forward, mode="max-autotune")
        self.optimizer = optimizer
        self.graph = None
        self.batch = None
        self.loss = None
        precision = "f32" if arguments.amp_level == "O0" else arguments.dtype
        if self.autocast:
            precision = "autocast " + precision + (" with GradScaler" if self.scaler.is_enabled() else "")
        self.settings = [arguments.mode, precision, *settings]
        if self.device == "cuda":
            self.settings.append("TF32 " + ("on" if arguments.allow_tf32 else "off"))
        self.settings.append("not deterministic")

    def eager_forward(self, inputs, labels):
        precision = torch.autocast(self.device, dtype=self.low) if self.autocast else contextlib.nullcontext()
        with precision:
            output = self.network(inputs)
        return self.loss_of(output, labels)

    def compute(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = self.forward(*self.batch)
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
