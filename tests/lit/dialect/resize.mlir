// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s

// Images resized, and the derivative.

// CHECK-LABEL: func @resize(
// CHECK: mpc.resize %{{.*}} {size = [14, 5]} : (tensor<2x3x7x5xf16>) -> tensor<2x3x14x5xf16>
// CHECK: mpc.resize %{{.*}} {coordinates = half_pixel, data_format = NHWC, interpolation = bilinear, size = [4, 4]} : (tensor<2x3x7x5xf16>) -> tensor<2x4x4x5xf16>
// CHECK: mpc.resize %{{.*}} {coordinates = align_corners, size = [1, 2]} : (tensor<2x3x7x5xf16>) -> tensor<2x3x1x2xf16>
func.func @resize(%0: tensor<2x3x7x5xf16>) -> (tensor<2x3x14x5xf16>, tensor<2x4x4x5xf16>, tensor<2x3x1x2xf16>) {
  %r0 = mpc.resize %0 {coordinates = asymmetric, interpolation = nearest, size = [14, 5]}
      : (tensor<2x3x7x5xf16>) -> tensor<2x3x14x5xf16>
  %r1 = mpc.resize %0 {coordinates = half_pixel, data_format = NHWC, interpolation = bilinear, size = [4, 4]}
      : (tensor<2x3x7x5xf16>) -> tensor<2x4x4x5xf16>
  %r2 = mpc.resize %0 {coordinates = align_corners, size = [1, 2]} : (tensor<2x3x7x5xf16>) -> tensor<2x3x1x2xf16>
  return %r0, %r1, %r2 : tensor<2x3x14x5xf16>, tensor<2x4x4x5xf16>, tensor<2x3x1x2xf16>
}

// CHECK-LABEL: func @resize_grad(
// CHECK: mpc.resize_grad %{{.*}} {coordinates = half_pixel, input_shape = [2, 3, 7, 5], interpolation = bilinear} : (tensor<2x3x14x5xf32>) -> tensor<2x3x7x5xf32>
func.func @resize_grad(%0: tensor<2x3x14x5xf32>) -> tensor<2x3x7x5xf32> {
  %r0 = mpc.resize_grad %0 {coordinates = half_pixel, input_shape = [2, 3, 7, 5], interpolation = bilinear}
      : (tensor<2x3x14x5xf32>) -> tensor<2x3x7x5xf32>
  return %r0 : tensor<2x3x7x5xf32>
}
