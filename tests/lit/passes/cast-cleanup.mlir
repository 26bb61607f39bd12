// RUN: mpc-opt %s --mpc-cast-cleanup | FileCheck %s
// RUN: mpc-opt %s --mpc-cast-cleanup > %t.once && mpc-opt %t.once --mpc-cast-cleanup | diff %t.once -

// The widening of a gradient is read where it is used.
// CHECK-LABEL: func @gradient
// CHECK-SAME: %[[DW:[a-z0-9]+]]: tensor<4xf16>
// CHECK-NOT: mpc.cast
// CHECK: mpc.all_finite %{{.*}}, %{{.*}}, %[[DW]]
// CHECK: mpc.guarded_update
// CHECK: mpc.unscale %[[DW]],
func.func @gradient(%dw: tensor<4xf16>, %loss: tensor<f32>, %scale: tensor<f32>, %w: tensor<4xf32>, %v: tensor<4xf32>,
                    %lr: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %wide = mpc.cast %dw : (tensor<4xf16>) -> tensor<4xf32>
  %finite, %bad = mpc.all_finite %scale, %loss, %wide
      : (tensor<f32>, tensor<f32>, tensor<4xf32>) -> (tensor<i1>, tensor<i32>)
  %new:2 = mpc.guarded_update %finite else(%w, %v) {
    %g = mpc.unscale %wide, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %w2, %v2 = mpc.momentum %w, %v, %g, %lr
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
    mpc.yield %w2, %v2 : tensor<4xf32>, tensor<4xf32>
  } : (tensor<i1>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %new#0, %new#1 : tensor<4xf32>, tensor<4xf32>
}

// trunc(ext(x)) is x; ext(trunc(x)) keeps its rounding, and so does every cast of the user.
// CHECK-LABEL: func @folds
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4xf16>, %[[Y:[a-z0-9]+]]: tensor<4xf32>
// CHECK: %[[T:.*]] = mpc.cast %[[Y]] {user = true} : (tensor<4xf32>) -> tensor<4xf16>
// CHECK: %[[E:.*]] = mpc.cast %[[T]] : (tensor<4xf16>) -> tensor<4xf32>
// CHECK: return %[[X]], %[[E]]
func.func @folds(%x: tensor<4xf16>, %y: tensor<4xf32>) -> (tensor<4xf16>, tensor<4xf32>) {
  %e = mpc.cast %x : (tensor<4xf16>) -> tensor<4xf32>
  %t = mpc.cast %e : (tensor<4xf32>) -> tensor<4xf16>
  %t2 = mpc.cast %y {user = true} : (tensor<4xf32>) -> tensor<4xf16>
  %e2 = mpc.cast %t2 : (tensor<4xf16>) -> tensor<4xf32>
  return %t, %e2 : tensor<4xf16>, tensor<4xf32>
}

// One cast for each (value, type), one operation for each computation; reasons are joined.
// CHECK-LABEL: func @merges
// CHECK: %[[C:.*]] = mpc.cast
// CHECK-NOT: mpc.cast
// CHECK: %[[R:.*]] = mpc.relu %[[C]] {mpc.amp_reason = "a; b"}
// CHECK-NOT: mpc.relu
// CHECK: mpc.add %[[R]], %[[R]]
func.func @merges(%x: tensor<4xf32>) -> tensor<4xf16> {
  %c = mpc.cast %x : (tensor<4xf32>) -> tensor<4xf16>
  %d = mpc.cast %x {mpc.scope = #mpc.scope<path = "net">} : (tensor<4xf32>) -> tensor<4xf16>
  %r = mpc.relu %c {mpc.amp_reason = "a"} : (tensor<4xf16>) -> tensor<4xf16>
  %s = mpc.relu %d {mpc.amp_reason = "b"} : (tensor<4xf16>) -> tensor<4xf16>
  %dead = mpc.exp %r : (tensor<4xf16>) -> tensor<4xf16>
  %y = mpc.add %r, %s : (tensor<4xf16>, tensor<4xf16>) -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// Low values move: narrowing before, widening after data movement; narrowing does not pass relu.
// CHECK-LABEL: func @moves
// CHECK: %[[T:.*]] = mpc.transpose %{{.*}} -> tensor<4x2xf16>
// CHECK: mpc.cast %[[T]] : (tensor<4x2xf16>) -> tensor<4x2xf32>
// CHECK: %[[N:.*]] = mpc.cast %{{.*}} : (tensor<2x4xf32>) -> tensor<2x4xf16>
// CHECK: mpc.transpose %[[N]] {{.*}} -> tensor<4x2xf16>
// CHECK: mpc.relu %{{.*}} : (tensor<2x4xf32>) -> tensor<2x4xf32>
// CHECK: mpc.cast
func.func @moves(%x: tensor<2x4xf16>, %y: tensor<2x4xf32>) -> (tensor<4x2xf32>, tensor<4x2xf16>, tensor<2x4xf16>) {
  %e = mpc.cast %x : (tensor<2x4xf16>) -> tensor<2x4xf32>
  %te = mpc.transpose %e {permutation = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %ty = mpc.transpose %y {permutation = array<i64: 1, 0>} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %n = mpc.cast %ty : (tensor<4x2xf32>) -> tensor<4x2xf16>
  %r = mpc.relu %y : (tensor<2x4xf32>) -> tensor<2x4xf32>
  %rn = mpc.cast %r : (tensor<2x4xf32>) -> tensor<2x4xf16>
  return %te, %n, %rn : tensor<4x2xf32>, tensor<4x2xf16>, tensor<2x4xf16>
}
