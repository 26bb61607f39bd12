// RUN: mpc-opt %s --mpc-fusion | FileCheck %s
// RUN: mpc-opt %s --mpc-fusion > %t.once && mpc-opt %t.once --mpc-fusion | diff %t.once -

// Statistics and results take two sweeps: the sum of four tensors would be read for each.
// CHECK-LABEL: func @two_sweeps(
// CHECK-NEXT: %[[S:.*]] = mpc.sum_n
// CHECK-NEXT: mpc.fusion(%[[S]],
// CHECK: left_out = ["sum_n: the region would move 524288 bytes more"]
func.func @two_sweeps(%g: tensor<2048xf32>, %x: tensor<64x2048xf32>, %y: tensor<64x2048xf32>, %z: tensor<64x2048xf32>, %u: tensor<64x2048xf32>)
    -> (tensor<2048xf32>, tensor<64x2048xf32>) {
  %s = mpc.sum_n %x, %y, %z, %u
      : tensor<64x2048xf32>
  %n, %mean, %variance, %i = mpc.batch_norm_train %s, %g, %g
      : (tensor<64x2048xf32>, tensor<2048xf32>, tensor<2048xf32>)
      -> (tensor<64x2048xf32>, tensor<2048xf32>, tensor<2048xf32>, tensor<2048xf32>)
  return %mean, %n : tensor<2048xf32>, tensor<64x2048xf32>
}
