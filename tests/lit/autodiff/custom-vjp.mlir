// RUN: mpc-opt %s --mpc-autodiff --split-input-file | FileCheck %s
// RUN: mpc-opt %s --mpc-autodiff --mpc-autodiff --split-input-file | FileCheck %s

// The user's rule is called with inputs, outputs and cotangents, and nothing of the forward function is differentiated:
// mpc.argmax has no rule. Both functions are inlined; integer inputs have no cotangent.
// CHECK-NOT: func private
// CHECK-LABEL: func @step(
// CHECK-SAME: %[[X:.*]]: tensor<2x4xf32>, %[[I:.*]]: tensor<2xi32>, %[[S:.*]]: tensor<f32>)
// CHECK: %[[BEST:.*]] = mpc.argmax %[[X]]
// CHECK: %[[Y:.*]] = mpc.tanh %[[X]]
// CHECK: mpc.reduce_sum %[[Y]]
// CHECK: %[[DY:.*]] = mpc.broadcast_to %[[S]] {shape = [2, 4]} backward
// CHECK: %[[T:.*]] = mpc.mul %[[DY]], %[[Y]] backward :
// CHECK: %[[DX:.*]] = mpc.mul %[[T]], %[[X]] backward :
// CHECK: return %[[DX]], %[[BEST]]
func.func private @forward(%x: tensor<2x4xf32>, %i: tensor<2xi32>) -> (tensor<2x4xf32>, tensor<2xi32>) {
  %best = mpc.argmax %x {axis = 1} : (tensor<2x4xf32>) -> tensor<2xi32>
  %y = mpc.tanh %x : tensor<2x4xf32>
  return %y, %best : tensor<2x4xf32>, tensor<2xi32>
}
func.func private @rule(%x: tensor<2x4xf32>, %i: tensor<2xi32>, %y: tensor<2x4xf32>, %best: tensor<2xi32>,
                        %dy: tensor<2x4xf32>, %dbest: tensor<2xi32>) -> tensor<2x4xf32> {
  %t = mpc.mul %dy, %y : tensor<2x4xf32>
  %dx = mpc.mul %t, %x : tensor<2x4xf32>
  return %dx : tensor<2x4xf32>
}
func.func @step(%x: tensor<2x4xf32>, %i: tensor<2xi32>, %s: tensor<f32>) -> (tensor<2x4xf32>, tensor<2xi32>) {
  %y, %best = mpc.custom_vjp @forward(%x, %i) vjp @rule
      : (tensor<2x4xf32>, tensor<2xi32>) -> (tensor<2x4xf32>, tensor<2xi32>)
  %loss = mpc.reduce_sum %y {axes = []} : (tensor<2x4xf32>) -> tensor<f32>
  %dx = mpc.backward %loss wrt(%x) seed(%s) : (tensor<f32>, tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  return %dx, %best : tensor<2x4xf32>, tensor<2xi32>
}

// -----

// Inside a differentiated function, and where nothing is differentiated.
// CHECK-LABEL: func @gradient(
// CHECK-SAME: %[[X:.*]]: tensor<f32>, %[[S:.*]]: tensor<f32>)
// CHECK: %[[Y:.*]] = mpc.exp %[[X]]
// CHECK: %[[DX:.*]] = mpc.neg %[[S]] backward :
// CHECK: return %[[Y]], %[[DX]]
// CHECK-LABEL: func @predict(
// CHECK-NEXT: mpc.exp
// CHECK-NEXT: return
func.func private @exp(%x: tensor<f32>) -> tensor<f32> {
  %y = mpc.exp %x : tensor<f32>
  return %y : tensor<f32>
}
func.func private @minus(%x: tensor<f32>, %y: tensor<f32>, %dy: tensor<f32>) -> tensor<f32> {
  %dx = mpc.neg %dy : tensor<f32>
  return %dx : tensor<f32>
}
func.func private @forward(%x: tensor<f32>) -> tensor<f32> {
  %y = mpc.custom_vjp @exp(%x) vjp @minus : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
func.func @gradient(%x: tensor<f32>, %s: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  %y, %dx = mpc.value_and_grad @forward(%x) seed(%s) {wrt = array<i64: 0>}
      : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %y, %dx : tensor<f32>, tensor<f32>
}
func.func @predict(%x: tensor<f32>) -> tensor<f32> {
  %y = mpc.custom_vjp @exp(%x) vjp @minus : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
