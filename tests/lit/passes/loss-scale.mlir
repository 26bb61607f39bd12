// RUN: mpc-opt %s --mpc-loss-scale="mode=none" > %t.none && mpc-opt %s | diff %t.none -
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" | FileCheck %s
// RUN: mpc-opt %s --mpc-loss-scale="mode=static skip=false" | FileCheck %s --check-prefix=NOSKIP
// RUN: mpc-opt %s --mpc-loss-scale="mode=static skip=false unscale=false" | FileCheck %s --check-prefix=RAW
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" > %t.once && mpc-opt %t.once --mpc-loss-scale="mode=dynamic" | diff %t.once -
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" --mpc-flatten-guards | FileCheck %s --check-prefix=FLAT

func.func private @f(tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)

// CHECK-LABEL: func @train_step
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">}
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}
// CHECK-SAME: %[[GOOD:[a-z0-9]+]]: tensor<i32> {mpc.state = #mpc.state<scaler, "scaler.good">}
// CHECK-SAME: {mpc.state = #mpc.state<scaler, "scaler.bad">}
// CHECK-SAME: {mpc.state = #mpc.state<scaler, "scaler.skipped">}
// CHECK-SAME: {mpc.state = #mpc.state<scaler, "scaler.consecutive">}
// CHECK-SAME: {mpc.state = #mpc.state<scaler, "scaler.growth">}
// CHECK-SAME: {mpc.state = #mpc.state<scaler, "scaler.backoff">}
// CHECK-SAME: {mpc.state = #mpc.state<scaler, "scaler.minimum">}
// CHECK-SAME: {mpc.state = #mpc.state<scaler, "scaler.maximum">}
// CHECK-SAME: {mpc.state = #mpc.state<scaler, "scaler.interval">}
// CHECK-SAME: {mpc.state = #mpc.state<scaler, "scaler.bad_limit">}
// CHECK-SAME: {mpc.state = #mpc.state<scaler, "scaler.dynamic">}
// CHECK-SAME: %[[SKIP:[a-z0-9]+]]: tensor<i32> {mpc.state = #mpc.state<scaler, "scaler.skip">})
// CHECK-SAME: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}
// CHECK-SAME: tensor<i32> {mpc.state = #mpc.state<scaler, "scaler.skip">}
// CHECK-SAME: tensor<i1> {mpc.state = #mpc.state<record, "finite">}, tensor<i32> {mpc.state = #mpc.state<record, "first_bad">}, tensor<f32> {mpc.state = #mpc.state<record, "loss_scale">})
// CHECK: %[[G:.*]]:4 = mpc.value_and_grad @f({{.*}}) seed(%[[SCALE]])
// CHECK: %[[FINITE:.*]], %[[BAD:.*]] = mpc.all_finite %[[SCALE]], %[[G]]#0, %[[G]]#3
// CHECK: %[[NEW:.*]]:5 = mpc.guarded_update %[[FINITE]] else(%[[P]], %[[V]], {{.*}}) {
// CHECK:   %[[U:.*]] = mpc.unscale %[[G]]#3, %[[SCALE]]
// CHECK:   mpc.momentum %[[P]], %[[V]], %[[U]],
// CHECK:   mpc.batch_norm_running_update
// CHECK:   mpc.increment
// CHECK:   mpc.yield
// CHECK: %[[EMA:.*]] = mpc.add %{{.*}}, %[[NEW]]#0
// CHECK: %[[EMA2:.*]] = mpc.select %[[FINITE]], %[[EMA]], %{{.*}}
// CHECK: %[[S:[a-z_]+]], %[[GOOD2:[a-z_]+]], {{.*}} = mpc.update_loss_scale %[[BAD]], %[[SCALE]], %[[GOOD]],
// CHECK: return %[[G]]#0, %[[NEW]]#0, %[[NEW]]#1, %[[NEW]]#2, %[[NEW]]#3, %[[NEW]]#4, %[[EMA2]], %[[S]], %[[GOOD2]], {{.*}}%[[SKIP]], %[[FINITE]], %[[BAD]], %[[SCALE]]

// Without skipping nothing is guarded; gradients are still unscaled and checked.
// NOSKIP-LABEL: func @train_step
// NOSKIP: %[[FINITE:.*]], %{{.*}} = mpc.all_finite
// NOSKIP: %[[U:.*]] = mpc.unscale
// NOSKIP-NOT: mpc.guarded_update
// NOSKIP: mpc.momentum %{{.*}}, %{{.*}}, %[[U]],
// NOSKIP-NOT: mpc.select
// NOSKIP: mpc.update_loss_scale

// The optimizer's own loss_scale divides.
// RAW-LABEL: func @train_step
// RAW: %[[G:.*]]:4 = mpc.value_and_grad
// RAW: mpc.all_finite
// RAW-NOT: mpc.unscale
// RAW: mpc.momentum %{{.*}}, %{{.*}}, %[[G]]#3,

// FLAT-LABEL: func @train_step
// FLAT: %[[FINITE:.*]], %{{.*}} = mpc.all_finite
// FLAT-NOT: mpc.guarded_update
// FLAT: mpc.momentum {{.*}}, %[[FINITE]] :
// FLAT: mpc.batch_norm_running_update {{.*}}, %[[FINITE]] {
// FLAT: mpc.increment {{.*}}, %[[FINITE]] :
func.func @train_step(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
    %rm: tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
    %rv: tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
    %step: tensor<i32> {mpc.state = #mpc.state<step, "step">},
    %ema: tensor<4xf32> {mpc.state = #mpc.state<statistic, "ema">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<f32> {mpc.state = #mpc.state<output, "loss">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
        tensor<i32> {mpc.state = #mpc.state<step, "step">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "ema">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %mean, %variance, %dw = mpc.value_and_grad @f(%w, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %w2, %v2 = mpc.momentum %w, %v, %dw, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %ema2 = mpc.add %ema, %w2 : tensor<4xf32>
  %rm2, %rv2 = mpc.batch_norm_running_update %rm, %rv, %mean, %variance {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %step2 = mpc.increment %step : tensor<i32>
  return %loss, %w2, %v2, %rm2, %rv2, %step2, %ema2
      : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<4xf32>
}

// The user's own arithmetic on gradients sees them unscaled.
// CHECK-LABEL: func @clipped_by_hand
// CHECK: %[[G:.*]]:4 = mpc.value_and_grad
// CHECK: %[[U:.*]] = mpc.unscale %[[G]]#3
// CHECK: %[[H:.*]] = mpc.mul_scalar %[[U]]
// CHECK: mpc.guarded_update
// CHECK-NEXT: mpc.momentum %{{.*}}, %{{.*}}, %[[H]],
func.func @clipped_by_hand(%w: tensor<4xf32>, %v: tensor<4xf32>, %lr: tensor<f32>, %x: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %mean, %variance, %dw = mpc.value_and_grad @f(%w, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %half = mpc.mul_scalar %dw {value = 0.5} : tensor<4xf32>
  %w2, %v2 = mpc.momentum %w, %v, %half, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2, %v2 : tensor<4xf32>, tensor<4xf32>
}
