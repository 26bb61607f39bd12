// RUN: not mpc-opt %s --mpc-amp="level=O1" 2>&1 | FileCheck %s --check-prefix=O1
// RUN: not mpc-opt %s --mpc-amp="level=auto" 2>&1 | FileCheck %s --check-prefix=AUTO
// RUN: not mpc-opt %s --mpc-amp="level=02" 2>&1 | FileCheck %s --check-prefix=ZERO
// RUN: not mpc-opt %s --mpc-amp="level=o4" 2>&1 | FileCheck %s --check-prefix=O4
// RUN: not mpc-opt %s --mpc-amp="level=O2 dtype=fp16" 2>&1 | FileCheck %s --check-prefix=DTYPE
// RUN: not mpc-opt %s --mpc-amp="level=O2 keep-batchnorm-fp32=maybe" 2>&1 | FileCheck %s --check-prefix=KEEP

// O1: error: level 'O1' is not in this version; choose O0, O2 or O3
// AUTO: error: level 'auto' is not in this version; choose O0, O2 or O3
// ZERO: error: unknown level '02'; valid levels are O0, O2 and O3 (the letter O, not the digit zero)
// O4: error: unknown level 'o4'; valid levels are O0, O2 and O3{{$}}
// DTYPE: error: unknown low type 'fp16'; choose f16 or bf16
// KEEP: error: unknown keep-batchnorm-fp32 'maybe'; choose true or false, or leave it out
module {}
