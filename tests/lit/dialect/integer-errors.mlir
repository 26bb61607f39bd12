// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @int_add(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.int_add' op operand #0 must be statically shaped tensor of 32-bit signless integer or 64-bit signless integer values}}
  %r0 = mpc.int_add %0, %1 : tensor<2x3xf32>
  return
}

// -----

func.func @int_sub(%0: tensor<2x3xi32>, %1: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.int_sub' op int_sub cannot broadcast tensor<2x3xi32> with tensor<2xi32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.int_sub %0, %1 : (tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @int_mul(%0: tensor<2x3xi32>, %1: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.int_mul' op int_mul cannot broadcast tensor<2x3xi32> with tensor<2xi32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.int_mul %0, %1 : (tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @int_floor_div(%0: tensor<2x3xi32>, %1: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.int_floor_div' op int_floor_div cannot broadcast tensor<2x3xi32> with tensor<2xi32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.int_floor_div %0, %1 : (tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @int_mod(%0: tensor<2x3xi32>, %1: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.int_mod' op int_mod cannot broadcast tensor<2x3xi32> with tensor<2xi32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.int_mod %0, %1 : (tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @int_maximum(%0: tensor<2x3xi32>, %1: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.int_maximum' op int_maximum cannot broadcast tensor<2x3xi32> with tensor<2xi32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.int_maximum %0, %1 : (tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @int_minimum(%0: tensor<2x3xi32>, %1: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.int_minimum' op int_minimum cannot broadcast tensor<2x3xi32> with tensor<2xi32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.int_minimum %0, %1 : (tensor<2x3xi32>, tensor<2xi32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @int_add(%0: tensor<3xi32>, %1: tensor<3xi64>) {
  // expected-error @+1 {{'mpc.int_add' op int_add takes operands of one type, got tensor<3xi32> and tensor<3xi64>; cast changes it}}
  %r0 = mpc.int_add %0, %1 : (tensor<3xi32>, tensor<3xi64>) -> tensor<3xi64>
  return
}

// -----

func.func @int_neg(%0: tensor<2x3xi32>) {
  // expected-error @+1 {{'mpc.int_neg' op result 0 is 'tensor<3x2xi32>', its shape must be 2x3}}
  %r0 = mpc.int_neg %0 : (tensor<2x3xi32>) -> tensor<3x2xi32>
  return
}

// -----

func.func @int_abs(%0: tensor<2x3xi32>) {
  // expected-error @+1 {{'mpc.int_abs' op result 0 is 'tensor<3x2xi32>', its shape must be 2x3}}
  %r0 = mpc.int_abs %0 : (tensor<2x3xi32>) -> tensor<3x2xi32>
  return
}

// -----

func.func @int_add(%0: tensor<3xi64>, %1: tensor<3xi64>) {
  // expected-error @+1 {{'mpc.int_add' op result 0 is 'tensor<3xi32>', but it computes in the type of its operands, 'i64'; mpc.cast changes it}}
  %r0 = mpc.int_add %0, %1 : (tensor<3xi64>, tensor<3xi64>) -> tensor<3xi32>
  return
}

// -----

func.func @int_neg(%0: tensor<3xi32>) {
  // expected-error @+1 {{'mpc.int_neg' op result 0 is 'tensor<3xi64>', but it computes in the type of its operands, 'i32'; mpc.cast changes it}}
  %r0 = mpc.int_neg %0 : (tensor<3xi32>) -> tensor<3xi64>
  return
}

// -----

func.func @int_floor_div(%0: tensor<3xi32>, %1: tensor<3xi32>) {
  // expected-error @+1 {{'mpc.int_floor_div' op result 0 is 'tensor<3xi64>', but it computes in the type of its operands, 'i32'; mpc.cast changes it}}
  %r0 = mpc.int_floor_div %0, %1 : (tensor<3xi32>, tensor<3xi32>) -> tensor<3xi64>
  return
}
