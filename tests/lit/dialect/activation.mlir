// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s

// Activation functions, other element-wise functions, and their gradient operations.

// CHECK-LABEL: func @abs(
// CHECK: mpc.abs %{{.*}} : tensor<2x3xf32>
func.func @abs(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.abs %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @floor(
// CHECK: mpc.floor %{{.*}} : tensor<2x3xf32>
func.func @floor(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.floor %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @square(
// CHECK: mpc.square %{{.*}} : tensor<2x3xf32>
func.func @square(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.square %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @log1p(
// CHECK: mpc.log1p %{{.*}} : tensor<2x3xf32>
func.func @log1p(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.log1p %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @sin(
// CHECK: mpc.sin %{{.*}} : tensor<2x3xf32>
func.func @sin(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.sin %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @cos(
// CHECK: mpc.cos %{{.*}} : tensor<2x3xf32>
func.func @cos(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.cos %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @silu(
// CHECK: mpc.silu %{{.*}} : tensor<2x3xf32>
func.func @silu(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.silu %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @abs_grad(
// CHECK: mpc.abs_grad %{{.*}}, %{{.*}} : (tensor<2x3xf16>, tensor<2x3xf32>) -> tensor<2x3xf16>
func.func @abs_grad(%0: tensor<2x3xf16>, %1: tensor<2x3xf32>) -> tensor<2x3xf16> {
  %r0 = mpc.abs_grad %0, %1 : (tensor<2x3xf16>, tensor<2x3xf32>) -> tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @square_grad(
// CHECK: mpc.square_grad %{{.*}}, %{{.*}} : (tensor<2x3xf16>, tensor<2x3xf32>) -> tensor<2x3xf16>
func.func @square_grad(%0: tensor<2x3xf16>, %1: tensor<2x3xf32>) -> tensor<2x3xf16> {
  %r0 = mpc.square_grad %0, %1 : (tensor<2x3xf16>, tensor<2x3xf32>) -> tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @log1p_grad(
// CHECK: mpc.log1p_grad %{{.*}}, %{{.*}} : (tensor<2x3xf16>, tensor<2x3xf32>) -> tensor<2x3xf16>
func.func @log1p_grad(%0: tensor<2x3xf16>, %1: tensor<2x3xf32>) -> tensor<2x3xf16> {
  %r0 = mpc.log1p_grad %0, %1 : (tensor<2x3xf16>, tensor<2x3xf32>) -> tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @sin_grad(
// CHECK: mpc.sin_grad %{{.*}}, %{{.*}} : (tensor<2x3xf16>, tensor<2x3xf32>) -> tensor<2x3xf16>
func.func @sin_grad(%0: tensor<2x3xf16>, %1: tensor<2x3xf32>) -> tensor<2x3xf16> {
  %r0 = mpc.sin_grad %0, %1 : (tensor<2x3xf16>, tensor<2x3xf32>) -> tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @cos_grad(
// CHECK: mpc.cos_grad %{{.*}}, %{{.*}} : (tensor<2x3xf16>, tensor<2x3xf32>) -> tensor<2x3xf16>
func.func @cos_grad(%0: tensor<2x3xf16>, %1: tensor<2x3xf32>) -> tensor<2x3xf16> {
  %r0 = mpc.cos_grad %0, %1 : (tensor<2x3xf16>, tensor<2x3xf32>) -> tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @erf(
// CHECK: mpc.erf %{{.*}} : tensor<2x3xf32>
func.func @erf(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.erf %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @erf_grad(
// CHECK: mpc.erf_grad %{{.*}}, %{{.*}} : tensor<2x3xf16>
func.func @erf_grad(%0: tensor<2x3xf16>, %1: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %r0 = mpc.erf_grad %0, %1 : tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @hard_swish(
// CHECK: mpc.hard_swish %{{.*}} : tensor<2x3xf32>
func.func @hard_swish(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.hard_swish %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @hard_swish_grad(
// CHECK: mpc.hard_swish_grad %{{.*}}, %{{.*}} : (tensor<2x3xf16>, tensor<2x3xf32>) -> tensor<2x3xf16>
func.func @hard_swish_grad(%0: tensor<2x3xf16>, %1: tensor<2x3xf32>) -> tensor<2x3xf16> {
  %r0 = mpc.hard_swish_grad %0, %1 : (tensor<2x3xf16>, tensor<2x3xf32>) -> tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @silu_grad(
// CHECK: mpc.silu_grad %{{.*}}, %{{.*}} : (tensor<2x3xf16>, tensor<2x3xf32>) -> tensor<2x3xf16>
func.func @silu_grad(%0: tensor<2x3xf16>, %1: tensor<2x3xf32>) -> tensor<2x3xf16> {
  %r0 = mpc.silu_grad %0, %1 : (tensor<2x3xf16>, tensor<2x3xf32>) -> tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @gelu(
// CHECK: mpc.gelu %{{.*}} : tensor<2x3xf16>
func.func @gelu(%0: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %r0 = mpc.gelu %0 : tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @gelu_tanh(
// CHECK: mpc.gelu %{{.*}} {approximate = tanh} : tensor<2x3xf32>
func.func @gelu_tanh(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.gelu %0 {approximate = tanh} : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @gelu_grad(
// CHECK: mpc.gelu_grad %{{.*}}, %{{.*}} {approximate = tanh} : tensor<2x3xf16>
func.func @gelu_grad(%0: tensor<2x3xf16>, %1: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %r0 = mpc.gelu_grad %0, %1 {approximate = tanh} : tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @leaky_relu(
// CHECK: mpc.leaky_relu %{{.*}} : tensor<2x3xf32>
func.func @leaky_relu(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.leaky_relu %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @leaky_relu_alpha(
// CHECK: mpc.leaky_relu %{{.*}} {alpha = 5.000000e-01} : tensor<2x3xf32>
func.func @leaky_relu_alpha(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.leaky_relu %0 {alpha = 5.000000e-01} : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @leaky_relu_grad(
// CHECK: mpc.leaky_relu_grad %{{.*}}, %{{.*}} {alpha = 5.000000e-01} : tensor<2x3xf32>
func.func @leaky_relu_grad(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.leaky_relu_grad %0, %1 {alpha = 5.000000e-01}
      : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @prelu(
// CHECK: mpc.prelu %{{.*}}, %{{.*}} : (tensor<2x3x4x5xf32>, tensor<3xf32>) -> tensor<2x3x4x5xf32>
func.func @prelu(%0: tensor<2x3x4x5xf32>, %1: tensor<3xf32>) -> tensor<2x3x4x5xf32> {
  %r0 = mpc.prelu %0, %1 : (tensor<2x3x4x5xf32>, tensor<3xf32>) -> tensor<2x3x4x5xf32>
  return %r0 : tensor<2x3x4x5xf32>
}

// CHECK-LABEL: func @prelu_one_slope(
// CHECK: mpc.prelu %{{.*}}, %{{.*}} : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
func.func @prelu_one_slope(%0: tensor<2x3xf32>, %1: tensor<1xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.prelu %0, %1 : (tensor<2x3xf32>, tensor<1xf32>) -> tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @prelu_nhwc(
// CHECK: mpc.prelu %{{.*}}, %{{.*}} {data_format = NHWC} : (tensor<2x4x5x3xf16>, tensor<3xf16>) -> tensor<2x4x5x3xf16>
func.func @prelu_nhwc(%0: tensor<2x4x5x3xf16>, %1: tensor<3xf16>) -> tensor<2x4x5x3xf16> {
  %r0 = mpc.prelu %0, %1 {data_format = NHWC} : (tensor<2x4x5x3xf16>, tensor<3xf16>) -> tensor<2x4x5x3xf16>
  return %r0 : tensor<2x4x5x3xf16>
}

// CHECK-LABEL: func @prelu_grad(
// CHECK: mpc.prelu_grad %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<3xf32>) -> (tensor<2x3x4x5xf32>, tensor<3xf32>)
func.func @prelu_grad(%0: tensor<2x3x4x5xf32>, %1: tensor<2x3x4x5xf32>, %2: tensor<3xf32>) -> (tensor<2x3x4x5xf32>, tensor<3xf32>) {
  %r0, %r1 = mpc.prelu_grad %0, %1, %2
      : (tensor<2x3x4x5xf32>, tensor<2x3x4x5xf32>, tensor<3xf32>) -> (tensor<2x3x4x5xf32>, tensor<3xf32>)
  return %r0, %r1 : tensor<2x3x4x5xf32>, tensor<3xf32>
}

// CHECK-LABEL: func @pow(
// CHECK: mpc.pow %{{.*}} {exponent = 1.500000e+00} : tensor<2x3xf32>
func.func @pow(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.pow %0 {exponent = 1.500000e+00} : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @pow_grad(
// CHECK: mpc.pow_grad %{{.*}}, %{{.*}} {exponent = 1.500000e+00} : tensor<2x3xf32>
func.func @pow_grad(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.pow_grad %0, %1 {exponent = 1.500000e+00} : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @clamp(
// CHECK: mpc.clamp %{{.*}} {maximum = 6.000000e+00, minimum = 0.000000e+00} : tensor<2x3xf16>
func.func @clamp(%0: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %r0 = mpc.clamp %0 {maximum = 6.000000e+00, minimum = 0.000000e+00}
      : tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @clamp_grad(
// CHECK: mpc.clamp_grad %{{.*}}, %{{.*}} {maximum = 6.000000e+00, minimum = 0.000000e+00} : tensor<2x3xf16>
func.func @clamp_grad(%0: tensor<2x3xf16>, %1: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %r0 = mpc.clamp_grad %0, %1 {maximum = 6.000000e+00, minimum = 0.000000e+00}
      : tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @minimum(
// CHECK: mpc.minimum %{{.*}}, %{{.*}} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
func.func @minimum(%0: tensor<2x3xf32>, %1: tensor<3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.minimum %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @minimum_grad(
// CHECK: mpc.minimum_grad %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
func.func @minimum_grad(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>, %2: tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>) {
  %r0, %r1 = mpc.minimum_grad %0, %1, %2
      : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return %r0, %r1 : tensor<2x3xf32>, tensor<2x3xf32>
}

// CHECK-LABEL: func @greater(
// CHECK: mpc.greater %{{.*}}, %{{.*}} : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
func.func @greater(%0: tensor<2x3xf32>, %1: tensor<3xf32>) -> tensor<2x3xi1> {
  %r0 = mpc.greater %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  return %r0 : tensor<2x3xi1>
}

// CHECK-LABEL: func @less(
// CHECK: mpc.less %{{.*}}, %{{.*}} : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi1>
func.func @less(%0: tensor<2x3xi32>, %1: tensor<i32>) -> tensor<2x3xi1> {
  %r0 = mpc.less %0, %1 : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi1>
  return %r0 : tensor<2x3xi1>
}

// CHECK-LABEL: func @not_equal(
// CHECK: mpc.not_equal %{{.*}}, %{{.*}} : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi1>
func.func @not_equal(%0: tensor<2x3xi32>, %1: tensor<i32>) -> tensor<2x3xi1> {
  %r0 = mpc.not_equal %0, %1 : (tensor<2x3xi32>, tensor<i32>) -> tensor<2x3xi1>
  return %r0 : tensor<2x3xi1>
}

// CHECK-LABEL: func @greater_equal(
// CHECK: mpc.greater_equal %{{.*}}, %{{.*}} : (tensor<2x3xf16>, tensor<3xf32>) -> tensor<2x3xi1>
func.func @greater_equal(%0: tensor<2x3xf16>, %1: tensor<3xf32>) -> tensor<2x3xi1> {
  %r0 = mpc.greater_equal %0, %1 : (tensor<2x3xf16>, tensor<3xf32>) -> tensor<2x3xi1>
  return %r0 : tensor<2x3xi1>
}

// CHECK-LABEL: func @less_equal(
// CHECK: mpc.less_equal %{{.*}}, %{{.*}} : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
func.func @less_equal(%0: tensor<2x1xf32>, %1: tensor<3xf32>) -> tensor<2x3xi1> {
  %r0 = mpc.less_equal %0, %1 : (tensor<2x1xf32>, tensor<3xf32>) -> tensor<2x3xi1>
  return %r0 : tensor<2x3xi1>
}

// CHECK-LABEL: func @logical_and(
// CHECK: mpc.logical_and %{{.*}}, %{{.*}} : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
func.func @logical_and(%0: tensor<2x3xi1>, %1: tensor<3xi1>) -> tensor<2x3xi1> {
  %r0 = mpc.logical_and %0, %1 : (tensor<2x3xi1>, tensor<3xi1>) -> tensor<2x3xi1>
  return %r0 : tensor<2x3xi1>
}

// CHECK-LABEL: func @logical_or(
// CHECK: mpc.logical_or %{{.*}}, %{{.*}} : tensor<2x3xi1>
func.func @logical_or(%0: tensor<2x3xi1>, %1: tensor<2x3xi1>) -> tensor<2x3xi1> {
  %r0 = mpc.logical_or %0, %1 : tensor<2x3xi1>
  return %r0 : tensor<2x3xi1>
}

// CHECK-LABEL: func @logical_not(
// CHECK: mpc.logical_not %{{.*}} : tensor<2x3xi1>
func.func @logical_not(%0: tensor<2x3xi1>) -> tensor<2x3xi1> {
  %r0 = mpc.logical_not %0 : tensor<2x3xi1>
  return %r0 : tensor<2x3xi1>
}

// CHECK-LABEL: func @where(
// CHECK: mpc.where %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x1xi1>, tensor<3xf32>, tensor<f32>) -> tensor<2x3xf32>
func.func @where(%0: tensor<2x1xi1>, %1: tensor<3xf32>, %2: tensor<f32>) -> tensor<2x3xf32> {
  %r0 = mpc.where %0, %1, %2 : (tensor<2x1xi1>, tensor<3xf32>, tensor<f32>) -> tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @where_labels(
// CHECK: mpc.where %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x1xi1>, tensor<3xi64>, tensor<i64>) -> tensor<2x3xi64>
func.func @where_labels(%0: tensor<2x1xi1>, %1: tensor<3xi64>, %2: tensor<i64>) -> tensor<2x3xi64> {
  %r0 = mpc.where %0, %1, %2 : (tensor<2x1xi1>, tensor<3xi64>, tensor<i64>) -> tensor<2x3xi64>
  return %r0 : tensor<2x3xi64>
}

// CHECK-LABEL: func @where_flags(
// CHECK: mpc.where %{{.*}}, %{{.*}}, %{{.*}} : tensor<2xi1>
func.func @where_flags(%0: tensor<2xi1>, %1: tensor<2xi1>, %2: tensor<2xi1>) -> tensor<2xi1> {
  %r0 = mpc.where %0, %1, %2 : tensor<2xi1>
  return %r0 : tensor<2xi1>
}
