// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s

// Batched matrix work, attention, recurrent cells, transposed convolution, layer and group normalisation, binary
// cross-entropy.

// CHECK-LABEL: func @batch_matmul(
// CHECK: mpc.batch_matmul %{{.*}}, %{{.*}} : (tensor<2x3x4x5xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x4x6xf32>
func.func @batch_matmul(%0: tensor<2x3x4x5xf32>, %1: tensor<2x3x5x6xf32>) -> tensor<2x3x4x6xf32> {
  %r0 = mpc.batch_matmul %0, %1 : (tensor<2x3x4x5xf32>, tensor<2x3x5x6xf32>) -> tensor<2x3x4x6xf32>
  return %r0 : tensor<2x3x4x6xf32>
}

// CHECK-LABEL: func @batch_matmul_transposed(
// CHECK: mpc.batch_matmul %{{.*}}, %{{.*}} {transpose_a = true, transpose_b = true} : (tensor<3x5x4xbf16>, tensor<3x6x5xbf16>) -> tensor<3x4x6xbf16>
func.func @batch_matmul_transposed(%0: tensor<3x5x4xbf16>, %1: tensor<3x6x5xbf16>) -> tensor<3x4x6xbf16> {
  %r0 = mpc.batch_matmul %0, %1 {transpose_a = true, transpose_b = true} : (tensor<3x5x4xbf16>, tensor<3x6x5xbf16>) -> tensor<3x4x6xbf16>
  return %r0 : tensor<3x4x6xbf16>
}

// CHECK-LABEL: func @attention(
// CHECK: mpc.attention %{{.*}}, %{{.*}}, %{{.*}} {causal = true, scale = 1.250000e-01} : (tensor<2x3x4x8xf16>, tensor<2x3x5x8xf16>, tensor<2x3x5x6xf16>) -> (tensor<2x3x4x6xf16>, tensor<2x3x4xf32>)
func.func @attention(%0: tensor<2x3x4x8xf16>, %1: tensor<2x3x5x8xf16>, %2: tensor<2x3x5x6xf16>) -> (tensor<2x3x4x6xf16>, tensor<2x3x4xf32>) {
  %r0, %r1 = mpc.attention %0, %1, %2 {causal = true, scale = 0.125}
      : (tensor<2x3x4x8xf16>, tensor<2x3x5x8xf16>, tensor<2x3x5x6xf16>) -> (tensor<2x3x4x6xf16>, tensor<2x3x4xf32>)
  return %r0, %r1 : tensor<2x3x4x6xf16>, tensor<2x3x4xf32>
}

// CHECK-LABEL: func @attention_mask(
// CHECK: mpc.attention %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {scale = 1.000000e+00}
// CHECK: mpc.attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {scale = 1.000000e+00}
func.func @attention_mask(%0: tensor<2x1x4x8xf32>, %1: tensor<2x1x5x8xf32>, %2: tensor<2x1x5x6xf32>, %3: tensor<2x1x1x5xi1>, %4: tensor<2x1x4x6xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x6xf32>) {
  %r0, %r1 = mpc.attention %0, %1, %2, %3 {scale = 1.0}
      : (tensor<2x1x4x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x6xf32>, tensor<2x1x1x5xi1>) -> (tensor<2x1x4x6xf32>, tensor<2x1x4xf32>)
  %g0, %g1, %g2 = mpc.attention_grad %4, %0, %1, %2, %r1, %3 {scale = 1.0}
      : (tensor<2x1x4x6xf32>, tensor<2x1x4x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x6xf32>, tensor<2x1x4xf32>, tensor<2x1x1x5xi1>) -> (tensor<2x1x4x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x6xf32>)
  return %g0, %g1, %g2 : tensor<2x1x4x8xf32>, tensor<2x1x5x8xf32>, tensor<2x1x5x6xf32>
}

// CHECK-LABEL: func @packed_attention(
// CHECK: mpc.packed_attention %{{.*}} {causal = true, heads = 3, scale = 1.250000e-01} : (tensor<2x4x72xf16>) -> (tensor<2x4x24xf16>, tensor<2x3x4xf32>)
// CHECK: mpc.packed_attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {causal = true, heads = 3, scale = 1.250000e-01} : (tensor<2x4x24xf16>, tensor<2x4x72xf16>, tensor<2x4x24xf16>, tensor<2x3x4xf32>) -> tensor<2x4x72xf16>
func.func @packed_attention(%0: tensor<2x4x72xf16>) -> tensor<2x4x72xf16> {
  %r0, %r1 = mpc.packed_attention %0 {causal = true, heads = 3, scale = 0.125}
      : (tensor<2x4x72xf16>) -> (tensor<2x4x24xf16>, tensor<2x3x4xf32>)
  %g0 = mpc.packed_attention_grad %r0, %0, %r0, %r1 {causal = true, heads = 3, scale = 0.125}
      : (tensor<2x4x24xf16>, tensor<2x4x72xf16>, tensor<2x4x24xf16>, tensor<2x3x4xf32>) -> tensor<2x4x72xf16>
  return %g0 : tensor<2x4x72xf16>
}

// CHECK-LABEL: func @packed_attention_mask(
// CHECK: mpc.packed_attention %{{.*}}, %{{.*}} {heads = 1, scale = 1.000000e+00}
// CHECK: mpc.packed_attention_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {heads = 1, scale = 1.000000e+00}
func.func @packed_attention_mask(%0: tensor<2x4x24xf32>, %1: tensor<2x1x1x4xi1>) -> tensor<2x4x24xf32> {
  %r0, %r1 = mpc.packed_attention %0, %1 {heads = 1, scale = 1.0}
      : (tensor<2x4x24xf32>, tensor<2x1x1x4xi1>) -> (tensor<2x4x8xf32>, tensor<2x1x4xf32>)
  %g0 = mpc.packed_attention_grad %r0, %0, %r0, %r1, %1 {heads = 1, scale = 1.0}
      : (tensor<2x4x8xf32>, tensor<2x4x24xf32>, tensor<2x4x8xf32>, tensor<2x1x4xf32>, tensor<2x1x1x4xi1>) -> tensor<2x4x24xf32>
  return %g0 : tensor<2x4x24xf32>
}

// CHECK-LABEL: func @lstm_cell(
// CHECK: mpc.lstm_cell %{{.*}}, %{{.*}} : (tensor<3x20xf16>, tensor<3x5xf32>) -> (tensor<3x5xf16>, tensor<3x5xf32>, tensor<3x20xf32>)
// CHECK: mpc.lstm_cell_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<3x5xf16>, tensor<3x5xf32>, tensor<3x20xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<3x20xf16>, tensor<3x5xf32>)
func.func @lstm_cell(%0: tensor<3x20xf16>, %1: tensor<3x5xf32>) -> (tensor<3x20xf16>, tensor<3x5xf32>) {
  %h, %c, %a = mpc.lstm_cell %0, %1 : (tensor<3x20xf16>, tensor<3x5xf32>) -> (tensor<3x5xf16>, tensor<3x5xf32>, tensor<3x20xf32>)
  %g0, %g1 = mpc.lstm_cell_grad %h, %c, %a, %1, %c
      : (tensor<3x5xf16>, tensor<3x5xf32>, tensor<3x20xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<3x20xf16>, tensor<3x5xf32>)
  return %g0, %g1 : tensor<3x20xf16>, tensor<3x5xf32>
}

// CHECK-LABEL: func @conv_transpose2d(
// CHECK: mpc.conv_transpose2d %{{.*}}, %{{.*}}, %{{.*}} {output_padding = [1, 1], pad_mode = pad, padding = [1, 1, 1, 1], strides = [2, 2]} : (tensor<2x8x4x4xf32>, tensor<8x6x3x3xf32>, tensor<6xf32>) -> tensor<2x6x8x8xf32>
func.func @conv_transpose2d(%0: tensor<2x8x4x4xf32>, %1: tensor<8x6x3x3xf32>, %2: tensor<6xf32>) -> tensor<2x6x8x8xf32> {
  %r0 = mpc.conv_transpose2d %0, %1, %2 {output_padding = [1, 1], pad_mode = pad, padding = [1, 1, 1, 1], strides = [2, 2]}
      : (tensor<2x8x4x4xf32>, tensor<8x6x3x3xf32>, tensor<6xf32>) -> tensor<2x6x8x8xf32>
  return %r0 : tensor<2x6x8x8xf32>
}

// CHECK-LABEL: func @conv_transpose2d_nhwc(
// CHECK: mpc.conv_transpose2d %{{.*}}, %{{.*}} {data_format = NHWC, groups = 2, pad_mode = same, strides = [2, 1]} : (tensor<2x4x5x8xf32>, tensor<8x3x3x3xf32>) -> tensor<2x8x5x6xf32>
func.func @conv_transpose2d_nhwc(%0: tensor<2x4x5x8xf32>, %1: tensor<8x3x3x3xf32>) -> tensor<2x8x5x6xf32> {
  %r0 = mpc.conv_transpose2d %0, %1 {data_format = NHWC, groups = 2, pad_mode = same, strides = [2, 1]}
      : (tensor<2x4x5x8xf32>, tensor<8x3x3x3xf32>) -> tensor<2x8x5x6xf32>
  return %r0 : tensor<2x8x5x6xf32>
}

// CHECK-LABEL: func @layer_norm(
// CHECK: mpc.layer_norm %{{.*}}, %{{.*}}, %{{.*}} {epsilon = 1.000000e-03} : (tensor<2x3x4x5xbf16>, tensor<4x5xf32>, tensor<4x5xf32>) -> (tensor<2x3x4x5xbf16>, tensor<2x3xf32>, tensor<2x3xf32>)
// CHECK: mpc.layer_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x3x4x5xbf16>, tensor<2x3x4x5xbf16>, tensor<4x5xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3x4x5xbf16>, tensor<4x5xf32>, tensor<4x5xf32>)
func.func @layer_norm(%0: tensor<2x3x4x5xbf16>, %1: tensor<4x5xf32>) -> (tensor<2x3x4x5xbf16>, tensor<4x5xf32>, tensor<4x5xf32>) {
  %y, %m, %s = mpc.layer_norm %0, %1, %1 {epsilon = 1.0e-03} : (tensor<2x3x4x5xbf16>, tensor<4x5xf32>, tensor<4x5xf32>) -> (tensor<2x3x4x5xbf16>, tensor<2x3xf32>, tensor<2x3xf32>)
  %g0, %g1, %g2 = mpc.layer_norm_grad %y, %0, %1, %m, %s
      : (tensor<2x3x4x5xbf16>, tensor<2x3x4x5xbf16>, tensor<4x5xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3x4x5xbf16>, tensor<4x5xf32>, tensor<4x5xf32>)
  return %g0, %g1, %g2 : tensor<2x3x4x5xbf16>, tensor<4x5xf32>, tensor<4x5xf32>
}

// CHECK-LABEL: func @group_norm(
// CHECK: mpc.group_norm %{{.*}}, %{{.*}}, %{{.*}} {data_format = NHWC, groups = 3} : (tensor<2x4x5x6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<2x4x5x6xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
// CHECK: mpc.group_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {data_format = NHWC, groups = 3} : (tensor<2x4x5x6xf32>, tensor<2x4x5x6xf32>, tensor<6xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x4x5x6xf32>, tensor<6xf32>, tensor<6xf32>)
func.func @group_norm(%0: tensor<2x4x5x6xf32>, %1: tensor<6xf32>) -> (tensor<2x4x5x6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %y, %m, %s = mpc.group_norm %0, %1, %1 {data_format = NHWC, groups = 3} : (tensor<2x4x5x6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<2x4x5x6xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  %g0, %g1, %g2 = mpc.group_norm_grad %y, %0, %1, %m, %s {data_format = NHWC, groups = 3}
      : (tensor<2x4x5x6xf32>, tensor<2x4x5x6xf32>, tensor<6xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x4x5x6xf32>, tensor<6xf32>, tensor<6xf32>)
  return %g0, %g1, %g2 : tensor<2x4x5x6xf32>, tensor<6xf32>, tensor<6xf32>
}

// CHECK-LABEL: func @bce_with_logits(
// CHECK: mpc.bce_with_logits %{{.*}}, %{{.*}} {reduction = none} : tensor<4x1xf32>
// CHECK: mpc.bce_with_logits %{{.*}}, %{{.*}} : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<f32>
// CHECK: mpc.bce_with_logits_grad %{{.*}}, %{{.*}}, %{{.*}} : (tensor<f32>, tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
func.func @bce_with_logits(%0: tensor<4x1xf32>, %1: tensor<4x1xf32>) -> tensor<4x1xf32> {
  %r0 = mpc.bce_with_logits %0, %1 {reduction = none} : tensor<4x1xf32>
  %r1 = mpc.bce_with_logits %0, %1 : (tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<f32>
  %r2 = mpc.bce_with_logits_grad %r1, %0, %1 : (tensor<f32>, tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  return %r2 : tensor<4x1xf32>
}
