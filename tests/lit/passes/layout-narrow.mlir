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

// Batch normalisation joins regions where channels are last.
// CUDA-LABEL: func @normalised(
// CUDA: mpc.conv2d {{.*}}data_format = NHWC
// CUDA: mpc.batch_norm_infer {{.*}}data_format = NHWC
func.func @normalised(%x: tensor<2x1x8x8xf16>, %w: tensor<6x1x3x3xf16>, %g: tensor<6xf32>) -> tensor<2x6x6x6xf16> {
  %c = mpc.conv2d %x, %w : (tensor<2x1x8x8xf16>, tensor<6x1x3x3xf16>) -> tensor<2x6x6x6xf16>
  %y = mpc.batch_norm_infer %c, %g, %g, %g, %g
      : (tensor<2x6x6x6xf16>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x6x6x6xf16>
  return %y : tensor<2x6x6x6xf16>
}

// A convolution that is channels-last already makes its neighbours so: transposes meet and cancel.
// CUDA-LABEL: func @written_channels_last(
// CUDA-NOT: mpc.transpose
// CUDA: mpc.max_pool2d {{.*}}data_format = NHWC
func.func @written_channels_last(%x: tensor<2x8x8x1xf16>, %w: tensor<6x1x3x3xf16>) -> tensor<2x3x3x6xf16> {
  %c = mpc.conv2d %x, %w {data_format = NHWC} : (tensor<2x8x8x1xf16>, tensor<6x1x3x3xf16>) -> tensor<2x6x6x6xf16>
  %f = mpc.transpose %c {permutation = [0, 3, 1, 2]} : (tensor<2x6x6x6xf16>) -> tensor<2x6x6x6xf16>
  %p, %i = mpc.max_pool2d %f {kernel_size = [2, 2], strides = [2, 2]}
      : (tensor<2x6x6x6xf16>) -> (tensor<2x6x3x3xf16>, tensor<2x6x3x3xi8>)
  %y = mpc.transpose %p {permutation = [0, 2, 3, 1]} : (tensor<2x6x3x3xf16>) -> tensor<2x3x3x6xf16>
  return %y : tensor<2x3x3x6xf16>
}

// Without a product, images are channels-last as before.
// CUDA-LABEL: func @pooling(
// CUDA: mpc.max_pool2d {{.*}}data_format = NHWC
func.func @pooling(%x: tensor<2x3x8x8xf16>) -> tensor<2x3x4x4xf16> {
  %p, %i = mpc.max_pool2d %x {kernel_size = [2, 2], strides = [2, 2]}
      : (tensor<2x3x8x8xf16>) -> (tensor<2x3x4x4xf16>, tensor<2x3x4x4xi8>)
  return %p : tensor<2x3x4x4xf16>
}
