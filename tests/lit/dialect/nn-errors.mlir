// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @matmul(%0: tensor<2x4x1xf32>, %1: tensor<4x3xf32>) {
  // expected-error @+1 {{'mpc.matmul' op matmul expects a of rank 2, got tensor<2x4x1xf32>}}
  %r0 = mpc.matmul %0, %1 : (tensor<2x4x1xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @matmul(%0: tensor<2x4xf32>, %1: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.matmul' op matmul expects b of rank 2, got tensor<4xf32>}}
  %r0 = mpc.matmul %0, %1 : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @matmul(%0: tensor<2x4xf32>, %1: tensor<5x3xf32>) {
  // expected-error @+1 {{'mpc.matmul' op matmul of tensor<2x4xf32> and tensor<5x3xf32>: the inner extents 4 and 5 differ}}
  %r0 = mpc.matmul %0, %1 : (tensor<2x4xf32>, tensor<5x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @matmul(%0: tensor<2x4xf32>, %1: tensor<4x3xf32>) {
  // expected-error @+1 {{'mpc.matmul' op matmul of tensor<2x4xf32> (transposed) and tensor<4x3xf32>: the inner extents 2 and 4 differ}}
  %r0 = mpc.matmul %0, %1 {transpose_a = true} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @matmul(%0: tensor<2x4xf32>, %1: tensor<4x3xf32>, %2: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.matmul' op matmul expects a bias of shape 3, got tensor<4xf32>}}
  %r0 = mpc.matmul %0, %1, %2 : (tensor<2x4xf32>, tensor<4x3xf32>, tensor<4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @matmul(%0: tensor<2x4xf32>, %1: tensor<4x3xf32>, %2: tensor<3x2xf32>) {
  // expected-error @+1 {{'mpc.matmul' op matmul expects a bias of shape 2x3, got tensor<3x2xf32>}}
  %r0 = mpc.matmul %0, %1, %2 : (tensor<2x4xf32>, tensor<4x3xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @matmul(%0: tensor<2x4xf32>, %1: tensor<4x3xf32>) {
  // expected-error @+1 {{'mpc.matmul' 'activation' is one of none, relu, sigmoid, tanh, gelu, gelu_tanh; got 'swish'}}
  %r0 = mpc.matmul %0, %1 {activation = swish} : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @matmul(%0: tensor<2x4xf32>, %1: tensor<4x3xf32>) {
  // expected-error @+1 {{'mpc.matmul' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.matmul %0, %1 : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @conv2d(%0: tensor<3x8x8xf32>, %1: tensor<6x3x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv2d' op conv2d takes a rank-4 image and a rank-4 weight, got shapes 3x8x8 and 6x3x3x3}}
  %r0 = mpc.conv2d %0, %1 : (tensor<3x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @conv2d(%0: tensor<2x3x8x8xf32>, %1: tensor<6x1x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv2d' op conv2d: groups = 2 must divide the 3 input and 6 output channels}}
  %r0 = mpc.conv2d %0, %1 {groups = 2} : (tensor<2x3x8x8xf32>, tensor<6x1x3x3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @conv2d(%0: tensor<2x3x8x8xf32>, %1: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv2d' op conv2d expects 4 input channels, got 3 (input 2x3x8x8, NCHW)}}
  %r0 = mpc.conv2d %0, %1 : (tensor<2x3x8x8xf32>, tensor<6x4x3x3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @conv2d(%0: tensor<2x3x8x8xf32>, %1: tensor<6x3x3x3xf32>, %2: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.conv2d' op conv2d expects a bias of shape 6, got tensor<3xf32>}}
  %r0 = mpc.conv2d %0, %1, %2 : (tensor<2x3x8x8xf32>, tensor<6x3x3x3xf32>, tensor<3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @conv2d(%0: tensor<2x3x8x8xf32>, %1: tensor<6x3x9x9xf32>) {
  // expected-error @+1 {{'mpc.conv2d' op conv2d: a window of 9 does not fit the padded height of 8}}
  %r0 = mpc.conv2d %0, %1 : (tensor<2x3x8x8xf32>, tensor<6x3x9x9xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @conv2d(%0: tensor<2x3x8x8xf32>, %1: tensor<6x3x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv2d' 'pad_mode' is one of valid, same, pad; got 'full'}}
  %r0 = mpc.conv2d %0, %1 {pad_mode = full} : (tensor<2x3x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @conv2d(%0: tensor<2x3x8x8xf32>, %1: tensor<6x3x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv2d' 'data_format' is one of NCHW, NHWC; got 'CHWN'}}
  %r0 = mpc.conv2d %0, %1 {data_format = CHWN} : (tensor<2x3x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @conv2d(%0: tensor<2x3x8x8xf32>, %1: tensor<6x3x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv2d' op conv2d: input, kernel, stride and dilation must be at least 1; got input 8, kernel 3, stride 0, dilation 1 along height}}
  %r0 = mpc.conv2d %0, %1 {strides = [0, 1]} : (tensor<2x3x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<2x6x6x6xf32>
  return
}

// -----

func.func @conv2d(%0: tensor<2x3x8x8xf32>, %1: tensor<6x3x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv2d' op result 0 is 'tensor<2x6x8x8xf32>', its shape must be 2x6x6x6}}
  %r0 = mpc.conv2d %0, %1 : (tensor<2x3x8x8xf32>, tensor<6x3x3x3xf32>) -> tensor<2x6x8x8xf32>
  return
}

// -----

func.func @conv2d_statistics(%0: tensor<2x3x8x8xf32>, %1: tensor<6x4x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv2d_statistics' op conv2d_statistics expects 4 input channels, got 3 (input 2x3x8x8, NCHW)}}
  %r0, %r1, %r2, %r3 = mpc.conv2d_statistics %0, %1 : (tensor<2x3x8x8xf32>, tensor<6x4x3x3xf32>) -> (tensor<2x6x6x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
  return
}

// -----

func.func @conv2d_statistics(%0: tensor<2x3x8x8xf16>, %1: tensor<6x3x3x3xf16>) {
  // expected-error @+1 {{'mpc.conv2d_statistics' op result 1 is 'tensor<3xf32>', its shape must be 6}}
  %r0, %r1, %r2, %r3 = mpc.conv2d_statistics %0, %1 : (tensor<2x3x8x8xf16>, tensor<6x3x3x3xf16>) -> (tensor<2x6x6x6xf16>, tensor<3xf32>, tensor<6xf32>, tensor<6xf32>)
  return
}

// -----

func.func @conv2d_grad_input(%0: tensor<2x6x6x6xf32>, %1: tensor<6x3x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv2d_grad_input' op conv2d_grad_input expects dy of shape 2x6x7x7, got tensor<2x6x6x6xf32>}}
  %r0 = mpc.conv2d_grad_input %0, %1 {input_shape = [2, 3, 9, 9]} : (tensor<2x6x6x6xf32>, tensor<6x3x3x3xf32>) -> tensor<2x3x9x9xf32>
  return
}

// -----

func.func @conv2d_grad_input(%0: tensor<2x6x6x6xf32>, %1: tensor<6x3x3x3xf32>) {
  // expected-error @+1 {{'mpc.conv2d_grad_input' op conv2d_grad_input takes a rank-4 image and a rank-4 weight}}
  %r0 = mpc.conv2d_grad_input %0, %1 {input_shape = [8, 8]} : (tensor<2x6x6x6xf32>, tensor<6x3x3x3xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @conv2d_grad_weight(%0: tensor<2x3x8x8xf32>, %1: tensor<2x6x6x6xf32>) {
  // expected-error @+1 {{'mpc.conv2d_grad_weight' op conv2d_grad_weight expects dy of shape 2x6x4x4, got tensor<2x6x6x6xf32>}}
  %r0 = mpc.conv2d_grad_weight %0, %1 {weight_shape = [6, 3, 5, 5]} : (tensor<2x3x8x8xf32>, tensor<2x6x6x6xf32>) -> tensor<6x3x5x5xf32>
  return
}

// -----

func.func @conv2d_grad_weight(%0: tensor<2x3x8x8xf32>, %1: tensor<2x6x6x6xf32>) {
  // expected-error @+1 {{'mpc.conv2d_grad_weight' op conv2d_grad_weight expects 2 input channels, got 3}}
  %r0 = mpc.conv2d_grad_weight %0, %1 {weight_shape = [6, 2, 3, 3]} : (tensor<2x3x8x8xf32>, tensor<2x6x6x6xf32>) -> tensor<6x2x3x3xf32>
  return
}

// -----

func.func @max_pool2d(%0: tensor<6x8x8xf32>) {
  // expected-error @+1 {{'mpc.max_pool2d' op max_pool2d takes a rank-4 image and kernel_size [height, width], got shape 6x8x8 and 2 extents}}
  %r0, %r1 = mpc.max_pool2d %0 {kernel_size = [2, 2]} : (tensor<6x8x8xf32>) -> (tensor<6x7x7xf32>, tensor<6x7x7xi32>)
  return
}

// -----

func.func @max_pool2d(%0: tensor<2x3x8x8xf32>) {
  // expected-error @+1 {{'mpc.max_pool2d' op max_pool2d takes a rank-4 image and kernel_size [height, width], got shape 2x3x8x8 and 1 extents}}
  %r0, %r1 = mpc.max_pool2d %0 {kernel_size = [2]} : (tensor<2x3x8x8xf32>) -> (tensor<2x3x8x8xf32>, tensor<2x3x8x8xi32>)
  return
}

// -----

func.func @max_pool2d(%0: tensor<2x3x8x8xf32>) {
  // expected-error @+1 {{'mpc.max_pool2d' op max_pool2d: padding must be smaller than the window of 2x2}}
  %r0, %r1 = mpc.max_pool2d %0 {kernel_size = [2, 2], pad_mode = pad, padding = [2, 0, 0, 0]} : (tensor<2x3x8x8xf32>) -> (tensor<2x3x8x8xf32>, tensor<2x3x8x8xi32>)
  return
}

// -----

func.func @max_pool2d(%0: tensor<2x3x8x8xf32>) {
  // expected-error @+1 {{'mpc.max_pool2d' op result 1 is 'tensor<2x3x8x8xi32>', its shape must be 2x3x7x7}}
  %r0, %r1 = mpc.max_pool2d %0 {kernel_size = [2, 2]} : (tensor<2x3x8x8xf32>) -> (tensor<2x3x7x7xf32>, tensor<2x3x8x8xi32>)
  return
}

// -----

func.func @max_pool2d_grad(%0: tensor<2x3x7x7xf32>, %1: tensor<2x3x8x8xi32>) {
  // expected-error @+1 {{'mpc.max_pool2d_grad' op max_pool2d_grad expects every operand of shape 2x3x7x7, got tensor<2x3x8x8xi32>}}
  %r0 = mpc.max_pool2d_grad %0, %1 {input_shape = [2, 3, 8, 8], kernel_size = [2, 2]} : (tensor<2x3x7x7xf32>, tensor<2x3x8x8xi32>) -> tensor<2x3x8x8xf32>
  return
}

// -----

func.func @max_pool2d(%0: tensor<1x2x19x12xf32>) {
  // expected-error @+1 {{'mpc.max_pool2d' op has indices in 'tensor<1x2x3x5xi8>', which hold a position in a window of at most 128 elements, and a window of 17x8; use i32}}
  %r0, %r1 = mpc.max_pool2d %0 {kernel_size = [17, 8]} : (tensor<1x2x19x12xf32>) -> (tensor<1x2x3x5xf32>, tensor<1x2x3x5xi8>)
  return
}

// -----

func.func @max_pool2d_grad(%0: tensor<1x2x3x5xf32>, %1: tensor<1x2x3x5xi8>) {
  // expected-error @+1 {{'mpc.max_pool2d_grad' op has indices in 'tensor<1x2x3x5xi8>', which hold a position in a window of at most 128 elements, and a window of 17x8; use i32}}
  %r0 = mpc.max_pool2d_grad %0, %1 {input_shape = [1, 2, 19, 12], kernel_size = [17, 8]} : (tensor<1x2x3x5xf32>, tensor<1x2x3x5xi8>) -> tensor<1x2x19x12xf32>
  return
}

// -----

func.func @max_pool2d(%0: tensor<2x3x8x8xf32>) {
  // expected-error @+1 {{'mpc.max_pool2d' op max_pool2d takes a rank-4 image and kernel_size [height, width], got shape 2x3x8x8 and 1 extents}}
  %r0, %r1 = mpc.max_pool2d %0 {kernel_size = [2]} : (tensor<2x3x8x8xf32>) -> (tensor<2x3x8x8xf32>, tensor<2x3x8x8xi8>)
  return
}

// -----

func.func @max_pool2d_grad(%0: tensor<2x3x8x8xf32>, %1: tensor<2x3x8x8xi8>) {
  // expected-error @+1 {{'mpc.max_pool2d_grad' op max_pool2d_grad takes a rank-4 image and kernel_size [height, width], got shape 2x3x8x8 and 1 extents}}
  %r0 = mpc.max_pool2d_grad %0, %1 {input_shape = [2, 3, 8, 8], kernel_size = [2]} : (tensor<2x3x8x8xf32>, tensor<2x3x8x8xi8>) -> tensor<2x3x8x8xf32>
  return
}

// -----

func.func @max_pool2d(%0: tensor<2x3x8x8xf32>) {
  // expected-error @+1 {{'mpc.max_pool2d' op result #1 must be statically shaped tensor of 8-bit signless integer or 32-bit signless integer values, at least one, but got 'tensor<2x3x7x7xi64>'}}
  %r0, %r1 = mpc.max_pool2d %0 {kernel_size = [2, 2]} : (tensor<2x3x8x8xf32>) -> (tensor<2x3x7x7xf32>, tensor<2x3x7x7xi64>)
  return
}

// -----

func.func @avg_pool2d(%0: tensor<6x8x8xf32>) {
  // expected-error @+1 {{'mpc.avg_pool2d' op avg_pool2d takes a rank-4 image and kernel_size [height, width]}}
  %r0 = mpc.avg_pool2d %0 {kernel_size = [2, 2]} : (tensor<6x8x8xf32>) -> tensor<6x7x7xf32>
  return
}

// -----

func.func @avg_pool2d(%0: tensor<2x3x8x8xf32>) {
  // expected-error @+1 {{'mpc.avg_pool2d' op avg_pool2d: a window of 9 does not fit the padded height of 8}}
  %r0 = mpc.avg_pool2d %0 {kernel_size = [9, 9]} : tensor<2x3x8x8xf32>
  return
}

// -----

func.func @avg_pool2d_grad(%0: tensor<2x3x8x8xf32>) {
  // expected-error @+1 {{'mpc.avg_pool2d_grad' op avg_pool2d_grad expects every operand of shape 2x3x7x7, got tensor<2x3x8x8xf32>}}
  %r0 = mpc.avg_pool2d_grad %0 {input_shape = [2, 3, 8, 8], kernel_size = [2, 2]} : tensor<2x3x8x8xf32>
  return
}

// -----

func.func @softmax(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.softmax' op softmax axis 2 is outside [-2, 2) of a rank-2 tensor}}
  %r0 = mpc.softmax %0 {axis = 2} : tensor<2x3xf32>
  return
}

// -----

func.func @log_softmax(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.log_softmax' op log_softmax axis -3 is outside [-2, 2) of a rank-2 tensor}}
  %r0 = mpc.log_softmax %0 {axis = -3} : tensor<2x3xf32>
  return
}

// -----

func.func @softmax_grad(%0: tensor<2x3xf32>, %1: tensor<3x2xf32>) {
  // expected-error @+1 {{'mpc.softmax_grad' op softmax_grad expects every operand of shape 2x3, got tensor<3x2xf32>}}
  %r0 = mpc.softmax_grad %0, %1 : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @log_softmax_grad(%0: tensor<2x3xf32>, %1: tensor<3x2xf32>) {
  // expected-error @+1 {{'mpc.log_softmax_grad' op log_softmax_grad expects every operand of shape 2x3, got tensor<3x2xf32>}}
  %r0 = mpc.log_softmax_grad %0, %1 : (tensor<2x3xf32>, tensor<3x2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @softmax_cross_entropy(%0: tensor<2x3x4xf32>, %1: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.softmax_cross_entropy' op softmax_cross_entropy expects logits [N, C] of rank 2, got tensor<2x3x4xf32>}}
  %r0, %r1 = mpc.softmax_cross_entropy %0, %1 : (tensor<2x3x4xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>)
  return
}

// -----

func.func @softmax_cross_entropy(%0: tensor<2x3xf32>, %1: tensor<3xi32>) {
  // expected-error @+1 {{'mpc.softmax_cross_entropy' op softmax_cross_entropy: logits tensor<2x3xf32> need integer labels of shape 2, got tensor<3xi32>}}
  %r0, %r1 = mpc.softmax_cross_entropy %0, %1 : (tensor<2x3xf32>, tensor<3xi32>) -> (tensor<f32>, tensor<2xf32>)
  return
}

// -----

func.func @softmax_cross_entropy(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.softmax_cross_entropy' op softmax_cross_entropy: logits tensor<2x3xf32> need floating one-hot labels of shape 2x3, got tensor<2xf32> (integer class labels need sparse = true)}}
  %r0, %r1 = mpc.softmax_cross_entropy %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> (tensor<f32>, tensor<2xf32>)
  return
}

// -----

func.func @softmax_cross_entropy(%0: tensor<2x3xf32>, %1: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.softmax_cross_entropy' 'reduction' is one of none, mean, sum; got 'max'}}
  %r0, %r1 = mpc.softmax_cross_entropy %0, %1 {reduction = max} : (tensor<2x3xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>)
  return
}

// -----

func.func @softmax_cross_entropy(%0: tensor<2x3xf32>, %1: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.softmax_cross_entropy' op softmax_cross_entropy: classes must be from 1 to 3, the columns of logits tensor<2x3xf32>, got 4}}
  %r0, %r1 = mpc.softmax_cross_entropy %0, %1 {classes = 4} : (tensor<2x3xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>)
  return
}

// -----

func.func @softmax_cross_entropy(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.softmax_cross_entropy' op softmax_cross_entropy: classes = 2 is for integer labels, got tensor<2x3xf32>}}
  %r0, %r1 = mpc.softmax_cross_entropy %0, %1 {classes = 2} : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<f32>, tensor<2xf32>)
  return
}

// -----

func.func @softmax_cross_entropy(%0: tensor<2x3xf32>, %1: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.softmax_cross_entropy' op result 0 is 'tensor<f32>', its shape must be 2}}
  %r0, %r1 = mpc.softmax_cross_entropy %0, %1 {reduction = none} : (tensor<2x3xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>)
  return
}

// -----

func.func @softmax_cross_entropy_grad(%0: tensor<2xf32>, %1: tensor<2x3xf32>, %2: tensor<2xi32>, %3: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.softmax_cross_entropy_grad' op softmax_cross_entropy_grad expects dloss of shape scalar, got tensor<2xf32>}}
  %r0 = mpc.softmax_cross_entropy_grad %0, %1, %2, %3 : (tensor<2xf32>, tensor<2x3xf32>, tensor<2xi32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @softmax_cross_entropy_grad(%0: tensor<f32>, %1: tensor<2x3xf32>, %2: tensor<2xi32>, %3: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.softmax_cross_entropy_grad' op softmax_cross_entropy_grad expects log_sum_exp of shape 2, got tensor<3xf32>}}
  %r0 = mpc.softmax_cross_entropy_grad %0, %1, %2, %3 : (tensor<f32>, tensor<2x3xf32>, tensor<2xi32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @mse(%0: tensor<2x3xf32>, %1: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.mse' op mse expects a target of shape 2x3, got tensor<3xf32>}}
  %r0 = mpc.mse %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<f32>
  return
}

// -----

func.func @mse(%0: tensor<2x3xf16>, %1: tensor<2x3xf16>) {
  // expected-error @+1 {{'mpc.mse' op result #0 must be statically shaped tensor of 32-bit float or 64-bit float values}}
  %r0 = mpc.mse %0, %1 : (tensor<2x3xf16>, tensor<2x3xf16>) -> tensor<f16>
  return
}

// -----

func.func @mse_grad(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>, %2: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.mse_grad' op mse_grad expects dloss of shape scalar, got tensor<2x3xf32>}}
  %r0 = mpc.mse_grad %0, %1, %2 : tensor<2x3xf32>
  return
}

// -----

func.func @mse_grad(%0: tensor<f32>, %1: tensor<2x3xf32>, %2: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.mse_grad' op mse_grad expects a target of shape 2x3, got tensor<3xf32>}}
  %r0 = mpc.mse_grad %0, %1, %2 : (tensor<f32>, tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}
