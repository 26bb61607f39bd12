// RUN: mpc-opt %s --mpc-autodiff --split-input-file | FileCheck %s
// RUN: mpc-opt %s --mpc-autodiff --mpc-autodiff --split-input-file | FileCheck %s

#trunk = #mpc.scope<"net/trunk", network>

// Two losses share the trunk: its forward pass runs once, each loss walks it back by itself. What the walk creates
// carries the scope of the forward operation.
// CHECK-LABEL: func @two_losses(
// CHECK-SAME: %[[W:.*]]: tensor<4x4xf32>, %[[A:.*]]: tensor<4x4xf32>, %[[X:.*]]: tensor<2x4xf32>, %[[S:.*]]: tensor<f32>)
// CHECK: %[[H:.*]] = mpc.matmul %[[X]], %[[W]] in [[TRUNK:"[^"]*"]] :
// CHECK: %[[L0:.*]] = mpc.reduce_sum %[[H]]
// CHECK: %[[D0:.*]] = mpc.broadcast_to %[[S]] {shape = [2, 4]} backward
// CHECK: %[[G0:.*]] = mpc.matmul %[[X]], %[[D0]] {transpose_a = true} backward in [[TRUNK]] :
// CHECK: %[[Y:.*]] = mpc.matmul %[[H]], %[[A]] :
// CHECK: %[[L1:.*]] = mpc.reduce_sum %[[Y]]
// CHECK: %[[D1:.*]] = mpc.broadcast_to %[[S]] {shape = [2, 4]} backward
// CHECK: %[[DH:.*]] = mpc.matmul %[[D1]], %[[A]] {transpose_b = true} backward :
// CHECK: %[[GA:.*]] = mpc.matmul %[[H]], %[[D1]] {transpose_a = true} backward :
// CHECK: %[[G1:.*]] = mpc.matmul %[[X]], %[[DH]] {transpose_a = true} backward in [[TRUNK]] :
// CHECK-NOT: mpc.backward %
// CHECK: return %[[G0]], %[[G1]], %[[GA]]
func.func @two_losses(%w: tensor<4x4xf32>, %a: tensor<4x4xf32>, %x: tensor<2x4xf32>, %s: tensor<f32>)
    -> (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %h = mpc.matmul %x, %w in #trunk : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %l0 = mpc.reduce_sum %h {axes = []} : (tensor<2x4xf32>) -> tensor<f32>
  %g0 = mpc.backward %l0 wrt(%w) seed(%s) : (tensor<f32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x4xf32>
  %y = mpc.matmul %h, %a : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %l1 = mpc.reduce_sum %y {axes = []} : (tensor<2x4xf32>) -> tensor<f32>
  %g1, %ga = mpc.backward %l1 wrt(%w, %a) seed(%s)
      : (tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
  return %g0, %g1, %ga : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// By a value inside the function, once by itself and once on the way to what it is computed from: one sum serves both.
// CHECK-LABEL: func @by_activation(
// CHECK-SAME: %[[X:.*]]: tensor<4xf32>, %[[S:.*]]: tensor<f32>)
// CHECK: %[[H:.*]] = mpc.tanh %[[X]]
// CHECK: %[[SUM:.*]] = mpc.sum_n
// CHECK-NOT: mpc.sum_n
// CHECK: %[[DX:.*]] = mpc.tanh_grad %[[SUM]], %[[H]] backward :
// CHECK: return %[[SUM]], %[[DX]]
func.func @by_activation(%x: tensor<4xf32>, %s: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %h = mpc.tanh %x : tensor<4xf32>
  %square = mpc.mul %h, %h : tensor<4xf32>
  %loss = mpc.reduce_sum %square {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %dh, %dx = mpc.backward %loss wrt(%h, %x) seed(%s)
      : (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %dh, %dx : tensor<4xf32>, tensor<4xf32>
}

// -----

// Calls before it are inlined; the derivative of a derivative differentiates what the inner one became.
// CHECK-NOT: func private @square
// CHECK-LABEL: func @second(
// CHECK-NOT: call
// CHECK-COUNT-2: mpc.sum_n
// CHECK-NEXT: return
func.func private @square(%x: tensor<f32>) -> tensor<f32> {
  %y = mpc.mul %x, %x : tensor<f32>
  return %y : tensor<f32>
}
func.func @second(%x: tensor<f32>, %s: tensor<f32>) -> tensor<f32> {
  %y = func.call @square(%x) : (tensor<f32>) -> tensor<f32>
  %dx = mpc.backward %y wrt(%x) seed(%s) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %ddx = mpc.backward %dx wrt(%x) seed(%s) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  return %ddx : tensor<f32>
}

// -----

// By a constant: what makes an input is not differentiated.
// CHECK-LABEL: func @by_constant(
// CHECK-SAME: %[[S:.*]]: tensor<f32>)
// CHECK: %[[W:.*]] = mpc.constant
// CHECK: %[[D:.*]] = mpc.broadcast_to %[[S]] {shape = [2]} backward
// CHECK: %[[DW:.*]] = mpc.square_grad %[[D]], %[[W]] backward :
// CHECK: return %[[DW]]
func.func @by_constant(%s: tensor<f32>) -> tensor<2xf32> {
  %w = mpc.constant {value = dense<[3.0, 4.0]> : tensor<2xf32>} : () -> tensor<2xf32>
  %y = mpc.square %w : tensor<2xf32>
  %loss = mpc.reduce_sum %y {axes = []} : (tensor<2xf32>) -> tensor<f32>
  %dw = mpc.backward %loss wrt(%w) seed(%s) : (tensor<f32>, tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  return %dw : tensor<2xf32>
}
