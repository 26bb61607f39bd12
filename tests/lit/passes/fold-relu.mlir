// RUN: mpc-opt %s --mpc-attach-target=name=cuda --mpc-fold-activation | FileCheck %s
// RUN: mpc-opt %s --mpc-attach-target=name=cuda --mpc-fold-activation > %t.once && mpc-opt %t.once --mpc-fold-activation | diff %t.once -
// RUN: mpc-opt %s > %t.before && mpc-opt %s --mpc-fold-activation | diff %t.before -

// The derivative reads what relu has computed, which is now the product's result.
// CHECK-LABEL: func @product(
// CHECK-NEXT: %[[Y:.*]] = mpc.matmul %{{.*}}, %{{.*}}, %{{.*}} {activation = relu, transpose_b = true} in <"net/fc">
// CHECK-NEXT: %[[D:.*]] = mpc.relu_grad %{{.*}}, %[[Y]] backward
// CHECK-NEXT: return %[[Y]], %[[D]]
func.func @product(%x: tensor<2x4xf16>, %w: tensor<3x4xf16>, %b: tensor<3xf16>, %dy: tensor<2x3xf16>)
    -> (tensor<2x3xf16>, tensor<2x3xf16>) {
  %z = mpc.matmul %x, %w, %b {transpose_b = true} in <"net/fc">
      : (tensor<2x4xf16>, tensor<3x4xf16>, tensor<3xf16>) -> tensor<2x3xf16>
  %y = mpc.relu %z in <"net"> : tensor<2x3xf16>
  %d = mpc.relu_grad %dy, %y backward in <"net"> : tensor<2x3xf16>
  return %y, %d : tensor<2x3xf16>, tensor<2x3xf16>
}

// CHECK-LABEL: func @behind_max_pooling(
// CHECK-NEXT: %[[C:.*]] = mpc.conv2d %{{.*}}, %{{.*}} {activation = relu}
// CHECK-NEXT: %[[P:.*]], %[[I:.*]] = mpc.max_pool2d %[[C]]
// CHECK-NEXT: return %[[P]], %[[I]]
func.func @behind_max_pooling(%x: tensor<2x3x8x8xf16>, %w: tensor<6x3x3x3xf16>)
    -> (tensor<2x6x3x3xf16>, tensor<2x6x3x3xi8>) {
  %c = mpc.conv2d %x, %w : (tensor<2x3x8x8xf16>, tensor<6x3x3x3xf16>) -> tensor<2x6x6x6xf16>
  %p, %i = mpc.max_pool2d %c {kernel_size = [2, 2], strides = [2, 2]}
      : (tensor<2x6x6x6xf16>) -> (tensor<2x6x3x3xf16>, tensor<2x6x3x3xi8>)
  %y = mpc.relu %p : tensor<2x6x3x3xf16>
  return %y, %i : tensor<2x6x3x3xf16>, tensor<2x6x3x3xi8>
}

// What is pooled or multiplied is read by something else, too.
// CHECK-LABEL: func @other_readers(
// CHECK-COUNT-2: mpc.relu
func.func @other_readers(%x: tensor<2x3x8x8xf16>, %w: tensor<6x3x3x3xf16>, %a: tensor<2x4xf16>, %b: tensor<4x3xf16>)
    -> (tensor<2x6x3x3xf16>, tensor<2x6x6x6xf16>, tensor<2x3xf16>, tensor<2x3xf16>) {
  %c = mpc.conv2d %x, %w : (tensor<2x3x8x8xf16>, tensor<6x3x3x3xf16>) -> tensor<2x6x6x6xf16>
  %p, %i = mpc.max_pool2d %c {kernel_size = [2, 2], strides = [2, 2]}
      : (tensor<2x6x6x6xf16>) -> (tensor<2x6x3x3xf16>, tensor<2x6x3x3xi8>)
  %y = mpc.relu %p : tensor<2x6x3x3xf16>
  %z = mpc.matmul %a, %b : (tensor<2x4xf16>, tensor<4x3xf16>) -> tensor<2x3xf16>
  %r = mpc.relu %z : tensor<2x3xf16>
  return %y, %c, %z, %r : tensor<2x6x3x3xf16>, tensor<2x6x6x6xf16>, tensor<2x3xf16>, tensor<2x3xf16>
}

// The 8 MB of the product move for longer than a launch takes. Average pooling does not commute with relu. Nothing can
// take a second activation.
// CHECK-LABEL: func @stays(
// CHECK-COUNT-3: mpc.relu %
func.func @stays(%x: tensor<2048x4xf16>, %w: tensor<4x2048xf16>, %i: tensor<2x3x8x8xf16>, %k: tensor<6x3x3x3xf16>,
                 %a: tensor<2x4xf16>, %b: tensor<4x3xf16>)
    -> (tensor<2048x2048xf16>, tensor<2x6x3x3xf16>, tensor<2x3xf16>) {
  %z = mpc.matmul %x, %w : (tensor<2048x4xf16>, tensor<4x2048xf16>) -> tensor<2048x2048xf16>
  %y = mpc.relu %z : tensor<2048x2048xf16>
  %c = mpc.conv2d %i, %k : (tensor<2x3x8x8xf16>, tensor<6x3x3x3xf16>) -> tensor<2x6x6x6xf16>
  %p = mpc.avg_pool2d %c {kernel_size = [2, 2], strides = [2, 2]} : (tensor<2x6x6x6xf16>) -> tensor<2x6x3x3xf16>
  %q = mpc.relu %p : tensor<2x6x3x3xf16>
  %t = mpc.matmul %a, %b {activation = tanh} : (tensor<2x4xf16>, tensor<4x3xf16>) -> tensor<2x3xf16>
  %s = mpc.relu %t : tensor<2x3xf16>
  return %y, %q, %s : tensor<2048x2048xf16>, tensor<2x6x3x3xf16>, tensor<2x3xf16>
}
