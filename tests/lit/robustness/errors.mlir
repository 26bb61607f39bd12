// RUN: mpc-opt %s --split-input-file --verify-diagnostics

func.func @kind() -> tensor<4xf32> {
  // expected-error @+1 {{'mpc.constant' op result is 'tensor<4xf32>', its value is 'tensor<4xi32>'}}
  %0 = mpc.constant {value = dense<1> : tensor<4xi32>} : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @sparse() -> tensor<4xf32> {
  // expected-error @+1 {{'mpc.constant' op takes a dense value, got sparse<0, 1.000000e+00>}}
  %0 = mpc.constant {value = sparse<[[0]], [1.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{scope 'net' pins 'i32'; choose f32, f16 or bf16}}
func.func @pin() attributes {mpc.scope = #mpc.scope<"net", pin = i32>} {
  return
}

// -----

// The product of the extents is 4 in 64-bit arithmetic.
func.func @overflow(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.reshape' op reshape to 4611686018427387905x4 needs 9223372036854775807 elements, got tensor<4xf32> with 4}}
  %0 = mpc.reshape %x {shape = [4611686018427387905, 4]} : (tensor<4xf32>) -> tensor<4611686018427387905x4xf32>
  return
}

// -----

func.func @operand(%x: tensor<4611686018427387904x4xf32>) {
  // expected-error @+1 {{is too large: a tensor has at most 2^47 elements}}
  %0 = mpc.relu %x : tensor<4611686018427387904x4xf32>
  return
}

// -----

func.func @result(%x: tensor<33554432x1xf32>, %y: tensor<1x33554432xf32>) {
  // expected-error @+1 {{result 0 is 'tensor<33554432x33554432xf32>', which is too large: a tensor has at most 2^47 elements}}
  %0 = mpc.add %x, %y : (tensor<33554432x1xf32>, tensor<1x33554432xf32>) -> tensor<33554432x33554432xf32>
  return
}

// -----

func.func @dilation(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) {
  // expected-error @+1 {{input, kernel, stride, dilation and padding must be at most 2147483647; got 9223372036854775807}}
  %0 = mpc.conv2d %x, %w {dilations = [9223372036854775807, 1]} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  return
}

// -----

func.func @groups(%x: tensor<1x0x8x8xf32>, %w: tensor<0x4x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv2d' op operand #0 must be statically shaped tensor of}}
  %0 = mpc.conv2d %x, %w {groups = 4611686018427387904} : (tensor<1x0x8x8xf32>, tensor<0x4x3x3xf32>) -> tensor<1x0x6x6xf32>
  return
}
