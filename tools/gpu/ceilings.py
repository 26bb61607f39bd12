#!/usr/bin/env python3
"""What this GPU reaches through PyTorch: copy bandwidth beyond the caches, and matrix products on random data. The
fractions in docs/benchmarks are of these."""

import json

import torch


def median_seconds(function, repetitions=10, warmup=3):
    times = []
    for repetition in range(warmup + repetitions):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        function(repetition)
        end.record()
        end.synchronize()
        if repetition >= warmup:
            times.append(begin.elapsed_time(end) * 1e-3)
    return sorted(times)[len(times) // 2]


def main():
    elements = 1 << 28  # 1 GiB of f32: far beyond the cache
    sources = [torch.rand(elements, device="cuda") for _ in range(2)]
    target = torch.empty(elements, device="cuda")
    copy = median_seconds(lambda i: target.copy_(sources[i % 2]))
    results = {"copy_bytes_per_second": 2 * 4 * elements / copy}
    for name, dtype in (("f16", torch.float16), ("bf16", torch.bfloat16), ("f32", torch.float32)):
        size = 8192
        a, b = (torch.randn(size, size, device="cuda", dtype=dtype) for _ in range(2))
        torch.backends.cuda.matmul.allow_tf32 = False
        results[f"matmul_{name}_flops_per_second"] = 2 * size**3 / median_seconds(lambda _: torch.mm(a, b))
    results["device"] = torch.cuda.get_device_name()
    results["torch"] = torch.__version__
    print(json.dumps(results))


if __name__ == "__main__":
    main()
