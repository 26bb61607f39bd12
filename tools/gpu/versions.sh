#!/usr/bin/env bash
# Everything that a measured number depends on. Fails where there is no GPU.
set -uo pipefail
date --iso-8601=seconds
uname -sr
status=0
nvcc --version 2> /dev/null | tail -2
"${PYTHON:-python3}" -c '
import torch
print("torch", torch.__version__, "cudnn", torch.backends.cudnn.version())' || status=1
cat VERSION
nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,clocks.max.memory,power.limit \
  --format=csv,noheader || status=1
exit "$status"
