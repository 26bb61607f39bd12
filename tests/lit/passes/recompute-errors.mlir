// RUN: not mpc-opt %s --mpc-recompute=candidates=-1 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not mpc-opt %s --mpc-recompute=candidates=many 2>&1 | FileCheck %s --check-prefix=WORD

// NEGATIVE: error: candidates of mpc-recompute must not be negative, got -1
// WORD: 'many' value invalid for
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
