// RUN: mpc-opt %s --mpc-attach-target=name=cuda --mpc-layout | FileCheck %s --check-prefix=CUDA
// RUN: mpc-opt %s --mpc-layout | FileCheck %s --check-prefix=CPU

// CUDA's own kernels for few channels take images as they are. What else reads the images stays as well.
// CUDA-LABEL: func @narrow(
// CUDA-NOT: NHWC
// CUDA: return
// CPU-LABEL: func @narrow(
// CPU: mpc.conv2d {{.*}}data_format = NHWC
func.func @narrow(%x: tensor<2x1x8x8xf16>, %w: tensor<6x1x3x3xf16>, %v: tensor<16x6x3x3xf16>,
                  %dy: tensor<2x16x1x1xf16>) -> (tensor<2x16x1x1xf16>, tensor<2x6x3x3xf16>, tensor<16x6x3x3xf16>) {
  %c = mpc.conv2d %x, %w : (tensor<2x1x8x8xf16>, tensor<6x1x3x3xf16>) -> tensor<2x6x6x6xf16>
  %p, %i = mpc.max_pool2d %c {kernel_size = [2, 2], strides = [2, 2]}
      : (tensor<2x6x6x6xf16>) -> (tensor<2x6x3x3xf16>, tensor<2x6x3x3xi8>)
  %y = mpc.conv2d %p, %v : (tensor<2x6x3x3xf16>, tensor<16x6x3x3xf16>) -> tensor<2x16x1x1xf16>
  %dp = mpc.conv2d_grad_input %dy, %v {input_shape = [2, 6, 3, 3]} backward
      : (tensor<2x16x1x1xf16>, tensor<16x6x3x3xf16>) -> tensor<2x6x3x3xf16>
  %dv = mpc.conv2d_grad_weight %p, %dy {weight_shape = [16, 6, 3, 3]} backward
      : (tensor<2x6x3x3xf16>, tensor<2x16x1x1xf16>) -> tensor<16x6x3x3xf16>
  return %y, %dp, %dv : tensor<2x16x1x1xf16>, tensor<2x6x3x3xf16>, tensor<16x6x3x3xf16>
}

// One convolution that cuDNN takes is enough.
// CUDA-LABEL: func @one_is_wide(
// CUDA-COUNT-2: mpc.conv2d {{.*}}data_format = NHWC
func.func @one_is_wide(%x: tensor<2x3x8x8xf16>, %w: tensor<16x3x3x3xf16>, %v: tensor<16x16x3x3xf16>)
    -> tensor<2x16x4x4xf16> {
  %c = mpc.conv2d %x, %w : (tensor<2x3x8x8xf16>, tensor<16x3x3x3xf16>) -> tensor<2x16x6x6xf16>
  %y = mpc.conv2d %c, %v : (tensor<2x16x6x6xf16>, tensor<16x16x3x3xf16>) -> tensor<2x16x4x4xf16>
  return %y : tensor<2x16x4x4xf16>
}

// Without a product, images are channels-last as before.
// CUDA-LABEL: func @pooling(
// CUDA: mpc.max_pool2d {{.*}}data_format = NHWC
func.func @pooling(%x: tensor<2x3x8x8xf16>) -> tensor<2x3x4x4xf16> {
  %p, %i = mpc.max_pool2d %x {kernel_size = [2, 2], strides = [2, 2]}
      : (tensor<2x3x8x8xf16>) -> (tensor<2x3x4x4xf16>, tensor<2x3x4x4xi8>)
  return %p : tensor<2x3x4x4xf16>
}
