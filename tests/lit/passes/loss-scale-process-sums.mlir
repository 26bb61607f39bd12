// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2 gradients-mean=false" | FileCheck %s --check-prefix=SUM
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2 communication-dtype=f16" --mpc-verify-loss-scale | FileCheck %s --check-prefix=LOW
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2 communication-dtype=f16 gradients-mean=false" --mpc-verify-loss-scale | FileCheck %s --check-prefix=LOWSUM
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2 communication-dtype=f16" > %t.once && mpc-opt %t.once --mpc-loss-scale="mode=dynamic processes=2 communication-dtype=f16" | diff %t.once -
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic communication-dtype=f16 gradients-mean=false" > %t.alone && mpc-opt %s --mpc-loss-scale="mode=dynamic" | diff %t.alone -
// RUN: mpc-opt %s --mpc-loss-scale="processes=2 communication-dtype=bf16" | FileCheck %s --check-prefix=NONE

func.func private @f(tensor<4xf32>, tensor<3xf32>, tensor<4xf32>) -> tensor<f32>

// The sum is that of unscaled gradients. It has a check of its own behind the agreement, and one decision follows. The
// norm counts as one more gradient of the check before.
// SUM-LABEL: func @train_step(
// SUM: %[[G:.*]]:3 = mpc.value_and_grad @f
// SUM: %[[UW:.*]] = mpc.unscale %[[G]]#1, %[[SCALE:.*]] :
// SUM-NEXT: %[[W:.*]] = mpc.all_reduce %[[UW]] {processes = 2
// SUM: %[[UB:.*]] = mpc.unscale %[[G]]#2, %[[SCALE]]
// SUM-NEXT: %[[B:.*]] = mpc.all_reduce %[[UB]] {processes = 2
// SUM: %[[ONE:.*]] = mpc.constant {value = dense<1.0{{.*}}> : tensor<f32>}
// SUM: %[[ZERO:.*]] = mpc.constant {value = dense<0.0{{.*}}> : tensor<f32>}
// SUM: %{{.*}}, %[[BAD_SUM:.*]] = mpc.all_finite %[[ONE]], %[[ZERO]], %[[W]], %[[B]] :
// SUM: mpc.global_norm %[[W]], %[[B]]
// SUM: mpc.all_finite %[[SCALE]], %[[G]]#0, %[[G]]#1, %[[G]]#2, %{{.*}} :
// SUM: %[[IS_NORM:.*]] = mpc.greater_equal
// SUM: %[[OF_GRADIENTS:.*]] = mpc.select %[[IS_NORM]], %{{.*}}, %[[FOUND:.*]] :
// SUM: %[[OF_NORM:.*]] = mpc.select %[[IS_NORM]], %[[FOUND]],
// SUM: mpc.equal %[[OF_GRADIENTS]],
// SUM: mpc.all_reduce_max
// SUM: %[[AGREED:.*]] = mpc.select
// SUM: %[[IS_FINITE:.*]] = mpc.equal %[[AGREED]],
// SUM: %[[OF_ALL:.*]] = mpc.select %[[IS_FINITE]], %[[OF_NORM]], %[[AGREED]]
// SUM: %[[BAD:.*]] = mpc.merge_checks %[[OF_ALL]], %[[BAD_SUM]]
// SUM: %[[FINITE:.*]] = mpc.equal %[[BAD]],
// SUM: mpc.guarded_update %[[FINITE]] else(
// SUM: mpc.update_loss_scale %[[BAD]],

// A low type adds the scaled gradients. Their sum is checked by the scale, and unscaled.
// LOW-LABEL: func @train_step(
// LOW: %[[G:.*]]:3 = mpc.value_and_grad @f
// LOW: %[[SHARE:.*]] = mpc.mul_scalar %[[G]]#1 {value = 5.000000e-01
// LOW-NEXT: %[[TERM:.*]] = mpc.cast %[[SHARE]] : (tensor<4xf32>) -> tensor<4xf16>
// LOW-NEXT: %[[TOTAL:.*]] = mpc.all_reduce %[[TERM]] {processes = 2{{.*}} : tensor<4xf16>
// LOW-NEXT: %[[WIDE:.*]] = mpc.cast %[[TOTAL]] : (tensor<4xf16>) -> tensor<4xf32>
// LOW-NEXT: %[[MEAN:.*]] = mpc.unscale %[[WIDE]], %[[SCALE:.*]] :
// LOW: %{{.*}}, %[[BAD_SUM:.*]] = mpc.all_finite %[[SCALE]], %{{.*}}, %[[WIDE]], %{{.*}} :
// LOW: mpc.all_finite %[[SCALE]], %[[G]]#0,
// LOW: mpc.merge_checks %{{.*}}, %[[BAD_SUM]]

// LOWSUM-LABEL: func @train_step(
// LOWSUM-NOT: mpc.mul_scalar
// LOWSUM: mpc.cast %{{.*}} : (tensor<4xf32>) -> tensor<4xf16>
// LOWSUM-NEXT: mpc.all_reduce %{{.*}} : tensor<4xf16>

// Nothing is checked without a scaler.
// NONE-LABEL: func @train_step(
// NONE-NOT: mpc.all_finite
// NONE: mpc.all_reduce %{{.*}} : tensor<4xbf16>
func.func @train_step(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %b: tensor<3xf32> {mpc.state = #mpc.state<parameter, "b">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity", of = "w">},
    %vb: tensor<3xf32> {mpc.state = #mpc.state<slot, "b.velocity", of = "b">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<f32> {mpc.state = #mpc.state<output, "loss">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<3xf32> {mpc.state = #mpc.state<parameter, "b">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
        tensor<3xf32> {mpc.state = #mpc.state<slot, "b.velocity">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dw, %db = mpc.value_and_grad @f(%w, %b, %x) seed(%one) {wrt = array<i64: 0, 1>}
      : (tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<3xf32>)
  %norm = mpc.global_norm %dw, %db : (tensor<4xf32>, tensor<3xf32>) -> tensor<f32>
  %cw = mpc.clip_by_norm %dw, %norm {max_norm = 1.0} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %cb = mpc.clip_by_norm %db, %norm {max_norm = 1.0} : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %w1, %v1 = mpc.momentum %w, %v, %cw, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %b1, %vb1 = mpc.momentum %b, %vb, %cb, %lr
      : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>) -> (tensor<3xf32>, tensor<3xf32>)
  return %loss, %w1, %b1, %v1, %vb1 : tensor<f32>, tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<3xf32>
}

// A scaler that was traced by hand checks the sum.
// SUM-LABEL: func @by_hand(
// SUM: %[[G:.*]]:3 = mpc.value_and_grad @f
// SUM-DAG: %[[W:.*]] = mpc.all_reduce %[[G]]#1
// SUM-DAG: %[[B:.*]] = mpc.all_reduce %[[G]]#2
// SUM: mpc.all_finite %{{.*}}, %{{.*}}, %[[W]], %[[B]] :
// SUM: mpc.all_reduce_max
func.func @by_hand(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %b: tensor<3xf32> {mpc.state = #mpc.state<parameter, "b">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity", of = "w">},
    %vb: tensor<3xf32> {mpc.state = #mpc.state<slot, "b.velocity", of = "b">},
    %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<3xf32> {mpc.state = #mpc.state<parameter, "b">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
        tensor<3xf32> {mpc.state = #mpc.state<slot, "b.velocity">}) attributes {mpc.step} {
  %loss, %dw, %db = mpc.value_and_grad @f(%w, %b, %x) seed(%scale) {wrt = array<i64: 0, 1>}
      : (tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<3xf32>)
  %finite, %bad = mpc.all_finite %scale, %loss, %dw, %db
      : (tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<3xf32>) -> (tensor<i1>, tensor<i32>)
  %uw = mpc.unscale %dw, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %ub = mpc.unscale %db, %scale : (tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  %w1, %v1 = mpc.momentum %w, %v, %uw, %lr, %finite
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  %b1, %vb1 = mpc.momentum %b, %vb, %ub, %lr, %finite
      : (tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<f32>, tensor<i1>) -> (tensor<3xf32>, tensor<3xf32>)
  return %w1, %b1, %v1, %vb1 : tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<3xf32>
}
