// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @resize(%0: tensor<3x8x8xf32>) {
  // expected-error @+1 {{'mpc.resize' op resize takes a rank-4 image and a size [height, width], got shape 3x8x8 and 2 extents}}
  %r0 = mpc.resize %0 {size = [4, 4]} : (tensor<3x8x8xf32>) -> tensor<3x4x4xf32>
  return
}

// -----

func.func @resize(%0: tensor<2x3x8x8xf32>) {
  // expected-error @+1 {{'mpc.resize' op resize takes a rank-4 image and a size [height, width], got shape 2x3x8x8 and 1 extents}}
  %r0 = mpc.resize %0 {size = [4]} : (tensor<2x3x8x8xf32>) -> tensor<2x3x4x4xf32>
  return
}

// -----

func.func @resize(%0: tensor<2x3x8x8xf32>) {
  // expected-error @+1 {{'mpc.resize' op resize takes heights and widths of 1 to 2^30 pixels, got 2x3x0x4 from 2x3x8x8}}
  %r0 = mpc.resize %0 {size = [0, 4]} : (tensor<2x3x8x8xf32>) -> tensor<2x3x4x4xf32>
  return
}

// -----

func.func @resize(%0: tensor<2x3x8x8xf32>) {
  // expected-error @+1 {{'mpc.resize' op result 0 is 'tensor<2x3x4x4xf32>', its shape must be 2x4x5x8}}
  %r0 = mpc.resize %0 {data_format = NHWC, size = [4, 5]} : (tensor<2x3x8x8xf32>) -> tensor<2x3x4x4xf32>
  return
}

// -----

func.func @resize(%0: tensor<2x3x8x8xf32>) {
  // expected-error @+1 {{'mpc.resize' op resize takes images of at most 2^47 elements, got 2x3x1073741824x1073741824 from 2x3x8x8}}
  %r0 = mpc.resize %0 {size = [1073741824, 1073741824]} : (tensor<2x3x8x8xf32>) -> tensor<2x3x8x8xf32>
  return
}

// -----

func.func @resize_grad(%0: tensor<2x3x8x8xf32>) {
  // expected-error @+1 {{'mpc.resize_grad' op resize_grad takes a rank-4 dy and an input_shape of 4 extents, got shape 2x3x8x8 and 2 extents}}
  %r0 = mpc.resize_grad %0 {input_shape = [4, 4]} : (tensor<2x3x8x8xf32>) -> tensor<2x3x4x4xf32>
  return
}

// -----

func.func @resize_grad(%0: tensor<2x3x8x8xf32>) {
  // expected-error @+1 {{'mpc.resize_grad' op resize_grad expects dy of shape 2x4x8x8, got tensor<2x3x8x8xf32>}}
  %r0 = mpc.resize_grad %0 {input_shape = [2, 4, 5, 5]} : (tensor<2x3x8x8xf32>) -> tensor<2x4x5x5xf32>
  return
}
