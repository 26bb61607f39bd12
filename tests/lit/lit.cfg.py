"""The lit suite: IR tests with mpc-opt and FileCheck."""
import os
import shutil

import lit.formats

config.name = "mpc"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = config.mpc_lit_output

config.environment["PATH"] = os.pathsep.join([config.mpc_tools, config.llvm_tools, config.environment["PATH"]])
config.substitutions.append(("%mpc-opt", os.path.join(config.mpc_tools, "mpc-opt")))
# Of its own environment lit hands on little: tools/planted_faults switches a fault on by this variable. Two faults are
# run at a time, and each has files of its own.
if "MPC_PLANTED_FAULT" in os.environ:
    config.environment["MPC_PLANTED_FAULT"] = os.environ["MPC_PLANTED_FAULT"]
    config.test_exec_root = os.path.join(config.mpc_lit_output, "fault" + os.environ["MPC_PLANTED_FAULT"])
# A target of a GPU needs the CUDA backend, no GPU.
if config.mpc_has_cuda in ("ON", "TRUE", "1"):
    config.available_features.add("cuda")
# oneDNN 2 has Winograd's algorithm, for processors with AVX-512 alone.
try:
    with open("/proc/cpuinfo", encoding="utf-8") as cpuinfo:
        if config.mpc_onednn_major == "2" and " avx512bw " in cpuinfo.read():
            config.available_features.add("winograd")
except OSError:
    pass
# Its assembler, where mpc looks for it.
ptxas = config.environment.get("MPC_PTXAS") or shutil.which("ptxas") or "/usr/local/cuda/bin/ptxas"
if os.access(ptxas, os.X_OK):
    config.available_features.add("ptxas")
