// RUN: mpc-opt %s --mpc-autodiff | FileCheck %s

// The derivatives of a transposed convolution are a convolution and its weight's derivative, in the other direction.
// CHECK-LABEL: func @transposed
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x4x3x3xf32>, %[[W:[a-z0-9]+]]: tensor<4x6x2x2xf32>
// CHECK-DAG: mpc.conv2d %[[DY:.*]], %[[W]] {{.*}}strides = [2, 2]} backward : (tensor<2x6x6x6xf32>, tensor<4x6x2x2xf32>) -> tensor<2x4x3x3xf32>
// CHECK-DAG: mpc.conv2d_grad_weight %{{.*}}, %[[X]] {{.*}}weight_shape = [4, 6, 2, 2]} backward : (tensor<2x6x6x6xf32>, tensor<2x4x3x3xf32>) -> tensor<4x6x2x2xf32>
// CHECK-DAG: mpc.reduce_sum %{{.*}} {axes = [0, 2, 3]} backward : (tensor<2x6x6x6xf32>) -> tensor<6xf32>
func.func private @transposed_loss(%x: tensor<2x4x3x3xf32>, %w: tensor<4x6x2x2xf32>, %b: tensor<6xf32>) -> tensor<f32> {
  %y = mpc.conv_transpose2d %x, %w, %b {strides = [2, 2]} : (tensor<2x4x3x3xf32>, tensor<4x6x2x2xf32>, tensor<6xf32>) -> tensor<2x6x6x6xf32>
  %r = mpc.reduce_sum %y {axes = []} : (tensor<2x6x6x6xf32>) -> tensor<f32>
  return %r : tensor<f32>
}
func.func @transposed(%x: tensor<2x4x3x3xf32>, %w: tensor<4x6x2x2xf32>, %b: tensor<6xf32>, %seed: tensor<f32>) -> (tensor<2x4x3x3xf32>, tensor<4x6x2x2xf32>, tensor<6xf32>) {
  %l, %dx, %dw, %db = mpc.value_and_grad @transposed_loss(%x, %w, %b) seed(%seed) {wrt = array<i64: 0, 1, 2>}
      : (tensor<2x4x3x3xf32>, tensor<4x6x2x2xf32>, tensor<6xf32>, tensor<f32>) -> (tensor<f32>, tensor<2x4x3x3xf32>, tensor<4x6x2x2xf32>, tensor<6xf32>)
  return %dx, %dw, %db : tensor<2x4x3x3xf32>, tensor<4x6x2x2xf32>, tensor<6xf32>
}

// A state that takes no part in the loss has a zero cotangent.
// CHECK-LABEL: func @cell_state_only
// CHECK: %[[H:.*]], %[[C:.*]], %[[A:.*]] = mpc.lstm_cell
// CHECK: %[[Z:.*]] = mpc.constant {{{.*}}value = dense<0.000000e+00> : tensor<2x2xf16>}
// CHECK: mpc.lstm_cell_grad %[[Z]], %{{.*}}, %[[A]], %{{.*}}, %[[C]]
func.func private @cell_loss(%x: tensor<2x8xf16>, %c: tensor<2x2xf32>) -> tensor<f32> {
  %h, %n, %a = mpc.lstm_cell %x, %c : (tensor<2x8xf16>, tensor<2x2xf32>) -> (tensor<2x2xf16>, tensor<2x2xf32>, tensor<2x8xf32>)
  %r = mpc.reduce_sum %n {axes = []} : (tensor<2x2xf32>) -> tensor<f32>
  return %r : tensor<f32>
}
func.func @cell_state_only(%x: tensor<2x8xf16>, %c: tensor<2x2xf32>, %seed: tensor<f32>) -> tensor<2x8xf16> {
  %l, %dx = mpc.value_and_grad @cell_loss(%x, %c) seed(%seed) {wrt = array<i64: 0>} : (tensor<2x8xf16>, tensor<2x2xf32>, tensor<f32>) -> (tensor<f32>, tensor<2x8xf16>)
  return %dx : tensor<2x8xf16>
}

// Activations that the loss reads have cotangents, and the states, which it does not read, have none.
// CHECK-LABEL: func @activations
// CHECK: %{{.*}}, %{{.*}}, %[[A:.*]] = mpc.lstm_cell
// CHECK-NOT: mpc.lstm_cell_grad
// CHECK: %[[D:.*]]:4 = mpc.split %{{.*}} {axis = 1, sizes = [2, 2, 2, 2]} backward : (tensor<2x8xf32>)
// CHECK: %[[Y:.*]]:4 = mpc.split %[[A]] {axis = 1, sizes = [2, 2, 2, 2]} backward : (tensor<2x8xf32>)
// CHECK-DAG: %[[I:.*]] = mpc.sigmoid_grad %[[D]]#0, %[[Y]]#0 backward
// CHECK-DAG: %[[F:.*]] = mpc.sigmoid_grad %[[D]]#1, %[[Y]]#1 backward
// CHECK-DAG: %[[G:.*]] = mpc.tanh_grad %[[D]]#2, %[[Y]]#2 backward
// CHECK-DAG: %[[O:.*]] = mpc.sigmoid_grad %[[D]]#3, %[[Y]]#3 backward
// CHECK: %[[DX:.*]] = mpc.concat %[[I]], %[[F]], %[[G]], %[[O]] {axis = 1} backward
// CHECK: return %[[DX]]
func.func private @activations_loss(%x: tensor<2x8xf32>, %c: tensor<2x2xf32>) -> tensor<f32> {
  %h, %n, %a = mpc.lstm_cell %x, %c : (tensor<2x8xf32>, tensor<2x2xf32>) -> (tensor<2x2xf32>, tensor<2x2xf32>, tensor<2x8xf32>)
  %r = mpc.reduce_sum %a {axes = []} : (tensor<2x8xf32>) -> tensor<f32>
  return %r : tensor<f32>
}
func.func @activations(%x: tensor<2x8xf32>, %c: tensor<2x2xf32>, %seed: tensor<f32>) -> tensor<2x8xf32> {
  %l, %dx = mpc.value_and_grad @activations_loss(%x, %c) seed(%seed) {wrt = array<i64: 0>} : (tensor<2x8xf32>, tensor<2x2xf32>, tensor<f32>) -> (tensor<f32>, tensor<2x8xf32>)
  return %dx : tensor<2x8xf32>
}

// Statistics that the loss reads have cotangents, and the result of the norm, which it does not read, has none.
// CHECK-LABEL: func @deviations
// CHECK: %[[Y:.*]], %[[MEAN:.*]], %[[INVERSE:.*]] = mpc.layer_norm
// CHECK-NOT: mpc.layer_norm_grad
// CHECK: %[[LINES:.*]] = mpc.reshape %[[INVERSE]] {shape = [3, 1]} backward
// CHECK: %[[COUNT:.*]] = mpc.constant {{{.*}}value = dense<4.000000e+00> : tensor<f32>}
// CHECK: %[[DX:.*]] = mpc.div %{{.*}}, %[[COUNT]] backward
// CHECK: return %[[DX]]
func.func private @deviations_loss(%x: tensor<3x4xf32>, %g: tensor<4xf32>) -> tensor<f32> {
  %y, %m, %s = mpc.layer_norm %x, %g, %g : (tensor<3x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<3x4xf32>, tensor<3xf32>, tensor<3xf32>)
  %r = mpc.reduce_sum %s {axes = []} : (tensor<3xf32>) -> tensor<f32>
  return %r : tensor<f32>
}
func.func @deviations(%x: tensor<3x4xf32>, %g: tensor<4xf32>, %seed: tensor<f32>) -> tensor<3x4xf32> {
  %l, %dx = mpc.value_and_grad @deviations_loss(%x, %g) seed(%seed) {wrt = array<i64: 0>} : (tensor<3x4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<3x4xf32>)
  return %dx : tensor<3x4xf32>
}
