// RUN: mpc-opt %s --mpc-autodiff | FileCheck %s
// RUN: mpc-opt %s --mpc-autodiff --mpc-autodiff | FileCheck %s

// The derivative of top_k_grad gathers the cotangents of the elements that the indices name.
// CHECK-LABEL: func @line(
// CHECK-SAME: %[[DY:.*]]: tensor<3xf32>, %[[I:.*]]: tensor<3xi32>, %[[C:.*]]: tensor<5xf32>)
// CHECK: mpc.top_k_grad %[[DY]], %[[I]] {extent = 5}
// CHECK: %[[D:.*]] = mpc.gather %[[C]], %[[I]] backward : (tensor<5xf32>, tensor<3xi32>) -> tensor<3xf32>
// CHECK: return %[[D]]
func.func @line(%dy: tensor<3xf32>, %i: tensor<3xi32>, %c: tensor<5xf32>) -> tensor<3xf32> {
  %dx = mpc.top_k_grad %dy, %i {extent = 5} : (tensor<3xf32>, tensor<3xi32>) -> tensor<5xf32>
  %d = mpc.backward %dx wrt(%dy) seed(%c) : (tensor<5xf32>, tensor<3xf32>, tensor<5xf32>) -> tensor<3xf32>
  return %d : tensor<3xf32>
}

// An element's place counts the elements in front of it. The cotangent of a low operand is low.
// CHECK-LABEL: func @lines(
// CHECK-SAME: %[[DY:.*]]: tensor<2x3x4xf16>, %[[I:.*]]: tensor<2x3x4xi32>, %[[C:.*]]: tensor<2x5x4xf32>)
// CHECK: %[[FLAT:.*]] = mpc.reshape %[[C]] {shape = [40]} backward :
// CHECK: %[[FOUR:.*]] = mpc.constant {{.*}}dense<4> : tensor<i32>
// CHECK: %[[ALONG:.*]] = mpc.int_mul %[[I]], %[[FOUR]] backward :
// CHECK: %[[BLOCKS:.*]] = mpc.iota {axis = 0, shape = [2, 1, 1], step = 20} backward : () -> tensor<2x1x1xi32>
// CHECK: %[[IN_BLOCK:.*]] = mpc.int_add %[[ALONG]], %[[BLOCKS]] backward :
// CHECK: %[[COLUMNS:.*]] = mpc.iota {axis = 2, shape = [1, 1, 4]} backward : () -> tensor<1x1x4xi32>
// CHECK: %[[PLACES:.*]] = mpc.int_add %[[IN_BLOCK]], %[[COLUMNS]] backward :
// CHECK: %[[D:.*]] = mpc.gather %[[FLAT]], %[[PLACES]] backward : (tensor<40xf32>, tensor<2x3x4xi32>) -> tensor<2x3x4xf32>
// CHECK: %[[LOW:.*]] = mpc.cast %[[D]] backward : (tensor<2x3x4xf32>) -> tensor<2x3x4xf16>
// CHECK: return %[[LOW]]
func.func @lines(%dy: tensor<2x3x4xf16>, %i: tensor<2x3x4xi32>, %c: tensor<2x5x4xf32>) -> tensor<2x3x4xf16> {
  %dx = mpc.top_k_grad %dy, %i {axis = 1, extent = 5} : (tensor<2x3x4xf16>, tensor<2x3x4xi32>) -> tensor<2x5x4xf32>
  %d = mpc.backward %dx wrt(%dy) seed(%c)
      : (tensor<2x5x4xf32>, tensor<2x3x4xf16>, tensor<2x5x4xf32>) -> tensor<2x3x4xf16>
  return %d : tensor<2x3x4xf16>
}

// Places beyond 2^31 - 1 are i64.
// CHECK-LABEL: func @many(
// CHECK: %[[WIDE:.*]] = mpc.cast %{{.*}} backward : (tensor<3x4xi32>) -> tensor<3x4xi64>
// CHECK: %[[ROWS:.*]] = mpc.iota {axis = 0, shape = [3, 1], step = 1073741824} backward : () -> tensor<3x1xi64>
// CHECK: %[[PLACES:.*]] = mpc.int_add %[[WIDE]], %[[ROWS]] backward :
// CHECK: mpc.gather %{{.*}}, %[[PLACES]] backward : (tensor<3221225472xf32>, tensor<3x4xi64>) -> tensor<3x4xf32>
func.func @many(%dy: tensor<3x4xf32>, %i: tensor<3x4xi32>, %c: tensor<3x1073741824xf32>) -> tensor<3x4xf32> {
  %dx = mpc.top_k_grad %dy, %i {extent = 1073741824} : (tensor<3x4xf32>, tensor<3x4xi32>) -> tensor<3x1073741824xf32>
  %d = mpc.backward %dx wrt(%dy) seed(%c)
      : (tensor<3x1073741824xf32>, tensor<3x4xf32>, tensor<3x1073741824xf32>) -> tensor<3x4xf32>
  return %d : tensor<3x4xf32>
}
