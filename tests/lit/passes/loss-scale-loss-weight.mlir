// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2" | FileCheck %s
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2" > %t.once && mpc-opt %t.once --mpc-loss-scale="mode=dynamic processes=2" | diff %t.once -
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2" --mpc-verify-loss-scale | FileCheck %s
// RUN: mpc-opt %s --mpc-loss-scale="processes=2 accumulation-steps=2 communication-dtype=bf16" | FileCheck %s --check-prefix=LOW
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" | FileCheck %s --check-prefix=ONE

func.func private @f(tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<f32>)

// The gradient times the share of elements that count is added, and the sum of these shares divides.
// CHECK-LABEL: func @train_step(
// CHECK: %[[G:.*]]:3 = mpc.value_and_grad @f(
// CHECK: %[[OWN:.*]] = mpc.mul_scalar %[[G]]#1 {value = 5.000000e-01
// CHECK: %[[SHARES:.*]] = mpc.all_reduce %[[OWN]] {processes = 2
// CHECK: %[[NOTHING:.*]] = mpc.equal %[[SHARES]],
// CHECK: %[[DIVISOR:.*]] = mpc.select %[[NOTHING]], %{{.*}}, %[[SHARES]]
// CHECK: %[[U:.*]] = mpc.unscale %[[G]]#2,
// CHECK: %[[WEIGHED:.*]] = mpc.mul %[[U]], %[[G]]#1
// CHECK: %[[SHARE:.*]] = mpc.mul_scalar %[[WEIGHED]] {value = 5.000000e-01
// CHECK: %[[SUM:.*]] = mpc.all_reduce %[[SHARE]] {processes = 2
// CHECK: %[[MEAN:.*]] = mpc.div %[[SUM]], %[[DIVISOR]]
// CHECK: mpc.momentum %{{.*}}, %{{.*}}, %[[MEAN]],

// Gradients are added in the low type, and shares in f32.
// LOW-LABEL: func @train_step(
// LOW-SAME: %[[SHARES:[a-z0-9]+]]: tensor<f32> {mpc.state = #mpc.state<accumulator, "accumulator.loss_weight">}
// LOW: %[[G:.*]]:3 = mpc.value_and_grad @f(
// LOW: %[[OWN:.*]] = mpc.accumulate_gradient %[[SHARES]], %[[G]]#1, %{{.*}} {count = 4
// LOW-NEXT: mpc.all_reduce %[[OWN]] {processes = 2{{.*}} : tensor<f32>
// LOW: %[[WEIGHED:.*]] = mpc.mul %[[G]]#2, %[[G]]#1
// LOW: mpc.all_reduce %{{.*}} : tensor<4xbf16>
// LOW: mpc.div

// Alone, a micro-batch divides by its own elements.
// ONE-LABEL: func @train_step(
// ONE-NOT: mpc.mul
// ONE-NOT: mpc.div
func.func @train_step(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity", of = "w">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<f32> {mpc.state = #mpc.state<output, "loss">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
        tensor<f32> {mpc.state = #mpc.state<record, "loss_weight">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %weight, %dw = mpc.value_and_grad @f(%w, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<4xf32>)
  %w1, %v1 = mpc.momentum %w, %v, %dw, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss, %w1, %v1, %weight : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>
}
