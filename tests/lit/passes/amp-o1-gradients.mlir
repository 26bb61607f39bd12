// RUN: mpc-opt %s --mpc-amp="level=O1" | FileCheck %s -DLOW=f16 --check-prefix=FORWARD
// RUN: mpc-opt %s --mpc-amp="level=O1" --mpc-autodiff | FileCheck %s -DLOW=f16
// RUN: sed -e 's/xf16/xbf16/g' %s > %t.bf16
// RUN: mpc-opt %t.bf16 --mpc-amp="level=O1 dtype=bf16" | FileCheck %s -DLOW=bf16 --check-prefix=FORWARD
// RUN: mpc-opt %t.bf16 --mpc-amp="level=O1 dtype=bf16" --mpc-autodiff | FileCheck %s -DLOW=bf16

#net = #mpc.scope<"net", network>
#loss = #mpc.scope<"loss">

// AMP-1: matmul, dense (a product with a bias) and conv give low for f32 and for low inputs; the input's gradient has
// the input's type.

// FORWARD-LABEL: func private @matmul_loss
// FORWARD: mpc.matmul {{.*}}, class "allow">{{.*}} : (tensor<2x4x[[LOW]]>, tensor<4x4x[[LOW]]>) -> tensor<2x4x[[LOW]]>
// CHECK-LABEL: func @matmul_of_f32
// CHECK-SAME: -> tensor<2x4xf32>
// CHECK: %[[G:.*]] = mpc.cast %{{.*}} : (tensor<2x4x[[LOW]]>) -> tensor<2x4xf32>
// CHECK-NEXT: return %[[G]] : tensor<2x4xf32>
func.func private @matmul_loss(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<f32> {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %l = mpc.reduce_mean %h {axes = []} in #loss : (tensor<2x4xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
func.func @matmul_of_f32(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dx = mpc.value_and_grad @matmul_loss(%x, %w) seed(%one) {wrt = array<i64: 0>}
      : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<f32>) -> (tensor<f32>, tensor<2x4xf32>)
  return %dx : tensor<2x4xf32>
}

// FORWARD-LABEL: func private @matmul_low_loss
// FORWARD: mpc.matmul {{.*}}, class "allow">{{.*}} : (tensor<2x4x[[LOW]]>, tensor<4x4x[[LOW]]>) -> tensor<2x4x[[LOW]]>
// CHECK-LABEL: func @matmul_of_low
// CHECK-SAME: -> tensor<2x4x[[LOW]]>
// CHECK: %[[G:.*]] = mpc.matmul {{.*}} -> tensor<2x4x[[LOW]]>
// CHECK-NEXT: return %[[G]] : tensor<2x4x[[LOW]]>
func.func private @matmul_low_loss(%x: tensor<2x4xf16>, %w: tensor<4x4xf32>) -> tensor<f32> {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf16>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %l = mpc.reduce_mean %h {axes = []} in #loss : (tensor<2x4xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
func.func @matmul_of_low(%x: tensor<2x4xf16>, %w: tensor<4x4xf32>) -> tensor<2x4xf16> {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dx = mpc.value_and_grad @matmul_low_loss(%x, %w) seed(%one) {wrt = array<i64: 0>}
      : (tensor<2x4xf16>, tensor<4x4xf32>, tensor<f32>) -> (tensor<f32>, tensor<2x4xf16>)
  return %dx : tensor<2x4xf16>
}

// FORWARD-LABEL: func private @dense_loss
// FORWARD: mpc.matmul {{.*}}, class "allow">{{.*}} : (tensor<2x4x[[LOW]]>, tensor<4x4x[[LOW]]>, tensor<4x[[LOW]]>) -> tensor<2x4x[[LOW]]>
// CHECK-LABEL: func @dense_of_f32
// CHECK-SAME: -> tensor<2x4xf32>
// CHECK: return %{{.*}} : tensor<2x4xf32>
func.func private @dense_loss(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<f32> {
  %h = mpc.matmul %x, %w, %b in #net : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %l = mpc.reduce_mean %h {axes = []} in #loss : (tensor<2x4xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
func.func @dense_of_f32(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf32> {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dx = mpc.value_and_grad @dense_loss(%x, %w, %b) seed(%one) {wrt = array<i64: 0>}
      : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<2x4xf32>)
  return %dx : tensor<2x4xf32>
}

// FORWARD-LABEL: func private @dense_low_loss
// FORWARD: mpc.matmul {{.*}}, class "allow">{{.*}} : (tensor<2x4x[[LOW]]>, tensor<4x4x[[LOW]]>, tensor<4x[[LOW]]>) -> tensor<2x4x[[LOW]]>
// CHECK-LABEL: func @dense_of_low
// CHECK-SAME: -> tensor<2x4x[[LOW]]>
// CHECK: return %{{.*}} : tensor<2x4x[[LOW]]>
func.func private @dense_low_loss(%x: tensor<2x4xf16>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<f32> {
  %h = mpc.matmul %x, %w, %b in #net : (tensor<2x4xf16>, tensor<4x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %l = mpc.reduce_mean %h {axes = []} in #loss : (tensor<2x4xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
func.func @dense_of_low(%x: tensor<2x4xf16>, %w: tensor<4x4xf32>, %b: tensor<4xf32>) -> tensor<2x4xf16> {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dx = mpc.value_and_grad @dense_low_loss(%x, %w, %b) seed(%one) {wrt = array<i64: 0>}
      : (tensor<2x4xf16>, tensor<4x4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<2x4xf16>)
  return %dx : tensor<2x4xf16>
}

// FORWARD-LABEL: func private @conv_loss
// FORWARD: mpc.conv2d {{.*}}, class "allow">{{.*}} : (tensor<1x2x4x4x[[LOW]]>, tensor<2x2x1x1x[[LOW]]>) -> tensor<1x2x4x4x[[LOW]]>
// CHECK-LABEL: func @conv_of_f32
// CHECK-SAME: -> tensor<1x2x4x4xf32>
// CHECK: mpc.conv2d_grad_input {{.*}} -> tensor<1x2x4x4x[[LOW]]>
// CHECK: return %{{.*}} : tensor<1x2x4x4xf32>
func.func private @conv_loss(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) -> tensor<f32> {
  %h = mpc.conv2d %x, %w in #net : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %l = mpc.reduce_mean %h {axes = []} in #loss : (tensor<1x2x4x4xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
func.func @conv_of_f32(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dx = mpc.value_and_grad @conv_loss(%x, %w) seed(%one) {wrt = array<i64: 0>}
      : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>, tensor<f32>) -> (tensor<f32>, tensor<1x2x4x4xf32>)
  return %dx : tensor<1x2x4x4xf32>
}

// FORWARD-LABEL: func private @conv_low_loss
// FORWARD: mpc.conv2d {{.*}}, class "allow">{{.*}} : (tensor<1x2x4x4x[[LOW]]>, tensor<2x2x1x1x[[LOW]]>) -> tensor<1x2x4x4x[[LOW]]>
// CHECK-LABEL: func @conv_of_low
// CHECK-SAME: -> tensor<1x2x4x4x[[LOW]]>
// CHECK: return %{{.*}} : tensor<1x2x4x4x[[LOW]]>
func.func private @conv_low_loss(%x: tensor<1x2x4x4xf16>, %w: tensor<2x2x1x1xf32>) -> tensor<f32> {
  %h = mpc.conv2d %x, %w in #net : (tensor<1x2x4x4xf16>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %l = mpc.reduce_mean %h {axes = []} in #loss : (tensor<1x2x4x4xf32>) -> tensor<f32>
  return %l : tensor<f32>
}
func.func @conv_of_low(%x: tensor<1x2x4x4xf16>, %w: tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf16> {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dx = mpc.value_and_grad @conv_low_loss(%x, %w) seed(%one) {wrt = array<i64: 0>}
      : (tensor<1x2x4x4xf16>, tensor<2x2x1x1xf32>, tensor<f32>) -> (tensor<f32>, tensor<1x2x4x4xf16>)
  return %dx : tensor<1x2x4x4xf16>
}
