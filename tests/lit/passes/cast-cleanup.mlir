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

// The loss scale stands in front of gradients. It is read in f32 alone.
// CHECK-LABEL: func @low_scale
// CHECK: %[[SCALE:.*]] = mpc.cast %{{.*}} : (tensor<f16>) -> tensor<f32>
// CHECK: mpc.all_finite %[[SCALE]], %{{.*}} : (tensor<f32>, tensor<4xf16>)
func.func @low_scale(%scale: tensor<f16>, %dw: tensor<4xf16>) -> (tensor<i1>, tensor<i32>) {
  %wide_scale = mpc.cast %scale : (tensor<f16>) -> tensor<f32>
  %wide = mpc.cast %dw : (tensor<4xf16>) -> tensor<4xf32>
  %finite, %bad = mpc.all_finite %wide_scale, %wide : (tensor<f32>, tensor<4xf32>) -> (tensor<i1>, tensor<i32>)
  return %finite, %bad : tensor<i1>, tensor<i32>
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
// CHECK: %[[R:.*]] = mpc.relu %[[C]] as <f16, cut | level "O2"> :
// CHECK-NOT: mpc.relu
// CHECK: mpc.add %[[R]], %[[R]]
func.func @merges(%x: tensor<4xf32>) -> tensor<4xf16> {
  %c = mpc.cast %x : (tensor<4xf32>) -> tensor<4xf16>
  %d = mpc.cast %x in <"net"> : (tensor<4xf32>) -> tensor<4xf16>
  %r = mpc.relu %c as <f16, cut> : tensor<4xf16>
  %s = mpc.relu %d as <f16, level "O2"> : tensor<4xf16>
  %dead = mpc.exp %r : tensor<4xf16>
  %y = mpc.add %r, %s : tensor<4xf16>
  return %y : tensor<4xf16>
}

// Low values move: narrowing before, widening after data movement; narrowing does not pass relu.
// CHECK-LABEL: func @moves
// CHECK: %[[T:.*]] = mpc.transpose %{{.*}} -> tensor<4x2xf16>
// CHECK: mpc.cast %[[T]] : (tensor<4x2xf16>) -> tensor<4x2xf32>
// CHECK: %[[N:.*]] = mpc.cast %{{.*}} : (tensor<2x4xf32>) -> tensor<2x4xf16>
// CHECK: mpc.transpose %[[N]] {{.*}} -> tensor<4x2xf16>
// CHECK: mpc.relu %{{.*}} : tensor<2x4xf32>
// CHECK: mpc.cast
func.func @moves(%x: tensor<2x4xf16>, %y: tensor<2x4xf32>) -> (tensor<4x2xf32>, tensor<4x2xf16>, tensor<2x4xf16>) {
  %e = mpc.cast %x : (tensor<2x4xf16>) -> tensor<2x4xf32>
  %te = mpc.transpose %e {permutation = [1, 0]} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %ty = mpc.transpose %y {permutation = [1, 0]} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %n = mpc.cast %ty : (tensor<4x2xf32>) -> tensor<4x2xf16>
  %r = mpc.relu %y : tensor<2x4xf32>
  %rn = mpc.cast %r : (tensor<2x4xf32>) -> tensor<2x4xf16>
  return %te, %n, %rn : tensor<4x2xf32>, tensor<4x2xf16>, tensor<2x4xf16>
}

// A widening passes padding with zeros. Another number would be rounded to the low type.
// CHECK-LABEL: func @pads
// CHECK: mpc.pad %{{.*}} -> tensor<5xf16>
// CHECK: mpc.cast %{{.*}} : (tensor<3xf16>) -> tensor<3xf32>
// CHECK: mpc.pad %{{.*}} -> tensor<5xf32>
func.func @pads(%x: tensor<3xf16>, %y: tensor<3xf16>) -> (tensor<5xf32>, tensor<5xf32>) {
  %wide_x = mpc.cast %x : (tensor<3xf16>) -> tensor<3xf32>
  %zeros = mpc.pad %wide_x {low = [1], high = [1], value = 0.0 : f32} : (tensor<3xf32>) -> tensor<5xf32>
  %wide_y = mpc.cast %y : (tensor<3xf16>) -> tensor<3xf32>
  %tenths = mpc.pad %wide_y {low = [1], high = [1], value = 0.1 : f32} : (tensor<3xf32>) -> tensor<5xf32>
  return %zeros, %tenths : tensor<5xf32>, tensor<5xf32>
}

// A widening passes operations that give the same values in low: relu, pooling, joining. Fewer bytes move. It does not
// pass where more would (stretching), where another user needs the wide value, or where the user chose f32.
// CHECK-LABEL: func @sinks
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<1x1x4x4xf16>, %[[Y:[a-z0-9]+]]: tensor<1x1x2x2xf16>
// CHECK: %[[R:.*]] = mpc.relu %[[X]] : tensor<1x1x4x4xf16>
// CHECK-NEXT: %[[P:.*]], %{{.*}} = mpc.max_pool2d %[[R]] {{.*}} -> (tensor<1x1x2x2xf16>, tensor<1x1x2x2xi8>)
// CHECK-NEXT: %[[C:.*]] = mpc.concat %[[P]], %[[Y]] {{.*}} -> tensor<1x2x2x2xf16>
// CHECK-NEXT: %[[W:.*]] = mpc.cast %[[C]] : (tensor<1x2x2x2xf16>) -> tensor<1x2x2x2xf32>
// CHECK-NEXT: return %[[W]]
func.func @sinks(%x: tensor<1x1x4x4xf16>, %y: tensor<1x1x2x2xf16>) -> tensor<1x2x2x2xf32> {
  %e = mpc.cast %x : (tensor<1x1x4x4xf16>) -> tensor<1x1x4x4xf32>
  %f = mpc.cast %y : (tensor<1x1x2x2xf16>) -> tensor<1x1x2x2xf32>
  %r = mpc.relu %e : tensor<1x1x4x4xf32>
  %p, %i = mpc.max_pool2d %r {kernel_size = [2, 2], strides = [2, 2]}
      : (tensor<1x1x4x4xf32>) -> (tensor<1x1x2x2xf32>, tensor<1x1x2x2xi8>)
  %c = mpc.concat %p, %f {axis = 1} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xf32>) -> tensor<1x2x2x2xf32>
  return %c : tensor<1x2x2x2xf32>
}

// CHECK-LABEL: func @stays
// CHECK: mpc.broadcast_to %{{.*}} : (tensor<1x4xf32>) -> tensor<8x4xf32>
// CHECK: mpc.relu %{{.*}} as <f32, to_float "f32", user> : tensor<1x4xf32>
// CHECK: mpc.neg %{{.*}} : tensor<1x4xf32>
func.func @stays(%x: tensor<1x4xf16>, %y: tensor<1x4xf16>, %z: tensor<1x4xf16>)
    -> (tensor<8x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>) {
  %e = mpc.cast %x : (tensor<1x4xf16>) -> tensor<1x4xf32>
  %b = mpc.broadcast_to %e {shape = [8, 4]} : (tensor<1x4xf32>) -> tensor<8x4xf32>
  %f = mpc.cast %y : (tensor<1x4xf16>) -> tensor<1x4xf32>
  %r = mpc.relu %f as <f32, to_float "f32", user> : tensor<1x4xf32>
  %g = mpc.cast %z : (tensor<1x4xf16>) -> tensor<1x4xf32>
  %n = mpc.neg %g : tensor<1x4xf32>
  return %b, %r, %n, %g : tensor<8x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>, tensor<1x4xf32>
}

// A constant is rounded here, once.
// CHECK-LABEL: func @constant
// CHECK: %[[C:.*]] = mpc.constant {value = dense<1.000980e+00> : tensor<4xf16>}
// CHECK-NEXT: return %[[C]]
func.func @constant() -> tensor<4xf16> {
  %c = mpc.constant {value = dense<1.001> : tensor<4xf32>} : () -> tensor<4xf32>
  %l = mpc.cast %c : (tensor<4xf32>) -> tensor<4xf16>
  return %l : tensor<4xf16>
}

// relu that rounds to the type which is widened for it keeps that type: nothing is left to widen.
// CHECK-LABEL: func @sinks_into_a_low_result
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4xf16>
// CHECK-NOT: mpc.cast
// CHECK: %[[Y:.*]] = mpc.relu %[[X]] : tensor<4xf16>
// CHECK-NEXT: return %[[Y]]
func.func @sinks_into_a_low_result(%x: tensor<4xf16>) -> tensor<4xf16> {
  %c = mpc.cast %x : (tensor<4xf16>) -> tensor<4xf32>
  %y = mpc.relu %c : (tensor<4xf32>) -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// The first sweep folds the narrowing into maximum and puts the widenings behind relu; the second sinks them.
// CHECK-LABEL: func @sinks_after_a_fold
// CHECK-NOT: mpc.cast
// CHECK: mpc.maximum {{.*}} : tensor<4xf16>
// CHECK-NEXT: return
func.func @sinks_after_a_fold(%x: tensor<4xf16>, %y: tensor<4xf16>) -> tensor<4xf16> {
  %a = mpc.cast %x : (tensor<4xf16>) -> tensor<4xf32>
  %b = mpc.relu %a : tensor<4xf32>
  %c = mpc.cast %y : (tensor<4xf16>) -> tensor<4xf32>
  %d = mpc.relu %c : tensor<4xf32>
  %m = mpc.maximum %b, %d : tensor<4xf32>
  %n = mpc.cast %m : (tensor<4xf32>) -> tensor<4xf16>
  return %n : tensor<4xf16>
}

// relu that rounds to a third type, or that widens further, reads what it is given.
// CHECK-LABEL: func @rounds_elsewhere
// CHECK: mpc.cast
// CHECK-NEXT: mpc.relu %{{.*}} : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK-NEXT: mpc.neg
// CHECK-NEXT: mpc.cast
// CHECK-NEXT: mpc.relu %{{.*}} : (tensor<4xf32>) -> tensor<4xf64>
func.func @rounds_elsewhere(%x: tensor<4xf16>) -> (tensor<4xbf16>, tensor<4xf64>) {
  %a = mpc.cast %x : (tensor<4xf16>) -> tensor<4xf32>
  %b = mpc.relu %a : (tensor<4xf32>) -> tensor<4xbf16>
  %c = mpc.neg %x : tensor<4xf16>
  %d = mpc.cast %c : (tensor<4xf16>) -> tensor<4xf32>
  %e = mpc.relu %d : (tensor<4xf32>) -> tensor<4xf64>
  return %b, %e : tensor<4xbf16>, tensor<4xf64>
}

// What may have effects stays, though another is equal.
// CHECK-LABEL: func @effects(
// CHECK-COUNT-2: call @elsewhere
func.func private @elsewhere(tensor<2xf32>) -> tensor<2xf32>
func.func @effects(%x: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  %a = call @elsewhere(%x) : (tensor<2xf32>) -> tensor<2xf32>
  %b = call @elsewhere(%x) : (tensor<2xf32>) -> tensor<2xf32>
  return %a, %b : tensor<2xf32>, tensor<2xf32>
}

// A constant is rounded to nearest: 1 + 3 * 2^-12 becomes 1 + 2^-10.
// CHECK-LABEL: func @rounded_constant(
// CHECK: mpc.constant {value = dense<1.000980e+00> : tensor<f16>}
func.func @rounded_constant() -> tensor<f16> {
  %c = mpc.constant {value = dense<1.000732421875> : tensor<f32>} : () -> tensor<f32>
  %low = mpc.cast %c : (tensor<f32>) -> tensor<f16>
  return %low : tensor<f16>
}

// relu stays wide: the widened value has another reader, so that low relu would save nothing.
// CHECK-LABEL: func @another_reader(
// CHECK: %[[W:.*]] = mpc.cast %{{.*}} : (tensor<8xf16>) -> tensor<8xf32>
// CHECK: mpc.tanh %[[W]] : tensor<8xf32>
// CHECK: mpc.relu %[[W]] : tensor<8xf32>
func.func @another_reader(%x: tensor<8xf16>) -> (tensor<8xf32>, tensor<8xf32>) {
  %wide = mpc.cast %x : (tensor<8xf16>) -> tensor<8xf32>
  %t = mpc.tanh %wide : tensor<8xf32>
  %r = mpc.relu %wide : tensor<8xf32>
  return %r, %t : tensor<8xf32>, tensor<8xf32>
}

// Nor does a cast move in front of movement whose result is read wide, too.
// CHECK-LABEL: func @read_wide(
// CHECK: %[[T:.*]] = mpc.transpose %{{.*}} : (tensor<2x4xf32>) -> tensor<4x2xf32>
// CHECK: mpc.cast %[[T]] : (tensor<4x2xf32>) -> tensor<4x2xf16>
func.func @read_wide(%x: tensor<2x4xf32>) -> (tensor<4x2xf32>, tensor<4x2xf16>) {
  %t = mpc.transpose %x {permutation = [1, 0]} : (tensor<2x4xf32>) -> tensor<4x2xf32>
  %low = mpc.cast %t : (tensor<4x2xf32>) -> tensor<4x2xf16>
  return %t, %low : tensor<4x2xf32>, tensor<4x2xf16>
}

// Or in front of movement that drops most of what it reads.
// CHECK-LABEL: func @drops(
// CHECK: %[[S:.*]] = mpc.slice %{{.*}} -> tensor<2xf32>
// CHECK: mpc.cast %[[S]] : (tensor<2xf32>) -> tensor<2xf16>
func.func @drops(%x: tensor<8xf32>) -> tensor<2xf16> {
  %s = mpc.slice %x {starts = [1], sizes = [2]}
      : (tensor<8xf32>) -> tensor<2xf32>
  %low = mpc.cast %s : (tensor<2xf32>) -> tensor<2xf16>
  return %low : tensor<2xf16>
}

// Of the operands of unscale and of an optimizer, gradients alone may be low.
// CHECK-LABEL: func @scalars(
// CHECK: %[[S:.*]] = mpc.cast %{{.*}} : (tensor<f16>) -> tensor<f32>
// CHECK: mpc.unscale %{{.*}}, %[[S]]
// CHECK: %[[R:.*]] = mpc.cast %{{.*}} : (tensor<f16>) -> tensor<f32>
// CHECK: mpc.momentum {{.*}}, %[[R]]
func.func @scalars(%p: tensor<4xf32>, %v: tensor<4xf32>, %g: tensor<4xf16>, %s: tensor<f16>, %r: tensor<f16>)
    -> (tensor<4xf32>, tensor<4xf32>) {
  %scale = mpc.cast %s : (tensor<f16>) -> tensor<f32>
  %u = mpc.unscale %g, %scale : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
  %rate = mpc.cast %r : (tensor<f16>) -> tensor<f32>
  %p2, %v2 = mpc.momentum %p, %v, %u, %rate
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %p2, %v2 : tensor<4xf32>, tensor<4xf32>
}

// A narrowing is not folded into what the user asked to be f32, or into what is read wide, too.
// CHECK-LABEL: func @not_folded(
// CHECK: %[[A:.*]] = mpc.add {{.*}} : tensor<4xf32>
// CHECK: mpc.cast %[[A]] : (tensor<4xf32>) -> tensor<4xf16>
// CHECK: %[[M:.*]] = mpc.mul {{.*}} : tensor<4xf32>
// CHECK: mpc.cast %[[M]] : (tensor<4xf32>) -> tensor<4xf16>
func.func @not_folded(%x: tensor<4xf32>) -> (tensor<4xf16>, tensor<4xf16>, tensor<4xf32>) {
  %pinned = mpc.add %x, %x as <f32, to_float "f32", user> : tensor<4xf32>
  %a = mpc.cast %pinned : (tensor<4xf32>) -> tensor<4xf16>
  %wide = mpc.mul %x, %x : tensor<4xf32>
  %b = mpc.cast %wide : (tensor<4xf32>) -> tensor<4xf16>
  return %a, %b, %wide : tensor<4xf16>, tensor<4xf16>, tensor<4xf32>
}
