// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic accumulation-steps=2 communication-dtype=f16" | FileCheck %s
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic accumulation-steps=2 communication-dtype=f16" --mpc-verify-loss-scale | FileCheck %s
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic accumulation-steps=2 processes=2 communication-dtype=f16" | FileCheck %s --check-prefix=LAST
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic accumulation-steps=2 processes=2 communication-dtype=f16 last-micro-step=false" | FileCheck %s --check-prefix=BEFORE
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic accumulation-steps=2 processes=2 gradients-mean=false" | FileCheck %s --check-prefix=MEANS

func.func private @f(tensor<4xf32>, tensor<4xf32>) -> tensor<f32>

// Each share and each sum is rounded while it is scaled. A sum that is not finite skips the update in the last
// micro-step.
// CHECK-LABEL: func @train_step(
// CHECK: %[[IS_LAST:.*]] = mpc.equal %{{.*}}, %{{.*}} :
// CHECK: %[[G:.*]]:2 = mpc.value_and_grad @f
// CHECK: %[[SHARE:.*]] = mpc.mul_scalar %[[G]]#1 {value = 5.000000e-01
// CHECK-NEXT: %[[LOW:.*]] = mpc.cast %[[SHARE]] : (tensor<4xf32>) -> tensor<4xf16>
// CHECK-NEXT: %[[ROUNDED:.*]] = mpc.cast %[[LOW]] : (tensor<4xf16>) -> tensor<4xf32>
// CHECK-NEXT: %[[TERM:.*]] = mpc.mul_scalar %[[ROUNDED]] {value = 2.0
// CHECK-NEXT: %[[SUM:.*]] = mpc.accumulate_gradient %{{.*}}, %[[TERM]], %{{.*}} {count = 2
// CHECK-NEXT: %[[LOW_SUM:.*]] = mpc.cast %[[SUM]] : (tensor<4xf32>) -> tensor<4xf16>
// CHECK-NEXT: %[[MEAN:.*]] = mpc.cast %[[LOW_SUM]] : (tensor<4xf16>) -> tensor<4xf32>
// CHECK-NEXT: mpc.unscale %[[MEAN]], %[[SCALE:.*]] :
// CHECK: %{{.*}}, %[[BAD:.*]] = mpc.all_finite %[[SCALE]], %{{.*}}, %[[MEAN]] :
// CHECK: %[[FOUND:.*]] = mpc.select %{{.*}}, %[[BAD]], %{{.*}} :
// CHECK: mpc.merge_checks %{{.*}}, %[[FOUND]]

// LAST-LABEL: func @train_step(
// LAST: mpc.mul_scalar %{{.*}} {value = 2.500000e-01
// LAST: %[[SUM:.*]] = mpc.accumulate_gradient {{.*}} {count = 4
// LAST: mpc.all_reduce %{{.*}} : tensor<4xf16>
// LAST: mpc.merge_checks
// LAST: mpc.update_loss_scale

// BEFORE-LABEL: func @train_step(
// BEFORE: mpc.accumulate_gradient {{.*}} {count = 4
// BEFORE-NOT: mpc.all_reduce

// The means of both processes are added.
// MEANS-LABEL: func @train_step(
// MEANS: %[[SUM:.*]] = mpc.accumulate_gradient {{.*}} {count = 2
// MEANS-NEXT: mpc.all_reduce %[[SUM]] {{.*}} : tensor<4xf32>
func.func @train_step(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity", of = "w">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<f32> {mpc.state = #mpc.state<output, "loss">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dw = mpc.value_and_grad @f(%w, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %w1, %v1 = mpc.momentum %w, %v, %dw, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss, %w1, %v1 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
