// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @batch_norm_train(%0: tensor<2x3x8xf32>, %1: tensor<3xf32>, %2: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.batch_norm_train' op batch_norm_train expects x of rank 2 or 4, got tensor<2x3x8xf32>}}
  %r0, %r1, %r2, %r3 = mpc.batch_norm_train %0, %1, %2 : (tensor<2x3x8xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @batch_norm_train(%0: tensor<2x3x8x8xf32>, %1: tensor<3xf32>, %2: tensor<8xf32>) {
  // expected-error @+1 {{'mpc.batch_norm_train' op batch_norm_train expects parameters and statistics of shape 3, got tensor<8xf32>}}
  %r0, %r1, %r2, %r3 = mpc.batch_norm_train %0, %1, %2 : (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<8xf32>) -> (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @batch_norm_train(%0: tensor<2x3x8x8xf32>, %1: tensor<3xf16>, %2: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.batch_norm_train' op operand #1 must be statically shaped tensor of 32-bit float or 64-bit float values}}
  %r0, %r1, %r2, %r3 = mpc.batch_norm_train %0, %1, %2 : (tensor<2x3x8x8xf32>, tensor<3xf16>, tensor<3xf32>) -> (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @batch_norm_train(%0: tensor<2x3x8x8xf32>, %1: tensor<3xf32>, %2: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.batch_norm_train' op result 3 is 'tensor<2xf32>', its shape must be 3}}
  %r0, %r1, %r2, %r3 = mpc.batch_norm_train %0, %1, %2 : (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<2xf32>)
  return
}

// -----

func.func @batch_norm_train_grad(%0: tensor<2x6x6x6xf32>, %1: tensor<2x3x8x8xf32>, %2: tensor<3xf32>, %3: tensor<3xf32>, %4: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.batch_norm_train_grad' op batch_norm_train_grad expects dy of shape 2x3x8x8, got tensor<2x6x6x6xf32>}}
  %r0, %r1, %r2 = mpc.batch_norm_train_grad %0, %1, %2, %3, %4 : (tensor<2x6x6x6xf32>, tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @batch_norm_train_grad(%0: tensor<2x3x8x8xf32>, %1: tensor<2x3x8x8xf32>, %2: tensor<8xf32>, %3: tensor<8xf32>, %4: tensor<8xf32>) {
  // expected-error @+1 {{'mpc.batch_norm_train_grad' op batch_norm_train_grad expects parameters and statistics of shape 3, got tensor<8xf32>}}
  %r0, %r1, %r2 = mpc.batch_norm_train_grad %0, %1, %2, %3, %4 : (tensor<2x3x8x8xf32>, tensor<2x3x8x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @batch_norm_apply(%0: tensor<2x3x8x8xf32>, %1: tensor<3xf32>, %2: tensor<3xf32>, %3: tensor<3xf32>, %4: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.batch_norm_apply' op batch_norm_apply expects parameters and statistics of shape 8, got tensor<3xf32>}}
  %r0 = mpc.batch_norm_apply %0, %1, %2, %3, %4 {data_format = NHWC} : (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x8x8xf32>
  return
}

// -----

func.func @batch_norm_apply(%0: tensor<2x3x8x8xf32>, %1: tensor<3xf32>, %2: tensor<3xf32>, %3: tensor<3xf32>, %4: tensor<3xf16>) {
  // expected-error @+1 {{'mpc.batch_norm_apply' op operand #4 must be statically shaped tensor of 32-bit float or 64-bit float values}}
  %r0 = mpc.batch_norm_apply %0, %1, %2, %3, %4 : (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf16>) -> tensor<2x3x8x8xf32>
  return
}

// -----

func.func @batch_norm_infer(%0: tensor<2x3x8x8xf32>, %1: tensor<3xf32>, %2: tensor<3xf32>, %3: tensor<3xf32>, %4: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.batch_norm_infer' op batch_norm_infer expects parameters and statistics of shape 8, got tensor<3xf32>}}
  %r0 = mpc.batch_norm_infer %0, %1, %2, %3, %4 {data_format = NHWC} : (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3x8x8xf32>
  return
}

// -----

func.func @batch_norm_infer(%0: tensor<8xf32>, %1: tensor<8xf32>, %2: tensor<8xf32>, %3: tensor<8xf32>, %4: tensor<8xf32>) {
  // expected-error @+1 {{'mpc.batch_norm_infer' op batch_norm_infer expects x of rank 2 or 4, got tensor<8xf32>}}
  %r0 = mpc.batch_norm_infer %0, %1, %2, %3, %4 : tensor<8xf32>
  return
}

// -----

func.func @batch_norm_infer_grad(%0: tensor<2x6x6x6xf32>, %1: tensor<2x3x8x8xf32>, %2: tensor<3xf32>, %3: tensor<3xf32>, %4: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.batch_norm_infer_grad' op batch_norm_infer_grad expects dy of shape 2x3x8x8, got tensor<2x6x6x6xf32>}}
  %r0, %r1, %r2 = mpc.batch_norm_infer_grad %0, %1, %2, %3, %4 : (tensor<2x6x6x6xf32>, tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<2x3x8x8xf32>, tensor<3xf32>, tensor<3xf32>)
  return
}
