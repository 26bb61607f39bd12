// RUN: mpc-opt %s --mpc-fold-gradient-scaling | FileCheck %s
// RUN: mpc-opt %s --mpc-fold-gradient-scaling > %t.once && mpc-opt %t.once --mpc-fold-gradient-scaling | diff %t.once -

// The update reads the low gradient and its scale.
// CHECK-LABEL: func @unscale
// CHECK-SAME: %[[P:.*]]: tensor<4xf32>, %[[V:.*]]: tensor<4xf32>, %[[G:.*]]: tensor<4xf16>, %[[RATE:.*]]: tensor<f32>, %[[SCALE:.*]]: tensor<f32>, %[[OK:.*]]: tensor<i1>
// CHECK-NOT: mpc.unscale
// CHECK: mpc.momentum %[[P]], %[[V]], %[[G]], %[[RATE]], %[[SCALE]], %[[OK]] {momentum = 5.000000e-01, unscale = true}
func.func @unscale(%p: tensor<4xf32>, %v: tensor<4xf32>, %g: tensor<4xf16>, %rate: tensor<f32>, %scale: tensor<f32>, %ok: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %u = mpc.unscale %g, %scale : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
  %p2, %v2 = mpc.momentum %p, %v, %u, %rate, %ok {momentum = 0.5}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %p2, %v2 : tensor<4xf32>, tensor<4xf32>
}

// The norm unscales, too: nothing is left between the backward pass and the update. The shadow stays the last result.
// CHECK-LABEL: func @clip
// CHECK-SAME: %[[P:.*]]: tensor<4xf32>, %[[M:.*]]: tensor<4xf32>, %[[V:.*]]: tensor<4xf32>, %[[G:.*]]: tensor<4xbf16>, %[[H:.*]]: tensor<2xf32>, %[[RATE:.*]]: tensor<f32>, %[[STEP:.*]]: tensor<i32>, %[[SCALE:.*]]: tensor<f32>
// CHECK-NEXT: %[[NORM:.*]] = mpc.global_norm %[[SCALE]], %[[G]], %[[H]] {unscale = true} : (tensor<f32>, tensor<4xbf16>, tensor<2xf32>) -> tensor<f64>
// CHECK-NEXT: mpc.adamw %[[P]], %[[M]], %[[V]], %[[G]], %[[RATE]], %[[STEP]], %[[SCALE]], %[[NORM]] {max_norm = 2.000000e+00, shadow = bf16, unscale = true}
// CHECK-NEXT: mpc.sgd %[[H]], %[[H]], %[[H]], %[[RATE]], %[[STEP]], %[[SCALE]], %[[NORM]] {max_norm = 2.000000e+00, unscale = true}
// CHECK-NEXT: return
func.func @clip(%p: tensor<4xf32>, %m: tensor<4xf32>, %v: tensor<4xf32>, %g: tensor<4xbf16>, %h: tensor<2xf32>, %rate: tensor<f32>, %step: tensor<i32>, %scale: tensor<f32>) -> (tensor<4xbf16>, tensor<2xf32>, tensor<f64>) {
  %u = mpc.unscale %g, %scale : (tensor<4xbf16>, tensor<f32>) -> tensor<4xf32>
  %w = mpc.unscale %h, %scale : (tensor<2xf32>, tensor<f32>) -> tensor<2xf32>
  %norm = mpc.global_norm %u, %w : (tensor<4xf32>, tensor<2xf32>) -> tensor<f64>
  %c = mpc.clip_by_norm %u, %norm {max_norm = 2.0} : (tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  %d = mpc.clip_by_norm %w, %norm {max_norm = 2.0} : (tensor<2xf32>, tensor<f64>) -> tensor<2xf32>
  %p2, %m2, %v2, %s2 = mpc.adamw %p, %m, %v, %c, %rate, %step {shadow = bf16}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>)
  %h2, %q2 = mpc.sgd %h, %h, %d, %rate, %step
      : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>, tensor<i32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %s2, %h2, %norm : tensor<4xbf16>, tensor<2xf32>, tensor<f64>
}

// Something else reads what unscale writes: it stays, and with it the norm's operands; clipping still folds.
// CHECK-LABEL: func @another_reader
// CHECK: %[[U:.*]] = mpc.unscale
// CHECK: %[[W:.*]] = mpc.unscale
// CHECK: %[[NORM:.*]] = mpc.global_norm %[[U]], %[[W]] : (tensor<4xf32>, tensor<2xf32>)
// CHECK-NOT: mpc.clip_by_norm
// CHECK: mpc.momentum %{{.*}}, %{{.*}}, %[[U]], %{{.*}}, %[[NORM]] {max_norm = 2.000000e+00}
// CHECK: return %{{.*}}, %[[W]]
func.func @another_reader(%p: tensor<4xf32>, %g: tensor<4xf16>, %h: tensor<2xf16>, %rate: tensor<f32>, %scale: tensor<f32>) -> (tensor<4xf32>, tensor<2xf32>) {
  %u = mpc.unscale %g, %scale : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
  %w = mpc.unscale %h, %scale : (tensor<2xf16>, tensor<f32>) -> tensor<2xf32>
  %norm = mpc.global_norm %u, %w : (tensor<4xf32>, tensor<2xf32>) -> tensor<f32>
  %c = mpc.clip_by_norm %u, %norm {max_norm = 2.0} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %p2, %v2 = mpc.momentum %p, %p, %c, %rate
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %p2, %w : tensor<4xf32>, tensor<2xf32>
}

// Gradients of two scales have no norm of one scale.
// CHECK-LABEL: func @two_scales
// CHECK-COUNT-2: mpc.unscale
// CHECK: mpc.global_norm %{{.*}}, %{{.*}} : (tensor<4xf32>, tensor<4xf32>)
func.func @two_scales(%g: tensor<4xf16>, %a: tensor<f32>, %b: tensor<f32>) -> tensor<f32> {
  %u = mpc.unscale %g, %a : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
  %w = mpc.unscale %g, %b : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
  %norm = mpc.global_norm %u, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return %norm : tensor<f32>
}

// An update unscales before it clips; what is unscaled behind a clip, or twice, stays in its order.
// CHECK-LABEL: func @keeps_the_order
// CHECK-NEXT: %[[C:.*]] = mpc.clip_by_norm
// CHECK-NEXT: mpc.momentum %{{.*}}, %{{.*}}, %[[C]], %{{.*}}, %{{.*}} {unscale = true}
// CHECK-NEXT: %[[U:.*]] = mpc.unscale
// CHECK-NEXT: mpc.momentum %{{.*}}, %{{.*}}, %[[U]], %{{.*}}, %{{.*}} {unscale = true}
func.func @keeps_the_order(%p: tensor<4xf32>, %g: tensor<4xf16>, %rate: tensor<f32>, %scale: tensor<f32>, %norm: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = mpc.clip_by_norm %g, %norm {max_norm = 2.0} : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
  %u = mpc.unscale %c, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %p2, %v2 = mpc.momentum %p, %p, %u, %rate
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %w = mpc.unscale %g, %scale : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
  %p3, %v3 = mpc.momentum %p, %p, %w, %rate, %scale {unscale = true}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %p2, %p3 : tensor<4xf32>, tensor<4xf32>
}

// The sum of micro-steps reads unscaled gradients, and so does an update of anything but the gradient.
// CHECK-LABEL: func @other_updates
// CHECK-COUNT-2: mpc.unscale
// CHECK: mpc.accumulate_gradient
// CHECK: mpc.momentum
// CHECK-NOT: unscale = true
func.func @other_updates(%a: tensor<4xf32>, %g: tensor<4xf16>, %h: tensor<4xf16>, %step: tensor<i32>, %rate: tensor<f32>, %scale: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %u = mpc.unscale %g, %scale : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
  %w = mpc.unscale %h, %scale : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
  %a2 = mpc.accumulate_gradient %a, %u, %step {count = 2} : (tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  %p2, %v2 = mpc.momentum %a, %w, %a2, %rate
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %a2, %p2 : tensor<4xf32>, tensor<4xf32>
}

// An update that clips by one norm already reads what another norm has clipped.
// CHECK-LABEL: func @clipped_twice
// CHECK: %[[C:.*]] = mpc.clip_by_norm
// CHECK-NEXT: mpc.momentum %{{.*}}, %{{.*}}, %[[C]], {{.*}} {max_norm = 1.000000e+00}
func.func @clipped_twice(%p: tensor<4xf32>, %v: tensor<4xf32>, %g: tensor<4xf32>, %rate: tensor<f32>, %norm: tensor<f64>, %own: tensor<f64>) -> (tensor<4xf32>, tensor<4xf32>) {
  %c = mpc.clip_by_norm %g, %norm {max_norm = 2.0} : (tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  %p2, %v2 = mpc.momentum %p, %v, %c, %rate, %own {max_norm = 1.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f64>) -> (tensor<4xf32>, tensor<4xf32>)
  return %p2, %v2 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func private @external
func.func private @external(tensor<4xf32>) -> tensor<4xf32>
