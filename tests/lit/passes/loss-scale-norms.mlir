// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" | FileCheck %s
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic accumulation-steps=2" | FileCheck %s --check-prefix=MEAN
// RUN: mpc-opt %s --mpc-loss-scale="mode=none" | FileCheck %s --check-prefix=NONE
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" > %t.once && mpc-opt %t.once --mpc-loss-scale="mode=dynamic" | diff %t.once -

func.func private @f(tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>)

// The squares of gradients that passed the check are finite in f64, and so is their norm. The mean of micro-steps may
// round to infinity.
// CHECK-LABEL: func @of_gradients
// CHECK: mpc.all_finite %{{.*}}, %{{.*}}, %{{.*}} : (tensor<f32>, tensor<f32>, tensor<4xf32>) ->
// CHECK-NOT: mpc.check_finite
// MEAN-LABEL: func @of_gradients
// MEAN-SAME: mpc.gradients = {first_bad = ["gradient0", "the norm of the gradients"]}
// MEAN: %[[MEAN:.*]] = mpc.accumulate_gradient
// MEAN: %[[NORM:.*]] = mpc.global_norm
// MEAN: %[[OK:.*]] = mpc.check_finite %[[NORM]],
// MEAN: mpc.all_finite %{{.*}}, %{{.*}}, %{{.*}}, %[[OK]] :
// MEAN: mpc.merge_checks
// MEAN: %[[FINITE:.*]] = mpc.equal
// MEAN: mpc.guarded_update
// NONE-NOT: mpc.check_finite
func.func @of_gradients(%w: tensor<4xf32>, %v: tensor<4xf32>, %lr: tensor<f32>, %x: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dw = mpc.value_and_grad @f(%w, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %limited = mpc.clamp %dw {minimum = -2.0, maximum = 2.0} : tensor<4xf32>
  %norm = mpc.global_norm %dw, %limited : (tensor<4xf32>, tensor<4xf32>) -> tensor<f64>
  %clipped = mpc.clip_by_norm %dw, %norm {max_norm = 1.0} : (tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  %w2, %v2 = mpc.momentum %w, %v, %clipped, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2, %v2 : tensor<4xf32>, tensor<4xf32>
}

// What arithmetic makes of gradients may overflow. The norm that clips it counts as one more gradient; one that nothing
// but a record reads does not.
// CHECK-LABEL: func @of_arithmetic
// CHECK-SAME: mpc.gradients = {first_bad = ["gradient0", "the norm of the gradients"]}
// CHECK: %[[G:.*]]:2 = mpc.value_and_grad
// CHECK: %[[U:.*]] = mpc.unscale %[[G]]#1
// CHECK: %[[SQUARE:.*]] = mpc.mul %[[U]], %[[U]]
// CHECK: %[[NORM:.*]] = mpc.global_norm %[[SQUARE]] : (tensor<4xf32>) -> tensor<f64>
// CHECK: %[[ONE:.*]] = mpc.constant {value = dense<1.000000e+00> : tensor<f32>}
// CHECK: %[[OK:.*]] = mpc.check_finite %[[NORM]], %[[ONE]] : (tensor<f64>, tensor<f32>) -> tensor<i1>
// CHECK: %[[FINITE:.*]], %[[BAD:.*]] = mpc.all_finite %{{.*}}, %[[G]]#0, %[[G]]#1, %[[OK]] :
// CHECK-NOT: mpc.check_finite
// CHECK: mpc.guarded_update %[[FINITE]]
// CHECK: mpc.update_loss_scale %[[BAD]],
func.func @of_arithmetic(%w: tensor<4xf32>, %v: tensor<4xf32>, %lr: tensor<f32>, %x: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<f64>) {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dw = mpc.value_and_grad @f(%w, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %square = mpc.mul %dw, %dw : tensor<4xf32>
  %norm = mpc.global_norm %square : (tensor<4xf32>) -> tensor<f64>
  %clipped = mpc.clip_by_norm %square, %norm {max_norm = 1.0} : (tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  %cube = mpc.mul %square, %dw : tensor<4xf32>
  %told = mpc.global_norm %cube : (tensor<4xf32>) -> tensor<f64>
  %w2, %v2 = mpc.momentum %w, %v, %clipped, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2, %v2, %told : tensor<4xf32>, tensor<4xf32>, tensor<f64>
}

// A low gradient that is unscaled stays low for the user's arithmetic, and may overflow there: its norm counts, too.
// CHECK-LABEL: func @of_low_gradients
// CHECK: %[[G:.*]]:2 = mpc.value_and_grad
// CHECK: %[[WIDE:.*]] = mpc.unscale %[[G]]#1, {{.*}} -> tensor<4xf32>
// CHECK: %[[LOW:.*]] = mpc.cast %[[WIDE]] : (tensor<4xf32>) -> tensor<4xf16>
// CHECK: %[[NORM:.*]] = mpc.global_norm %[[LOW]] : (tensor<4xf16>) -> tensor<f64>
// CHECK: mpc.check_finite %[[NORM]],
func.func private @low(tensor<4xf16>, tensor<4xf32>) -> (tensor<f32>)
func.func @of_low_gradients(%w: tensor<4xf32>, %v: tensor<4xf32>, %l: tensor<4xf16>, %lr: tensor<f32>, %x: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dw = mpc.value_and_grad @low(%l, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf16>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf16>)
  %norm = mpc.global_norm %dw : (tensor<4xf16>) -> tensor<f64>
  %clipped = mpc.clip_by_norm %dw, %norm {max_norm = 1.0} : (tensor<4xf16>, tensor<f64>) -> tensor<4xf32>
  %w2, %v2 = mpc.momentum %w, %v, %clipped, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2, %v2 : tensor<4xf32>, tensor<4xf32>
}

// A norm of what an update wrote comes too late for the check that this update waits for.
// CHECK-LABEL: func @behind_an_update
// CHECK: mpc.all_finite %{{.*}}, %{{.*}}, %{{.*}} : (tensor<f32>, tensor<f32>, tensor<4xf32>) ->
// CHECK-NOT: mpc.check_finite
func.func @behind_an_update(%w: tensor<4xf32>, %v: tensor<4xf32>, %u: tensor<4xf32>, %uv: tensor<4xf32>,
                            %lr: tensor<f32>, %x: tensor<4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dw = mpc.value_and_grad @f(%w, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %w2, %v2 = mpc.momentum %w, %v, %dw, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %mixed = mpc.mul %dw, %w2 : tensor<4xf32>
  %norm = mpc.global_norm %mixed : (tensor<4xf32>) -> tensor<f64>
  %clipped = mpc.clip_by_norm %mixed, %norm {max_norm = 1.0} : (tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  %u2, %uv2 = mpc.momentum %u, %uv, %clipped, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2, %v2, %u2, %uv2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
