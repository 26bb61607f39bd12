// RUN: mpc-opt %s --mpc-amp="level=O2" | FileCheck %s

// Without any scope, every function but a training step is a network.
// CHECK-LABEL: func @forward
// CHECK: mpc.matmul {{.*}}, level "O2">{{.*}} -> tensor<2x3xf16>
// CHECK: %[[Y:.*]] = mpc.cast {{.*}} -> tensor<2x3xf32>
// CHECK: return %[[Y]]
func.func @forward(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>) -> tensor<2x3xf32> {
  %y = mpc.matmul %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return %y : tensor<2x3xf32>
}
