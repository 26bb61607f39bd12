// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" > %t.once && mpc-opt %t.once --mpc-loss-scale="mode=dynamic" | diff %t.once -
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic accumulation-steps=2" | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" --mpc-autodiff | FileCheck %s --check-prefix=GRAD

// A gradient by a value of the batch is a value as any other, with a seed of its own. The scale seeds the loss that is
// made of it. What micro-steps add is that loss's gradient.
// CHECK-LABEL: func @penalty(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x3xf32>
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x4xf32>
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}
// CHECK: %[[HALF:.*]] = mpc.constant {value = dense<5.000000e-01> : tensor<f32>}
// CHECK: %[[DX:.*]] = mpc.backward %{{.*}} wrt(%[[X]]) seed(%[[HALF]]) {by_values = true}
// CHECK-NOT: mpc.unscale
// CHECK: %[[P:.*]] = mpc.reduce_sum
// CHECK: %[[DW:.*]] = mpc.backward %[[P]] wrt(%[[W]]) seed(%[[SCALE]]) :
// CHECK: mpc.all_finite %[[SCALE]], %[[P]], %[[DW]]
// ONE-NOT: mpc.accumulate_gradient
// TWO-COUNT-1: mpc.accumulate_gradient
// TWO-NOT: mpc.accumulate_gradient
// GRAD-LABEL: func @penalty(
// GRAD-NOT: mpc.backward %
func.func @penalty(
    %w: tensor<4x3xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4x3xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<2x4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<f32> {mpc.state = #mpc.state<output, "loss">},
        tensor<4x3xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4x3xf32> {mpc.state = #mpc.state<slot, "w.velocity">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %half = mpc.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %y = mpc.matmul %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %square = mpc.square %y : tensor<2x3xf32>
  %sum = mpc.reduce_sum %square {axes = []} : (tensor<2x3xf32>) -> tensor<f32>
  %dx = mpc.backward %sum wrt(%x) seed(%half) {by_values = true}
      : (tensor<f32>, tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  %length = mpc.mul %dx, %dx : tensor<2x4xf32>
  %penalty = mpc.reduce_sum %length {axes = []} : (tensor<2x4xf32>) -> tensor<f32>
  %dw = mpc.backward %penalty wrt(%w) seed(%one)
      : (tensor<f32>, tensor<4x3xf32>, tensor<f32>) -> tensor<4x3xf32>
  %w2, %v2 = mpc.momentum %w, %v, %dw, %lr
      : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return %penalty, %w2, %v2 : tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>
}

// A function that asks for nothing else has no updates to guard.
// CHECK-LABEL: func @prediction(
// CHECK-NOT: scaler
// CHECK: return
func.func @prediction(%x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">}) -> tensor<4xf32> {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %y = mpc.tanh %x : tensor<4xf32>
  %sum = mpc.reduce_sum %y {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %dx = mpc.backward %sum wrt(%x) seed(%one) {by_values = true}
      : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %dx : tensor<4xf32>
}
