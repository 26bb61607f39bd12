// RUN: not mpc-opt %s --mpc-fold-activation=device=tpu 2>&1 | FileCheck %s

// CHECK: error: unknown device 'tpu' of mpc-fold-activation; choose cpu or cuda
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
