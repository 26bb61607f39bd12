// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @abs(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.abs' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.abs %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @floor(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.floor' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.floor %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @square(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.square' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.square %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @log1p(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.log1p' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.log1p %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @sin(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.sin' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.sin %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @cos(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.cos' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.cos %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @silu(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.silu' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.silu %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @gelu(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.gelu' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.gelu %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @leaky_relu(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.leaky_relu' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.leaky_relu %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @pow(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.pow' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.pow %0 {exponent = 2.0} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @clamp(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.clamp' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.clamp %0 {maximum = 1.0, minimum = 0.0} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @abs_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.abs_grad' op abs_grad expects x of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.abs_grad %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @square_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.square_grad' op square_grad expects x of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.square_grad %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @log1p_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.log1p_grad' op log1p_grad expects x of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.log1p_grad %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @sin_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.sin_grad' op sin_grad expects x of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.sin_grad %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @cos_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.cos_grad' op cos_grad expects x of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.cos_grad %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @erf(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.erf' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.erf %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @erf_grad(%0: tensor<2x3xf32>, %1: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.erf_grad' op erf_grad expects x of shape 2x3, got tensor<3xf32>}}
  %r0 = mpc.erf_grad %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @hard_swish(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.hard_swish' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.hard_swish %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @hard_swish_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.hard_swish_grad' op hard_swish_grad expects x of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.hard_swish_grad %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @silu_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.silu_grad' op silu_grad expects x of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.silu_grad %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gelu_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.gelu_grad' op gelu_grad expects x of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.gelu_grad %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @leaky_relu_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.leaky_relu_grad' op leaky_relu_grad expects x of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.leaky_relu_grad %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @pow_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.pow_grad' op pow_grad expects x of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.pow_grad %0, %1 {exponent = 2.0} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @clamp_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.clamp_grad' op clamp_grad expects x of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.clamp_grad %0, %1 {maximum = 1.0, minimum = 0.0} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gelu(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.gelu' 'approximate' is one of none, tanh; got 'erf'}}
  %r0 = mpc.gelu %0 {approximate = erf} : tensor<2x3xf32>
  return
}

// -----

func.func @pow(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.pow' op requires attribute 'exponent'}}
  %r0 = mpc.pow %0 : tensor<2x3xf32>
  return
}

// -----

func.func @pow(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.pow' op takes an exponent that is finite in f32, got +Inf}}
  %r0 = mpc.pow %0 {exponent = 0x7F800000 : f32} : tensor<2x3xf32>
  return
}

// -----

func.func @pow(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.pow' op takes an exponent that is finite in f32, got NaN}}
  %r0 = mpc.pow %0 {exponent = 0x7FC00000 : f32} : tensor<2x3xf32>
  return
}

// -----

func.func @pow_grad(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.pow_grad' op takes an exponent that is finite in f32, got -Inf}}
  %r0 = mpc.pow_grad %0, %1 {exponent = 0xFF800000 : f32} : tensor<2x3xf32>
  return
}

// -----

func.func @clamp(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.clamp' op limits x to [1.000000e+00, -1.000000e+00]; the minimum must not exceed the maximum}}
  %r0 = mpc.clamp %0 {maximum = -1.0, minimum = 1.0} : tensor<2x3xf32>
  return
}

// -----

func.func @prelu(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.prelu' op prelu expects alpha of shape 3, one slope a channel of axis 1, or 1, got tensor<2xf32>}}
  %r0 = mpc.prelu %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @prelu(%0: tensor<3x2x2x4xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.prelu' op prelu expects alpha of shape 4, one slope a channel of axis 3, or 1, got tensor<2xf32>}}
  %r0 = mpc.prelu %0, %1 {data_format = NHWC} : (tensor<3x2x2x4xf32>, tensor<2xf32>) -> tensor<3x2x2x4xf32>
  return
}

// -----

func.func @prelu(%0: tensor<2xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.prelu' op prelu takes alpha of shape 1 for x of rank 1, got tensor<2xf32>: there is no channel axis}}
  %r0 = mpc.prelu %0, %1 : tensor<2xf32>
  return
}

// -----

func.func @prelu_grad(%0: tensor<2xf32>, %1: tensor<2x3xf32>, %2: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.prelu_grad' op prelu_grad expects dy of shape 2x3, got tensor<2xf32>}}
  %r0, %r1 = mpc.prelu_grad %0, %1, %2 : (tensor<2xf32>, tensor<2x3xf32>, tensor<3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
  return
}

// -----

func.func @prelu_grad(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>, %2: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.prelu_grad' op prelu_grad expects alpha of shape 3}}
  %r0, %r1 = mpc.prelu_grad %0, %1, %2 : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2xf32>)
  return
}

// -----

func.func @minimum(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.minimum' op minimum cannot broadcast tensor<2x3xf32> with tensor<2xf32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.minimum %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @greater(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.greater' op greater cannot broadcast tensor<2x3xf32> with tensor<2xf32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.greater %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xi1>
  return
}

// -----

func.func @greater(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.greater' op result #0 must be statically shaped tensor of 1-bit signless integer values}}
  %r0 = mpc.greater %0, %1 : tensor<2x3xf32>
  return
}

// -----

func.func @less(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.less' op less cannot broadcast tensor<2x3xf32> with tensor<2xf32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.less %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xi1>
  return
}

// -----

func.func @less(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.less' op result #0 must be statically shaped tensor of 1-bit signless integer values}}
  %r0 = mpc.less %0, %1 : tensor<2x3xf32>
  return
}

// -----

func.func @not_equal(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.not_equal' op not_equal cannot broadcast tensor<2x3xf32> with tensor<2xf32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.not_equal %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xi1>
  return
}

// -----

func.func @greater_equal(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.greater_equal' op result #0 must be statically shaped tensor of 1-bit signless integer values}}
  %r0 = mpc.greater_equal %0, %1 : tensor<2x3xf32>
  return
}

// -----

func.func @less_equal(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.less_equal' op less_equal cannot broadcast tensor<2x3xf32> with tensor<2xf32>}}
  %r0 = mpc.less_equal %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xi1>
  return
}

// -----

func.func @logical_and(%0: tensor<2x3xf32>, %1: tensor<2x3xi1>) {
  // expected-error @+1 {{'mpc.logical_and' op operand #0 must be statically shaped tensor of 1-bit signless integer values}}
  %r0 = mpc.logical_and %0, %1 : (tensor<2x3xf32>, tensor<2x3xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @logical_or(%0: tensor<2x3xi1>, %1: tensor<2xi1>) {
  // expected-error @+1 {{'mpc.logical_or' op logical_or cannot broadcast tensor<2x3xi1> with tensor<2xi1>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.logical_or %0, %1 : (tensor<2x3xi1>, tensor<2xi1>) -> tensor<2x3xi1>
  return
}

// -----

func.func @logical_not(%0: tensor<2x3xi1>) {
  // expected-error @+1 {{'mpc.logical_not' op result 0 is 'tensor<3x2xi1>', its shape must be 2x3}}
  %r0 = mpc.logical_not %0 : (tensor<2x3xi1>) -> tensor<3x2xi1>
  return
}

// -----

func.func @minimum_grad(%0: tensor<3xf32>, %1: tensor<2x3xf32>, %2: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.minimum_grad' op minimum_grad expects dy of shape 2x3, got tensor<3xf32>}}
  %r0, %r1 = mpc.minimum_grad %0, %1, %2 : (tensor<3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @minimum_grad(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>, %2: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.minimum_grad' op minimum_grad cannot broadcast tensor<2x3xf32> with tensor<2xf32>}}
  %r0, %r1 = mpc.minimum_grad %0, %1, %2 : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @where(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>, %2: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.where' op operand #0 must be statically shaped tensor of 1-bit signless integer values}}
  %r0 = mpc.where %0, %1, %2 : tensor<2x3xf32>
  return
}

// -----

func.func @where(%0: tensor<2x3xi1>, %1: tensor<2x3xf32>, %2: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.where' op where cannot broadcast tensor<2x3xf32> with tensor<2xf32>}}
  %r0 = mpc.where %0, %1, %2 : (tensor<2x3xi1>, tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @where(%0: tensor<2xi1>, %1: tensor<2x3xf32>, %2: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.where' op where cannot broadcast tensor<2xi1> with tensor<2x3xf32>}}
  %r0 = mpc.where %0, %1, %2 : (tensor<2xi1>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @where(%0: tensor<2xi1>, %1: tensor<2xi32>, %2: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.where' op where chooses between floating tensors, or between two of one element type, got tensor<2xi32> and tensor<2xf32>; cast changes it}}
  %r0 = mpc.where %0, %1, %2 : (tensor<2xi1>, tensor<2xi32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @where(%0: tensor<2xi1>, %1: tensor<2xi32>, %2: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.where' op result 0 is 'tensor<2xi64>', but it computes in the type of its operands, 'i32'; mpc.cast changes it}}
  %r0 = mpc.where %0, %1, %2 : (tensor<2xi1>, tensor<2xi32>, tensor<2xi32>) -> tensor<2xi64>
  return
}

// -----

func.func @where(%0: tensor<2xi1>, %1: tensor<2xf32>, %2: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.where' op result 0 is 'tensor<2xi1>', but it computes in the type of its operands, 'f32'; mpc.cast changes it}}
  %r0 = mpc.where %0, %1, %2 : (tensor<2xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xi1>
  return
}
