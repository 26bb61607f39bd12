// RUN: mpc-opt %s --mpc-fold-activation | FileCheck %s
// RUN: mpc-opt %s --mpc-fold-activation > %t.once && mpc-opt %t.once --mpc-fold-activation | diff %t.once -
// RUN: mpc-opt %s --mpc-attach-target=name=cuda > %t.before && mpc-opt %s --mpc-attach-target=name=cuda --mpc-fold-activation | diff %t.before -
// RUN: mpc-opt %s --mpc-step-pipeline | FileCheck %s --check-prefix=EVAL

// The product keeps its scope, and its other attributes.
// CHECK-LABEL: func @product(
// CHECK-NEXT: %[[Y:.*]] = mpc.matmul %{{.*}}, %{{.*}}, %{{.*}} {activation = gelu_tanh, transpose_b = true} in <"net/fc"> : (tensor<2x4xbf16>, tensor<3x4xbf16>, tensor<3xbf16>) -> tensor<2x3xbf16>
// CHECK-NEXT: return %[[Y]]
// EVAL-LABEL: func @product(
// EVAL-NEXT: mpc.matmul {{.*}}activation = gelu_tanh,
// EVAL-NEXT: return
func.func @product(%x: tensor<2x4xbf16>, %w: tensor<3x4xbf16>, %b: tensor<3xbf16>) -> tensor<2x3xbf16> {
  %z = mpc.matmul %x, %w, %b {transpose_b = true} in <"net/fc">
      : (tensor<2x4xbf16>, tensor<3x4xbf16>, tensor<3xbf16>) -> tensor<2x3xbf16>
  %y = mpc.gelu %z {approximate = tanh} in <"net"> : tensor<2x3xbf16>
  return %y : tensor<2x3xbf16>
}

// CHECK-LABEL: func @convolution(
// CHECK-NEXT: mpc.conv2d %{{.*}}, %{{.*}} {activation = gelu}
// CHECK-NEXT: return
func.func @convolution(%x: tensor<2x3x8x8xf32>, %w: tensor<6x3x3x3xf32>) -> tensor<2x6x6x6xf32> {
  %z = mpc.conv2d %x, %w : (tensor<2x3x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<2x6x6x6xf32>
  %y = mpc.gelu %z : tensor<2x6x6x6xf32>
  return %y : tensor<2x6x6x6xf32>
}

// In bf16 the library's convolutions and a region are faster.
// CHECK-LABEL: func @convolution_in_bf16(
// CHECK-NEXT: mpc.conv2d
// CHECK-NEXT: mpc.gelu
func.func @convolution_in_bf16(%x: tensor<2x3x8x8xbf16>, %w: tensor<6x3x3x3xbf16>) -> tensor<2x6x6x6xbf16> {
  %z = mpc.conv2d %x, %w : (tensor<2x3x8x8xbf16>, tensor<6x3x3x3xbf16>) -> tensor<2x6x6x6xbf16>
  %y = mpc.gelu %z : tensor<2x6x6x6xbf16>
  return %y : tensor<2x6x6x6xbf16>
}

// A dense layer on sequences: what follows reads the reshape.
// CHECK-LABEL: func @through_a_reshape(
// CHECK-NEXT: %[[Y:.*]] = mpc.matmul %{{.*}}, %{{.*}} {activation = gelu}
// CHECK-NEXT: %[[R:.*]] = mpc.reshape %[[Y]]
// CHECK-NEXT: return %[[R]]
func.func @through_a_reshape(%x: tensor<6x4xf16>, %w: tensor<4x3xf16>) -> tensor<2x3x3xf16> {
  %z = mpc.matmul %x, %w : (tensor<6x4xf16>, tensor<4x3xf16>) -> tensor<6x3xf16>
  %r = mpc.reshape %z {shape = [2, 3, 3]} : (tensor<6x3xf16>) -> tensor<2x3x3xf16>
  %y = mpc.gelu %r : tensor<2x3x3xf16>
  return %y : tensor<2x3x3xf16>
}

// What training does: the derivative reads the product.
// CHECK-LABEL: func @two_readers(
// CHECK-NEXT: mpc.matmul %{{.*}}, %{{.*}} : (
// CHECK-NEXT: mpc.gelu
// CHECK-NEXT: mpc.gelu_grad
func.func @two_readers(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %dy: tensor<2x3xf32>)
    -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %z = mpc.matmul %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %y = mpc.gelu %z : tensor<2x3xf32>
  %dz = mpc.gelu_grad %dy, %z backward : tensor<2x3xf32>
  return %y, %dz : tensor<2x3xf32>, tensor<2x3xf32>
}

// A rounding that somebody asked for stays: a cast between them, and a gelu that rounds or widens.
// CHECK-LABEL: func @other_types(
// CHECK-COUNT-3: mpc.gelu
func.func @other_types(%x: tensor<2x4xf16>, %w: tensor<4x3xf16>, %v: tensor<4x3xf16>, %u: tensor<4x3xf16>)
    -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf16>) {
  %0 = mpc.matmul %x, %w : (tensor<2x4xf16>, tensor<4x3xf16>) -> tensor<2x3xf16>
  %1 = mpc.cast %0 : (tensor<2x3xf16>) -> tensor<2x3xf32>
  %2 = mpc.gelu %1 : tensor<2x3xf32>
  %3 = mpc.matmul %x, %v : (tensor<2x4xf16>, tensor<4x3xf16>) -> tensor<2x3xf16>
  %4 = mpc.gelu %3 : (tensor<2x3xf16>) -> tensor<2x3xf32>
  %5 = mpc.matmul %x, %u : (tensor<2x4xf16>, tensor<4x3xf16>) -> tensor<2x3xf32>
  %6 = mpc.gelu %5 : (tensor<2x3xf32>) -> tensor<2x3xf16>
  return %2, %4, %6 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf16>
}

// A product with an activation has no room for another; one that no backward pass keeps stays apart from one that does.
// CHECK-LABEL: func @stays(
// CHECK-COUNT-3: mpc.gelu
func.func @stays(%x: tensor<2x4xf32>, %w: tensor<4x3xf32>, %v: tensor<4x3xf32>)
    -> (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x4xf32>) {
  %0 = mpc.matmul %x, %w {activation = relu} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %1 = mpc.gelu %0 : tensor<2x3xf32>
  %2 = mpc.matmul %x, %v : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %3 = mpc.gelu %2 {mpc.recompute = 1 : i64} : tensor<2x3xf32>
  %4 = mpc.gelu %x : tensor<2x4xf32>
  return %1, %3, %4 : tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x4xf32>
}
