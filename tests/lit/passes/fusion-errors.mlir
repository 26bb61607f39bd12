// RUN: not mpc-opt %S/Inputs/unknown-target.mlir --mpc-fusion 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: not mpc-opt %s --mpc-fusion=max-operations=0 2>&1 | FileCheck %s --check-prefix=LIMIT
// RUN: not mpc-opt %s --mpc-fusion=max-operations=none 2>&1 | FileCheck %s --check-prefix=WORD
// RUN: not mpc-opt %s --mpc-fusion=max-tensors=0 2>&1 | FileCheck %s --check-prefix=TENSORS

// DEVICE: error: unknown target 'tpu'; choose cpu or cuda
// LIMIT: error: max-operations of mpc-fusion must be at least 1, got 0
// TENSORS: error: max-tensors of mpc-fusion must be at least 1, got 0
// WORD: 'none' value invalid for uint argument
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
