// RUN: mpc-opt %s --mpc-flatten-guards | FileCheck %s
// RUN: mpc-opt %s --mpc-flatten-guards > %t.once && mpc-opt %t.once --mpc-flatten-guards | diff %t.once -

// CHECK-LABEL: func @updates
// CHECK-SAME: %[[F:[a-z0-9]+]]: tensor<i1>
// CHECK: %[[G:.*]] = mpc.unscale
// CHECK: %[[W:.*]], %[[V:.*]] = mpc.momentum %{{.*}}, %{{.*}}, %[[G]], %{{.*}}, %[[F]] :
// CHECK: %[[S:.*]] = mpc.increment %{{.*}}, %[[F]] :
// CHECK: %[[S2:.*]] = mpc.increment %[[S]], %[[F]] :
// CHECK-NOT: mpc.guarded_update
// CHECK: return %[[W]], %[[V]], %[[S2]]
func.func @updates(%finite: tensor<i1>, %w: tensor<4xf32>, %v: tensor<4xf32>, %dw: tensor<4xf16>, %lr: tensor<f32>,
                   %step: tensor<i32>, %scale: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<i32>) {
  %new:3 = mpc.guarded_update %finite else(%w, %v, %step) {
    %g = mpc.unscale %dw, %scale : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
    %w2, %v2 = mpc.momentum %w, %v, %g, %lr
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
    %one = mpc.increment %step : tensor<i32>
    %two = mpc.increment %one : tensor<i32>
    mpc.yield %w2, %v2, %two : tensor<4xf32>, tensor<4xf32>, tensor<i32>
  } : (tensor<i1>, tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<i32>)
  return %new#0, %new#1, %new#2 : tensor<4xf32>, tensor<4xf32>, tensor<i32>
}

// A value that no state update computes is chosen; so is one whose old state is another value.
// CHECK-LABEL: func @selected
// CHECK-SAME: %[[F:[a-z0-9]+]]: tensor<i1>, %[[A:[a-z0-9]+]]: tensor<i32>, %[[B:[a-z0-9]+]]: tensor<i32>
// CHECK: %[[I:.*]] = mpc.increment %[[A]], %[[F]] :
// CHECK: %[[Y:.*]] = mpc.select %[[F]], %[[I]], %[[B]]
// CHECK: return %[[Y]]
func.func @selected(%finite: tensor<i1>, %a: tensor<i32>, %b: tensor<i32>) -> tensor<i32> {
  %new = mpc.guarded_update %finite else(%b) {
    %one = mpc.increment %a : tensor<i32>
    mpc.yield %one : tensor<i32>
  } : (tensor<i1>, tensor<i32>) -> tensor<i32>
  return %new : tensor<i32>
}

// What prepares an update's operands needs no condition.
// CHECK-LABEL: func @clips
// CHECK-SAME: %[[F:[a-z0-9]+]]: tensor<i1>
// CHECK: %[[C:.*]] = mpc.clip_by_norm %{{.*}}, %{{.*}} {max_norm = 1.000000e+00}
// CHECK-NEXT: mpc.momentum %{{.*}}, %{{.*}}, %[[C]], %{{.*}}, %[[F]] :
// CHECK-NEXT: return
func.func @clips(%finite: tensor<i1>, %w: tensor<4xf32>, %v: tensor<4xf32>, %g: tensor<4xf16>, %norm: tensor<f32>,
                 %lr: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %new:2 = mpc.guarded_update %finite else(%w, %v) {
    %c = mpc.clip_by_norm %g, %norm {max_norm = 1.0} : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
    %w2, %v2 = mpc.momentum %w, %v, %c, %lr
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
    mpc.yield %w2, %v2 : tensor<4xf32>, tensor<4xf32>
  } : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %new#0, %new#1 : tensor<4xf32>, tensor<4xf32>
}

// An update with a condition of its own keeps it; what the guard holds is chosen.
// CHECK-LABEL: func @own_condition
// CHECK-SAME: %[[F:[a-z0-9]+]]: tensor<i1>, %[[OWN:[a-z0-9]+]]: tensor<i1>, %[[A:[a-z0-9]+]]: tensor<i32>
// CHECK: %[[I:.*]] = mpc.increment %[[A]], %[[OWN]] : (tensor<i32>, tensor<i1>){{$}}
// CHECK: %[[Y:.*]] = mpc.select %[[F]], %[[I]], %[[A]]
// CHECK: return %[[Y]]
func.func @own_condition(%finite: tensor<i1>, %own: tensor<i1>, %a: tensor<i32>) -> tensor<i32> {
  %new = mpc.guarded_update %finite else(%a) {
    %one = mpc.increment %a, %own : (tensor<i32>, tensor<i1>) -> tensor<i32>
    mpc.yield %one : tensor<i32>
  } : (tensor<i1>, tensor<i32>) -> tensor<i32>
  return %new : tensor<i32>
}
