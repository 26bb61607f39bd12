// RUN: mpc-opt %s --mpc-autodiff | FileCheck %s --check-prefix=MARK
// RUN: mpc-opt %s --mpc-autodiff --mpc-amp=level=O2 | FileCheck %s
// RUN: mpc-opt %s --mpc-autodiff --mpc-amp=level=O3 | FileCheck %s
// RUN: mpc-opt %s --mpc-autodiff --mpc-amp=level=O3 > %t.once && mpc-opt %t.once --mpc-amp=level=O3 | diff %t.once -
// RUN: mpc-opt %s --mpc-amp=level=O3 --mpc-autodiff | FileCheck %s --check-prefix=FRONT

// A loss is f32 whichever pass comes first. Behind autodiff its mark tells what it is, until mpc-amp has decided it.
// In front of autodiff nothing needs a mark.
// MARK-LABEL: func @requested(
// MARK-NOT: mpc.differentiated
// MARK: mpc.reduce_mean {{.*}} {axes = [], mpc.differentiated}
// MARK-NOT: mpc.differentiated
// MARK-LABEL: func @called(
// MARK-NOT: mpc.differentiated
// MARK: mpc.reduce_sum {{.*}} {axes = [], mpc.differentiated}
// MARK-NOT: mpc.differentiated
// MARK-LABEL: func @scaled(
// MARK: mpc.reduce_mean {{.*}} {axes = [], mpc.differentiated}
// MARK-NOT: mpc.differentiated
// FRONT-NOT: mpc.differentiated

// CHECK-NOT: mpc.differentiated
// CHECK-LABEL: func @requested(
// CHECK: mpc.matmul {{.*}} as <f16, level "O{{[23]}}"> {{.*}} -> tensor<3x2xf16>
// CHECK: %[[S:.*]] = mpc.square %{{.*}} as <f32, differentiated_value> : tensor<3x2xf32>
// CHECK: %[[L:.*]] = mpc.reduce_mean %[[S]] {axes = []} as <f32, differentiated_value> : (tensor<3x2xf32>) -> tensor<f32>
// CHECK: return %[[L]], %{{.*}} : tensor<f32>, tensor<4x2xf32>
// FRONT-LABEL: func @requested(
// FRONT: %[[S:.*]] = mpc.square %{{.*}} as <f32, differentiated_value> : tensor<3x2xf32>
// FRONT: mpc.reduce_mean %[[S]] {axes = []} as <f32, differentiated_value> : (tensor<3x2xf32>) -> tensor<f32>
func.func @requested(
    %w: tensor<4x2xf32> {mpc.state = #mpc.state<parameter, "w">},
    %x: tensor<3x4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<f32>, tensor<4x2xf32>) attributes {mpc.step} {
  %y = mpc.matmul %x, %w : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %squares = mpc.square %y : tensor<3x2xf32>
  %loss = mpc.reduce_mean %squares {axes = []} : (tensor<3x2xf32>) -> tensor<f32>
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %g = mpc.backward %loss wrt(%w) seed(%one) : (tensor<f32>, tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xf32>
  return %loss, %g : tensor<f32>, tensor<4x2xf32>
}

// CHECK-LABEL: func @called(
// CHECK: mpc.matmul {{.*}} as <f16, level "O{{[23]}}"> {{.*}} -> tensor<3x2xf16>
// CHECK: %[[A:.*]] = mpc.abs %{{.*}} as <f32, differentiated_value> : tensor<3x2xf32>
// CHECK: mpc.reduce_sum %[[A]] {axes = []} as <f32, differentiated_value> : (tensor<3x2xf32>) -> tensor<f32>
// FRONT-LABEL: func @called(
// FRONT: %[[A:.*]] = mpc.abs %{{.*}} as <f32, differentiated_value> : tensor<3x2xf32>
// FRONT: mpc.reduce_sum %[[A]] {axes = []} as <f32, differentiated_value> : (tensor<3x2xf32>) -> tensor<f32>
func.func private @loss(%w: tensor<4x2xf32>, %x: tensor<3x4xf32>) -> tensor<f32> {
  %y = mpc.matmul %x, %w : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %size = mpc.abs %y : tensor<3x2xf32>
  %loss = mpc.reduce_sum %size {axes = []} : (tensor<3x2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
func.func @called(%w: tensor<4x2xf32>, %x: tensor<3x4xf32>, %seed: tensor<f32>) -> (tensor<f32>, tensor<4x2xf32>) {
  %l, %dw = mpc.value_and_grad @loss(%w, %x) seed(%seed) {wrt = array<i64: 0>}
      : (tensor<4x2xf32>, tensor<3x4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4x2xf32>)
  return %l, %dw : tensor<f32>, tensor<4x2xf32>
}

// A scaler between the loss and its derivative is no part of the loss.
// CHECK-LABEL: func @scaled(
// CHECK: %[[L:.*]] = mpc.reduce_mean %{{.*}} {axes = []} as <f32, differentiated_value> : (tensor<3x2xf32>) -> tensor<f32>
// CHECK: %[[S:.*]] = mpc.scale_loss %[[L]], %{{.*}} : tensor<f32>
// CHECK: return %[[S]]
func.func @scaled(%w: tensor<4x2xf32>, %x: tensor<3x4xf32>, %scale: tensor<f32>) -> (tensor<f32>, tensor<4x2xf32>) {
  %y = mpc.matmul %x, %w : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %loss = mpc.reduce_mean %y {axes = []} : (tensor<3x2xf32>) -> tensor<f32>
  %scaled = mpc.scale_loss %loss, %scale : (tensor<f32>, tensor<f32>) -> tensor<f32>
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %g = mpc.backward %scaled wrt(%w) seed(%one) : (tensor<f32>, tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xf32>
  return %scaled, %g : tensor<f32>, tensor<4x2xf32>
}
