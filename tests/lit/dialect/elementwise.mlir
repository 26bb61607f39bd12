// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s

// Every element-wise operation, cast, data movement and reduction.

// CHECK-LABEL: func @constant(
// CHECK: mpc.constant {value = dense<1.000000e+00> : tensor<2xf16>} : () -> tensor<2xf16>
func.func @constant() -> tensor<2xf16> {
  %r0 = mpc.constant {value = dense<1.000000e+00> : tensor<2xf16>} : () -> tensor<2xf16>
  return %r0 : tensor<2xf16>
}

// CHECK-LABEL: func @random(
// CHECK: mpc.random %{{.*}} {a = -1.000000e+00, distribution = uniform, shape = [2, 3]} : (tensor<i64>) -> tensor<2x3xf32>
func.func @random(%0: tensor<i64>) -> tensor<2x3xf32> {
  %r0 = mpc.random %0 {a = -1.000000e+00, distribution = uniform, shape = [2, 3]}
      : (tensor<i64>) -> tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @relu(
// CHECK: mpc.relu %{{.*}} : tensor<2x3xf32>
func.func @relu(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.relu %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @sigmoid(
// CHECK: mpc.sigmoid %{{.*}} : tensor<2x3xf32>
func.func @sigmoid(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.sigmoid %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @tanh(
// CHECK: mpc.tanh %{{.*}} : tensor<2x3xf32>
func.func @tanh(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.tanh %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @exp(
// CHECK: mpc.exp %{{.*}} : tensor<2x3xf32>
func.func @exp(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.exp %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @log(
// CHECK: mpc.log %{{.*}} : tensor<2x3xf32>
func.func @log(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.log %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @sqrt(
// CHECK: mpc.sqrt %{{.*}} : tensor<2x3xf32>
func.func @sqrt(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.sqrt %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @neg(
// CHECK: mpc.neg %{{.*}} : tensor<2x3xf32>
func.func @neg(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.neg %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @relu_low(
// CHECK: mpc.relu %{{.*}} : tensor<4xbf16>
func.func @relu_low(%0: tensor<4xbf16>) -> tensor<4xbf16> {
  %r0 = mpc.relu %0 : tensor<4xbf16>
  return %r0 : tensor<4xbf16>
}

// CHECK-LABEL: func @tanh_mixed(
// CHECK: mpc.tanh %{{.*}} : (tensor<4xf16>) -> tensor<4xf32>
func.func @tanh_mixed(%0: tensor<4xf16>) -> tensor<4xf32> {
  %r0 = mpc.tanh %0 : (tensor<4xf16>) -> tensor<4xf32>
  return %r0 : tensor<4xf32>
}

// CHECK-LABEL: func @relu_grad(
// CHECK: mpc.relu_grad %{{.*}}, %{{.*}} : tensor<2x3xf16>
func.func @relu_grad(%0: tensor<2x3xf16>, %1: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %r0 = mpc.relu_grad %0, %1 : tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @sigmoid_grad(
// CHECK: mpc.sigmoid_grad %{{.*}}, %{{.*}} : tensor<2x3xf16>
func.func @sigmoid_grad(%0: tensor<2x3xf16>, %1: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %r0 = mpc.sigmoid_grad %0, %1 : tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @tanh_grad(
// CHECK: mpc.tanh_grad %{{.*}}, %{{.*}} : tensor<2x3xf16>
func.func @tanh_grad(%0: tensor<2x3xf16>, %1: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %r0 = mpc.tanh_grad %0, %1 : tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @sqrt_grad(
// CHECK: mpc.sqrt_grad %{{.*}}, %{{.*}} : tensor<2x3xf16>
func.func @sqrt_grad(%0: tensor<2x3xf16>, %1: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %r0 = mpc.sqrt_grad %0, %1 : tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @add(
// CHECK: mpc.add %{{.*}}, %{{.*}} : (tensor<4x1x5xf32>, tensor<3x1xf32>) -> tensor<4x3x5xf32>
func.func @add(%0: tensor<4x1x5xf32>, %1: tensor<3x1xf32>) -> tensor<4x3x5xf32> {
  %r0 = mpc.add %0, %1 : (tensor<4x1x5xf32>, tensor<3x1xf32>) -> tensor<4x3x5xf32>
  return %r0 : tensor<4x3x5xf32>
}

// CHECK-LABEL: func @sub(
// CHECK: mpc.sub %{{.*}}, %{{.*}} : (tensor<4x1x5xf32>, tensor<3x1xf32>) -> tensor<4x3x5xf32>
func.func @sub(%0: tensor<4x1x5xf32>, %1: tensor<3x1xf32>) -> tensor<4x3x5xf32> {
  %r0 = mpc.sub %0, %1 : (tensor<4x1x5xf32>, tensor<3x1xf32>) -> tensor<4x3x5xf32>
  return %r0 : tensor<4x3x5xf32>
}

// CHECK-LABEL: func @mul(
// CHECK: mpc.mul %{{.*}}, %{{.*}} : (tensor<4x1x5xf32>, tensor<3x1xf32>) -> tensor<4x3x5xf32>
func.func @mul(%0: tensor<4x1x5xf32>, %1: tensor<3x1xf32>) -> tensor<4x3x5xf32> {
  %r0 = mpc.mul %0, %1 : (tensor<4x1x5xf32>, tensor<3x1xf32>) -> tensor<4x3x5xf32>
  return %r0 : tensor<4x3x5xf32>
}

// CHECK-LABEL: func @div(
// CHECK: mpc.div %{{.*}}, %{{.*}} : (tensor<4x1x5xf32>, tensor<3x1xf32>) -> tensor<4x3x5xf32>
func.func @div(%0: tensor<4x1x5xf32>, %1: tensor<3x1xf32>) -> tensor<4x3x5xf32> {
  %r0 = mpc.div %0, %1 : (tensor<4x1x5xf32>, tensor<3x1xf32>) -> tensor<4x3x5xf32>
  return %r0 : tensor<4x3x5xf32>
}

// CHECK-LABEL: func @maximum(
// CHECK: mpc.maximum %{{.*}}, %{{.*}} : (tensor<4x1x5xf32>, tensor<3x1xf32>) -> tensor<4x3x5xf32>
func.func @maximum(%0: tensor<4x1x5xf32>, %1: tensor<3x1xf32>) -> tensor<4x3x5xf32> {
  %r0 = mpc.maximum %0, %1 : (tensor<4x1x5xf32>, tensor<3x1xf32>) -> tensor<4x3x5xf32>
  return %r0 : tensor<4x3x5xf32>
}

// CHECK-LABEL: func @div_grad(
// CHECK: mpc.div_grad %{{.*}}, %{{.*}}, %{{.*}} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
func.func @div_grad(%0: tensor<4x3xf32>, %1: tensor<4x3xf32>, %2: tensor<3xf32>) -> tensor<4x3xf32> {
  %r0 = mpc.div_grad %0, %1, %2 : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<3xf32>) -> tensor<4x3xf32>
  return %r0 : tensor<4x3xf32>
}

// CHECK-LABEL: func @maximum_grad(
// CHECK: mpc.maximum_grad %{{.*}}, %{{.*}}, %{{.*}} : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
func.func @maximum_grad(%0: tensor<4x3xf32>, %1: tensor<4x3xf32>, %2: tensor<3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>) {
  %r0, %r1 = mpc.maximum_grad %0, %1, %2
      : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<3xf32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return %r0, %r1 : tensor<4x3xf32>, tensor<4x3xf32>
}

// CHECK-LABEL: func @add_scalar(
// CHECK: mpc.add_scalar %{{.*}} {value = 3.906250e-03} : tensor<2x3xf16>
func.func @add_scalar(%0: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %r0 = mpc.add_scalar %0 {value = 3.906250e-03} : tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @mul_scalar(
// CHECK: mpc.mul_scalar %{{.*}} {value = 5.000000e-01} : tensor<2x3xf16>
func.func @mul_scalar(%0: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %r0 = mpc.mul_scalar %0 {value = 5.000000e-01} : tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @sum_n(
// CHECK: mpc.sum_n %{{.*}}, %{{.*}}, %{{.*}} : tensor<2x3xf16>
func.func @sum_n(%0: tensor<2x3xf16>, %1: tensor<2x3xf16>, %2: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %r0 = mpc.sum_n %0, %1, %2 : tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @equal(
// CHECK: mpc.equal %{{.*}}, %{{.*}} : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi1>
func.func @equal(%0: tensor<2x3xi32>, %1: tensor<3xi32>) -> tensor<2x3xi1> {
  %r0 = mpc.equal %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi1>
  return %r0 : tensor<2x3xi1>
}

// CHECK-LABEL: func @select_scalar(
// CHECK: mpc.select %{{.*}}, %{{.*}}, %{{.*}} : (tensor<i1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
func.func @select_scalar(%0: tensor<i1>, %1: tensor<2x3xf32>, %2: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.select %0, %1, %2 : (tensor<i1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @select_mask(
// CHECK: mpc.select %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x3xi1>, tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
func.func @select_mask(%0: tensor<2x3xi1>, %1: tensor<2x3xi32>, %2: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %r0 = mpc.select %0, %1, %2 : (tensor<2x3xi1>, tensor<2x3xi32>, tensor<2x3xi32>) -> tensor<2x3xi32>
  return %r0 : tensor<2x3xi32>
}

// CHECK-LABEL: func @cast(
// CHECK: mpc.cast %{{.*}} : (tensor<2x3xf32>) -> tensor<2x3xf16>
func.func @cast(%0: tensor<2x3xf32>) -> tensor<2x3xf16> {
  %r0 = mpc.cast %0 : (tensor<2x3xf32>) -> tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @cast_user(
// CHECK: mpc.cast %{{.*}} {user = true} : (tensor<2x3xf16>) -> tensor<2x3xbf16>
func.func @cast_user(%0: tensor<2x3xf16>) -> tensor<2x3xbf16> {
  %r0 = mpc.cast %0 {user = true} : (tensor<2x3xf16>) -> tensor<2x3xbf16>
  return %r0 : tensor<2x3xbf16>
}

// CHECK-LABEL: func @stop_gradient(
// CHECK: mpc.stop_gradient %{{.*}} : tensor<2x3xf32>
func.func @stop_gradient(%0: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.stop_gradient %0 : tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @dropout(
// CHECK: mpc.dropout %{{.*}}, %{{.*}}, %{{.*}} {call_site = 3, p = 5.000000e-01} : (tensor<2x3xf32>, tensor<i64>, tensor<i32>) -> tensor<2x3xf32>
func.func @dropout(%0: tensor<2x3xf32>, %1: tensor<i64>, %2: tensor<i32>) -> tensor<2x3xf32> {
  %r0 = mpc.dropout %0, %1, %2 {call_site = 3, p = 5.000000e-01}
      : (tensor<2x3xf32>, tensor<i64>, tensor<i32>) -> tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @reshape(
// CHECK: mpc.reshape %{{.*}} {shape = [6]} : (tensor<2x3xf32>) -> tensor<6xf32>
func.func @reshape(%0: tensor<2x3xf32>) -> tensor<6xf32> {
  %r0 = mpc.reshape %0 {shape = [6]} : (tensor<2x3xf32>) -> tensor<6xf32>
  return %r0 : tensor<6xf32>
}

// CHECK-LABEL: func @reshape_scalar(
// CHECK: mpc.reshape %{{.*}} {shape = []} : (tensor<1xi64>) -> tensor<i64>
func.func @reshape_scalar(%0: tensor<1xi64>) -> tensor<i64> {
  %r0 = mpc.reshape %0 {shape = []} : (tensor<1xi64>) -> tensor<i64>
  return %r0 : tensor<i64>
}

// CHECK-LABEL: func @transpose(
// CHECK: mpc.transpose %{{.*}} {permutation = [2, 0, 1]} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
func.func @transpose(%0: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  %r0 = mpc.transpose %0 {permutation = [2, 0, 1]} : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  return %r0 : tensor<4x2x3xf32>
}

// CHECK-LABEL: func @broadcast_to(
// CHECK: mpc.broadcast_to %{{.*}} {shape = [2, 3, 4]} : (tensor<3x1xf32>) -> tensor<2x3x4xf32>
func.func @broadcast_to(%0: tensor<3x1xf32>) -> tensor<2x3x4xf32> {
  %r0 = mpc.broadcast_to %0 {shape = [2, 3, 4]} : (tensor<3x1xf32>) -> tensor<2x3x4xf32>
  return %r0 : tensor<2x3x4xf32>
}

// CHECK-LABEL: func @reduce_sum(
// CHECK: mpc.reduce_sum %{{.*}} {axes = [0, 2]} : (tensor<2x3x4xf16>) -> tensor<3xf32>
func.func @reduce_sum(%0: tensor<2x3x4xf16>) -> tensor<3xf32> {
  %r0 = mpc.reduce_sum %0 {axes = [0, 2]} : (tensor<2x3x4xf16>) -> tensor<3xf32>
  return %r0 : tensor<3xf32>
}

// CHECK-LABEL: func @reduce_mean(
// CHECK: mpc.reduce_mean %{{.*}} {axes = [], keep_dims = true} : (tensor<2x3xf32>) -> tensor<1x1xf32>
func.func @reduce_mean(%0: tensor<2x3xf32>) -> tensor<1x1xf32> {
  %r0 = mpc.reduce_mean %0 {axes = [], keep_dims = true} : (tensor<2x3xf32>) -> tensor<1x1xf32>
  return %r0 : tensor<1x1xf32>
}

// CHECK-LABEL: func @argmax(
// CHECK: mpc.argmax %{{.*}} {axis = 1} : (tensor<5x4x3xf32>) -> tensor<5x3xi32>
func.func @argmax(%0: tensor<5x4x3xf32>) -> tensor<5x3xi32> {
  %r0 = mpc.argmax %0 {axis = 1} : (tensor<5x4x3xf32>) -> tensor<5x3xi32>
  return %r0 : tensor<5x3xi32>
}

// CHECK-LABEL: func @iota(
// CHECK: mpc.iota {axis = 0, shape = [2, 3]} : () -> tensor<2x3xi64>
// CHECK: mpc.iota {shape = [4], start = 10, step = -1} : () -> tensor<4xf32>
func.func @iota() -> (tensor<2x3xi64>, tensor<4xf32>) {
  %r0 = mpc.iota {axis = 0, shape = [2, 3]} : () -> tensor<2x3xi64>
  %r1 = mpc.iota {shape = [4], start = 10, step = -1} : () -> tensor<4xf32>
  return %r0, %r1 : tensor<2x3xi64>, tensor<4xf32>
}

// CHECK-LABEL: func @stop_gradient_of_labels(
// CHECK: mpc.stop_gradient %{{.*}} : tensor<2xi64>
func.func @stop_gradient_of_labels(%0: tensor<2xi64>) -> tensor<2xi64> {
  %r0 = mpc.stop_gradient %0 : tensor<2xi64>
  return %r0 : tensor<2xi64>
}

// CHECK-LABEL: func @broadcast_flags(
// CHECK: mpc.broadcast_to %{{.*}} {shape = [2, 3]} : (tensor<3xi1>) -> tensor<2x3xi1>
func.func @broadcast_flags(%0: tensor<3xi1>) -> tensor<2x3xi1> {
  %r0 = mpc.broadcast_to %0 {shape = [2, 3]} : (tensor<3xi1>) -> tensor<2x3xi1>
  return %r0 : tensor<2x3xi1>
}
