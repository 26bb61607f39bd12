// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @batch_matmul(%0: tensor<2x4xf32>, %1: tensor<4x3xf32>) {
  // expected-error @+1 {{'mpc.batch_matmul' op batch_matmul expects a and b of one rank, at least 3, got tensor<2x4xf32> and tensor<4x3xf32>; matmul takes matrices}}
  %r0 = mpc.batch_matmul %0, %1 : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @batch_matmul(%0: tensor<2x2x4xf32>, %1: tensor<3x4x3xf32>) {
  // expected-error @+1 {{'mpc.batch_matmul' op batch_matmul of tensor<2x2x4xf32> and tensor<3x4x3xf32>: the leading extents 2 and 3 differ; broadcast_to makes them equal}}
  %r0 = mpc.batch_matmul %0, %1 : (tensor<2x2x4xf32>, tensor<3x4x3xf32>) -> tensor<2x2x3xf32>
  return
}

// -----

func.func @batch_matmul(%0: tensor<2x2x4xf32>, %1: tensor<2x3x4xf32>) {
  // expected-error @+1 {{'mpc.batch_matmul' op batch_matmul of tensor<2x2x4xf32> (transposed) and tensor<2x3x4xf32>: the inner extents 2 and 3 differ}}
  %r0 = mpc.batch_matmul %0, %1 {transpose_a = true} : (tensor<2x2x4xf32>, tensor<2x3x4xf32>) -> tensor<2x4x4xf32>
  return
}

// -----

func.func @attention(%0: tensor<2x4x8xf32>, %1: tensor<2x1x4x8xf32>, %2: tensor<2x1x4x8xf32>) {
  // expected-error @+1 {{'mpc.attention' op attention expects a query [B, H, T, D] of rank 4, got tensor<2x4x8xf32>}}
  %r0, %r1 = mpc.attention %0, %1, %2 {scale = 1.0} : (tensor<2x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4xf32>)
  return
}

// -----

func.func @attention(%0: tensor<2x3x4x8xf32>, %1: tensor<2x1x4x8xf32>, %2: tensor<2x3x4x8xf32>) {
  // expected-error @+1 {{'mpc.attention' op attention: query, key and value need one batch size and one number of heads, got tensor<2x3x4x8xf32>, tensor<2x1x4x8xf32> and tensor<2x3x4x8xf32>}}
  %r0, %r1 = mpc.attention %0, %1, %2 {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x3x4x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x4xf32>)
  return
}

// -----

func.func @attention(%0: tensor<2x3x4x8xf32>, %1: tensor<2x3x5x7xf32>, %2: tensor<2x3x5x8xf32>) {
  // expected-error @+1 {{'mpc.attention' op attention: query and key need one width D, got 8 and 7 (tensor<2x3x4x8xf32>, tensor<2x3x5x7xf32>)}}
  %r0, %r1 = mpc.attention %0, %1, %2 {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x3x5x7xf32>, tensor<2x3x5x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x4xf32>)
  return
}

// -----

func.func @attention(%0: tensor<2x3x4x8xf32>, %1: tensor<2x3x5x8xf32>, %2: tensor<2x3x6x8xf32>) {
  // expected-error @+1 {{'mpc.attention' op attention: key and value need one length S, got 5 and 6 (tensor<2x3x5x8xf32>, tensor<2x3x6x8xf32>)}}
  %r0, %r1 = mpc.attention %0, %1, %2 {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x3x5x8xf32>, tensor<2x3x6x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x4xf32>)
  return
}

// -----

func.func @attention(%0: tensor<2x3x4x8xf32>, %1: tensor<2x3x5x8xf32>, %2: tensor<2x3x5x8xf32>, %3: tensor<4x4xi1>) {
  // expected-error @+1 {{'mpc.attention' op attention: mask tensor<4x4xi1> does not broadcast to [B, H, T, S] = 2x3x4x5}}
  %r0, %r1 = mpc.attention %0, %1, %2, %3 {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x3x5x8xf32>, tensor<2x3x5x8xf32>, tensor<4x4xi1>) -> (tensor<2x3x4x8xf32>, tensor<2x3x4xf32>)
  return
}

// -----

func.func @attention(%0: tensor<2x3x4x8xf32>, %1: tensor<2x3x5x8xf32>, %2: tensor<2x3x5x8xf32>, %3: tensor<4x5xf32>) {
  // expected-error @+1 {{'mpc.attention' op operand #3 must be statically shaped tensor of 1-bit signless integer values, at least one, but got 'tensor<4x5xf32>'}}
  %r0, %r1 = mpc.attention %0, %1, %2, %3 {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x3x5x8xf32>, tensor<2x3x5x8xf32>, tensor<4x5xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x4xf32>)
  return
}

// -----

func.func @attention(%0: tensor<2x3x4x8xf32>, %1: tensor<2x3x5x8xf32>, %2: tensor<2x3x5x8xf32>) {
  // expected-error @+1 {{'mpc.attention' op requires attribute 'scale'}}
  %r0, %r1 = mpc.attention %0, %1, %2 : (tensor<2x3x4x8xf32>, tensor<2x3x5x8xf32>, tensor<2x3x5x8xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x4xf32>)
  return
}

// -----

func.func @attention_grad(%0: tensor<2x3x4x8xf32>, %1: tensor<2x3x4x8xf32>, %2: tensor<2x3x5x8xf32>, %3: tensor<2x3x5x6xf32>, %4: tensor<2x3x4xf32>) {
  // expected-error @+1 {{'mpc.attention_grad' op attention_grad expects dy of shape 2x3x4x6, got tensor<2x3x4x8xf32>}}
  %r0, %r1, %r2 = mpc.attention_grad %0, %1, %2, %3, %4 {scale = 1.0} : (tensor<2x3x4x8xf32>, tensor<2x3x4x8xf32>, tensor<2x3x5x8xf32>, tensor<2x3x5x6xf32>, tensor<2x3x4xf32>) -> (tensor<2x3x4x8xf32>, tensor<2x3x5x8xf32>, tensor<2x3x5x6xf32>)
  return
}

// -----

func.func @packed_attention(%0: tensor<4x24xf32>) {
  // expected-error @+1 {{'mpc.packed_attention' op packed_attention expects queries, keys and values [B, T, 3 * H * D] of rank 3, got tensor<4x24xf32>}}
  %r0, %r1 = mpc.packed_attention %0 {heads = 2, scale = 1.0} : (tensor<4x24xf32>) -> (tensor<4x8xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @packed_attention(%0: tensor<2x4x24xf32>) {
  // expected-error @+1 {{'mpc.packed_attention' op packed_attention: the last extent of qkv, 24, is not 3 * heads * D for heads = 5 and a whole D (tensor<2x4x24xf32>)}}
  %r0, %r1 = mpc.packed_attention %0 {heads = 5, scale = 1.0} : (tensor<2x4x24xf32>) -> (tensor<2x4x8xf32>, tensor<2x5x4xf32>)
  return
}

// -----

func.func @packed_attention(%0: tensor<2x4x24xf32>) {
  // expected-error @+1 {{'mpc.packed_attention' op packed_attention: the last extent of qkv, 24, is not 3 * heads * D for heads = 0 and a whole D (tensor<2x4x24xf32>)}}
  %r0, %r1 = mpc.packed_attention %0 {heads = 0, scale = 1.0} : (tensor<2x4x24xf32>) -> (tensor<2x4x8xf32>, tensor<2x1x4xf32>)
  return
}

// -----

func.func @packed_attention(%0: tensor<2x4x24xf32>, %1: tensor<4x3xi1>) {
  // expected-error @+1 {{'mpc.packed_attention' op packed_attention: mask tensor<4x3xi1> does not broadcast to [B, H, T, S] = 2x2x4x4}}
  %r0, %r1 = mpc.packed_attention %0, %1 {heads = 2, scale = 1.0} : (tensor<2x4x24xf32>, tensor<4x3xi1>) -> (tensor<2x4x8xf32>, tensor<2x2x4xf32>)
  return
}

// -----

func.func @packed_attention(%0: tensor<2x4x24xf32>) {
  // expected-error @+1 {{'mpc.packed_attention' op requires attribute 'heads'}}
  %r0, %r1 = mpc.packed_attention %0 {scale = 1.0} : (tensor<2x4x24xf32>) -> (tensor<2x4x8xf32>, tensor<2x2x4xf32>)
  return
}

// -----

func.func @packed_attention_grad(%0: tensor<2x4x8xf32>, %1: tensor<2x4x24xf32>, %2: tensor<2x2x4x4xf32>, %3: tensor<2x2x4xf32>) {
  // expected-error @+1 {{'mpc.packed_attention_grad' op packed_attention_grad expects y of shape 2x4x8, got tensor<2x2x4x4xf32>}}
  %r0 = mpc.packed_attention_grad %0, %1, %2, %3 {heads = 2, scale = 1.0} : (tensor<2x4x8xf32>, tensor<2x4x24xf32>, tensor<2x2x4x4xf32>, tensor<2x2x4xf32>) -> tensor<2x4x24xf32>
  return
}

// -----

func.func @lstm_cell(%0: tensor<3x15xf32>, %1: tensor<3x5xf32>) {
  // expected-error @+1 {{'mpc.lstm_cell' op lstm_cell expects gates of shape [N, 4 H] = 3x20 for cell state tensor<3x5xf32>, got tensor<3x15xf32>}}
  %r0, %r1, %r2 = mpc.lstm_cell %0, %1 : (tensor<3x15xf32>, tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x15xf32>)
  return
}

// -----

// Kernels read and write cell states and activations as f32.
func.func @lstm_cell(%0: tensor<3x20xf16>, %1: tensor<3x5xf16>) {
  // expected-error @+1 {{'mpc.lstm_cell' op lstm_cell takes a cell state in f32, got tensor<3x5xf16>; cast changes it}}
  %r0, %r1, %r2 = mpc.lstm_cell %0, %1 : (tensor<3x20xf16>, tensor<3x5xf16>) -> (tensor<3x5xf16>, tensor<3x5xf32>, tensor<3x20xf32>)
  return
}

// -----

func.func @lstm_cell(%0: tensor<3x20xf32>, %1: tensor<3x5xf32>) {
  // expected-error @+1 {{'mpc.lstm_cell' op result 1 is 'tensor<3x5xf16>', but it stays f32 whatever the other types are; mpc.cast changes it}}
  %r0, %r1, %r2 = mpc.lstm_cell %0, %1 : (tensor<3x20xf32>, tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf16>, tensor<3x20xf32>)
  return
}

// -----

func.func @lstm_cell(%0: tensor<3x20xf32>, %1: tensor<3x5xf32>) {
  // expected-error @+1 {{'mpc.lstm_cell' op result 2 is 'tensor<3x20xbf16>', but it stays f32 whatever the other types are; mpc.cast changes it}}
  %r0, %r1, %r2 = mpc.lstm_cell %0, %1 : (tensor<3x20xf32>, tensor<3x5xf32>) -> (tensor<3x5xf32>, tensor<3x5xf32>, tensor<3x20xbf16>)
  return
}

// -----

func.func @lstm_cell_grad(%0: tensor<3x4xf32>, %1: tensor<3x5xf32>, %2: tensor<3x20xf32>, %3: tensor<3x5xf32>, %4: tensor<3x5xf32>) {
  // expected-error @+1 {{'mpc.lstm_cell_grad' op lstm_cell_grad expects states and their cotangents of shape 3x5, got tensor<3x4xf32>}}
  %r0, %r1 = mpc.lstm_cell_grad %0, %1, %2, %3, %4 : (tensor<3x4xf32>, tensor<3x5xf32>, tensor<3x20xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<3x20xf32>, tensor<3x5xf32>)
  return
}

// -----

func.func @lstm_cell_grad(%0: tensor<3x5xf16>, %1: tensor<3x5xf16>, %2: tensor<3x20xf32>, %3: tensor<3x5xf32>, %4: tensor<3x5xf32>) {
  // expected-error @+1 {{'mpc.lstm_cell_grad' op lstm_cell_grad takes cell states, their cotangents and activations in f32, got tensor<3x5xf16>; cast changes it}}
  %r0, %r1 = mpc.lstm_cell_grad %0, %1, %2, %3, %4 : (tensor<3x5xf16>, tensor<3x5xf16>, tensor<3x20xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<3x20xf16>, tensor<3x5xf32>)
  return
}

// -----

func.func @lstm_cell_grad(%0: tensor<3x5xf16>, %1: tensor<3x5xf32>, %2: tensor<3x20xbf16>, %3: tensor<3x5xf32>, %4: tensor<3x5xf32>) {
  // expected-error @+1 {{'mpc.lstm_cell_grad' op lstm_cell_grad takes cell states, their cotangents and activations in f32, got tensor<3x20xbf16>; cast changes it}}
  %r0, %r1 = mpc.lstm_cell_grad %0, %1, %2, %3, %4 : (tensor<3x5xf16>, tensor<3x5xf32>, tensor<3x20xbf16>, tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<3x20xf16>, tensor<3x5xf32>)
  return
}

// -----

func.func @lstm_cell_grad(%0: tensor<3x5xf16>, %1: tensor<3x5xf32>, %2: tensor<3x20xf32>, %3: tensor<3x5xf16>, %4: tensor<3x5xf32>) {
  // expected-error @+1 {{'mpc.lstm_cell_grad' op lstm_cell_grad takes cell states, their cotangents and activations in f32, got tensor<3x5xf16>; cast changes it}}
  %r0, %r1 = mpc.lstm_cell_grad %0, %1, %2, %3, %4 : (tensor<3x5xf16>, tensor<3x5xf32>, tensor<3x20xf32>, tensor<3x5xf16>, tensor<3x5xf32>) -> (tensor<3x20xf16>, tensor<3x5xf32>)
  return
}

// -----

func.func @lstm_cell_grad(%0: tensor<3x5xf16>, %1: tensor<3x5xf32>, %2: tensor<3x20xf32>, %3: tensor<3x5xf32>, %4: tensor<3x5xf16>) {
  // expected-error @+1 {{'mpc.lstm_cell_grad' op lstm_cell_grad takes cell states, their cotangents and activations in f32, got tensor<3x5xf16>; cast changes it}}
  %r0, %r1 = mpc.lstm_cell_grad %0, %1, %2, %3, %4 : (tensor<3x5xf16>, tensor<3x5xf32>, tensor<3x20xf32>, tensor<3x5xf32>, tensor<3x5xf16>) -> (tensor<3x20xf16>, tensor<3x5xf32>)
  return
}

// -----

func.func @lstm_cell_grad(%0: tensor<3x5xf16>, %1: tensor<3x5xf32>, %2: tensor<3x20xf32>, %3: tensor<3x5xf32>, %4: tensor<3x5xf32>) {
  // expected-error @+1 {{'mpc.lstm_cell_grad' op result 1 is 'tensor<3x5xbf16>', but it stays f32 whatever the other types are; mpc.cast changes it}}
  %r0, %r1 = mpc.lstm_cell_grad %0, %1, %2, %3, %4 : (tensor<3x5xf16>, tensor<3x5xf32>, tensor<3x20xf32>, tensor<3x5xf32>, tensor<3x5xf32>) -> (tensor<3x20xf16>, tensor<3x5xbf16>)
  return
}

// -----

func.func @conv_transpose2d(%0: tensor<2x8x4xf32>, %1: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv_transpose2d' op conv_transpose2d expects an image of rank 4, got tensor<2x8x4xf32>}}
  %r0 = mpc.conv_transpose2d %0, %1 : (tensor<2x8x4xf32>, tensor<8x6x3x3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @conv_transpose2d(%0: tensor<2x8x4x4xf32>, %1: tensor<6x8x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv_transpose2d' op conv_transpose2d expects 6 input channels, got 8 (input tensor<2x8x4x4xf32>, NCHW)}}
  %r0 = mpc.conv_transpose2d %0, %1 : (tensor<2x8x4x4xf32>, tensor<6x8x3x3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @conv_transpose2d(%0: tensor<2x8x4x4xf32>, %1: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv_transpose2d' op conv_transpose2d: groups = 3 must divide the 8 input channels}}
  %r0 = mpc.conv_transpose2d %0, %1 {groups = 3} : (tensor<2x8x4x4xf32>, tensor<8x6x3x3xf32>) -> tensor<2x18x6x6xf32>
  return
}

// -----

func.func @conv_transpose2d(%0: tensor<2x8x4x4xf32>, %1: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv_transpose2d' op conv_transpose2d: output_padding must be in [0, stride), got 2 with stride 2 along width}}
  %r0 = mpc.conv_transpose2d %0, %1 {output_padding = [0, 2], strides = [2, 2]} : (tensor<2x8x4x4xf32>, tensor<8x6x3x3xf32>) -> tensor<2x6x9x11xf32>
  return
}

// -----

func.func @conv_transpose2d(%0: tensor<2x8x4x4xf32>, %1: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv_transpose2d' op conv_transpose2d: pad_mode "same" fixes the result's extent; output_padding 1 along height needs "pad" or "valid"}}
  %r0 = mpc.conv_transpose2d %0, %1 {output_padding = [1, 0], pad_mode = same, strides = [2, 2]} : (tensor<2x8x4x4xf32>, tensor<8x6x3x3xf32>) -> tensor<2x6x8x8xf32>
  return
}

// -----

func.func @conv_transpose2d(%0: tensor<2x8x1x4xf32>, %1: tensor<8x6x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv_transpose2d' op conv_transpose2d: an input height of 1, a kernel of 3 and padding 3 in all leave no result}}
  %r0 = mpc.conv_transpose2d %0, %1 {pad_mode = pad, padding = [2, 1, 0, 0]} : (tensor<2x8x1x4xf32>, tensor<8x6x3x3xf32>) -> tensor<2x6x1x6xf32>
  return
}

// -----

func.func @conv_transpose2d(%0: tensor<2x8x4x4xf32>, %1: tensor<8x6x3x3xf32>, %2: tensor<8xf32>) {
  // expected-error @+1 {{'mpc.conv_transpose2d' op conv_transpose2d expects a bias of shape 6, got tensor<8xf32>}}
  %r0 = mpc.conv_transpose2d %0, %1, %2 : (tensor<2x8x4x4xf32>, tensor<8x6x3x3xf32>, tensor<8xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @layer_norm(%0: tensor<2x3x4xf32>, %1: tensor<3xf32>, %2: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.layer_norm' op layer_norm expects gamma to have the shape of the trailing axes of x, got tensor<3xf32> for x tensor<2x3x4xf32>}}
  %r0, %r1, %r2 = mpc.layer_norm %0, %1, %2 : (tensor<2x3x4xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @layer_norm(%0: tensor<2x3x4xf32>, %1: tensor<4xf32>, %2: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.layer_norm' op layer_norm expects beta of shape 4, got tensor<3xf32>}}
  %r0, %r1, %r2 = mpc.layer_norm %0, %1, %2 : (tensor<2x3x4xf32>, tensor<4xf32>, tensor<3xf32>) -> (tensor<2x3x4xf32>, tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @layer_norm_grad(%0: tensor<2x3x4xf32>, %1: tensor<2x3x4xf32>, %2: tensor<4xf32>, %3: tensor<2xf32>, %4: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.layer_norm_grad' op layer_norm_grad expects mean of shape 2x3, got tensor<2xf32>}}
  %r0, %r1, %r2 = mpc.layer_norm_grad %0, %1, %2, %3, %4 : (tensor<2x3x4xf32>, tensor<2x3x4xf32>, tensor<4xf32>, tensor<2xf32>, tensor<2x3xf32>) -> (tensor<2x3x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @group_norm(%0: tensor<2x6xf32>, %1: tensor<6xf32>, %2: tensor<6xf32>) {
  // expected-error @+1 {{'mpc.group_norm' op group_norm expects an image of rank 4, got tensor<2x6xf32>}}
  %r0, %r1, %r2 = mpc.group_norm %0, %1, %2 {groups = 2} : (tensor<2x6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<2x6xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
  return
}

// -----

func.func @group_norm(%0: tensor<2x6x4x4xf32>, %1: tensor<6xf32>, %2: tensor<6xf32>) {
  // expected-error @+1 {{'mpc.group_norm' op group_norm: groups = 4 must divide the 6 channels of x tensor<2x6x4x4xf32>}}
  %r0, %r1, %r2 = mpc.group_norm %0, %1, %2 {groups = 4} : (tensor<2x6x4x4xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<2x6x4x4xf32>, tensor<2x4xf32>, tensor<2x4xf32>)
  return
}

// -----

func.func @group_norm(%0: tensor<2x6x4x4xf32>, %1: tensor<4xf32>, %2: tensor<6xf32>) {
  // expected-error @+1 {{'mpc.group_norm' op group_norm expects gamma and beta of shape 6, got tensor<4xf32>}}
  %r0, %r1, %r2 = mpc.group_norm %0, %1, %2 {groups = 2} : (tensor<2x6x4x4xf32>, tensor<4xf32>, tensor<6xf32>) -> (tensor<2x6x4x4xf32>, tensor<2x2xf32>, tensor<2x2xf32>)
  return
}

// -----

func.func @group_norm_grad(%0: tensor<2x6x4x4xf32>, %1: tensor<2x6x4x4xf32>, %2: tensor<6xf32>, %3: tensor<2x2xf32>, %4: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.group_norm_grad' op group_norm_grad expects inv_std of shape 2x2, got tensor<2x3xf32>}}
  %r0, %r1, %r2 = mpc.group_norm_grad %0, %1, %2, %3, %4 {groups = 2} : (tensor<2x6x4x4xf32>, tensor<2x6x4x4xf32>, tensor<6xf32>, tensor<2x2xf32>, tensor<2x3xf32>) -> (tensor<2x6x4x4xf32>, tensor<6xf32>, tensor<6xf32>)
  return
}

// -----

func.func @bce_with_logits(%0: tensor<4x1xf32>, %1: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.bce_with_logits' op bce_with_logits expects labels of shape 4x1, got tensor<4xf32>}}
  %r0 = mpc.bce_with_logits %0, %1 : (tensor<4x1xf32>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @bce_with_logits_grad(%0: tensor<4xf32>, %1: tensor<4x1xf32>, %2: tensor<4x1xf32>) {
  // expected-error @+1 {{'mpc.bce_with_logits_grad' op bce_with_logits_grad expects dloss of shape scalar, got tensor<4xf32>}}
  %r0 = mpc.bce_with_logits_grad %0, %1, %2 : (tensor<4xf32>, tensor<4x1xf32>, tensor<4x1xf32>) -> tensor<4x1xf32>
  return
}
