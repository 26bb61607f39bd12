// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @constant() {
  // expected-error @+1 {{'mpc.constant' op result 0 is 'tensor<2xf32>', its shape must be 3}}
  %r0 = mpc.constant {value = dense<1.0> : tensor<3xf32>} : () -> tensor<2xf32>
  return
}

// -----

func.func @random(%0: tensor<2xi64>) {
  // expected-error @+1 {{'mpc.random' op random expects seed of shape scalar, got tensor<2xi64>}}
  %r0 = mpc.random %0 {distribution = uniform, shape = [2]} : (tensor<2xi64>) -> tensor<2xf32>
  return
}

// -----

func.func @random(%0: tensor<i64>) {
  // expected-error @+1 {{'mpc.random' op random takes a shape of extents >= 1, got 0}}
  %r0 = mpc.random %0 {distribution = uniform, shape = [0]} : (tensor<i64>) -> tensor<1xf32>
  return
}

// -----

func.func @random(%0: tensor<i64>) {
  // expected-error @+1 {{'mpc.random' 'distribution' is one of uniform, normal, truncated_normal; got 'cauchy'}}
  %r0 = mpc.random %0 {distribution = cauchy, shape = [1]} : (tensor<i64>) -> tensor<1xf32>
  return
}

// -----

func.func @relu(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.relu' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.relu %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @sigmoid(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.sigmoid' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.sigmoid %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @tanh(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.tanh' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.tanh %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @exp(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.exp' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.exp %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @log(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.log' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.log %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @sqrt(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.sqrt' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.sqrt %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @neg(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.neg' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.neg %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @stop_gradient(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.stop_gradient' op result 0 is 'tensor<3x2xf32>', its shape must be 2x3}}
  %r0 = mpc.stop_gradient %0 : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return
}

// -----

func.func @relu(%0: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.relu' op operand #0 must be statically shaped tensor}}
  %r0 = mpc.relu %0 : tensor<2xi32>
  return
}

// -----

func.func @relu(%0: tensor<?xf32>) {
  // expected-error @+1 {{'mpc.relu' op operand #0 must be statically shaped tensor}}
  %r0 = mpc.relu %0 : (tensor<?xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @relu(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.relu' op requires a single operand}}
  %r0 = mpc.relu %0, %1 : tensor<2x3xf32>
  return
}

// -----

func.func @relu_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.relu_grad' op relu_grad expects y of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.relu_grad %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @sigmoid_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.sigmoid_grad' op sigmoid_grad expects y of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.sigmoid_grad %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @tanh_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.tanh_grad' op tanh_grad expects y of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.tanh_grad %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @sqrt_grad(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.sqrt_grad' op sqrt_grad expects y of shape 2x3, got tensor<2xf32>}}
  %r0 = mpc.sqrt_grad %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @add(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.add' op add cannot broadcast tensor<2x3xf32> with tensor<2xf32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.add %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @sub(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.sub' op sub cannot broadcast tensor<2x3xf32> with tensor<2xf32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.sub %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @mul(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.mul' op mul cannot broadcast tensor<2x3xf32> with tensor<2xf32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.mul %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @div(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.div' op div cannot broadcast tensor<2x3xf32> with tensor<2xf32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.div %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @maximum(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.maximum' op maximum cannot broadcast tensor<2x3xf32> with tensor<2xf32>: aligned at the right, extents must be equal or 1}}
  %r0 = mpc.maximum %0, %1 : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @add(%0: tensor<2x3xf32>, %1: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.add' op result 0 is 'tensor<3xf32>', its shape must be 2x3}}
  %r0 = mpc.add %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return
}

// -----

func.func @div_grad(%0: tensor<2x3xf32>, %1: tensor<3xf32>, %2: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.div_grad' op div_grad expects y of shape 2x3, got tensor<3xf32>}}
  %r0 = mpc.div_grad %0, %1, %2 : (tensor<2x3xf32>, tensor<3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @div_grad(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>, %2: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.div_grad' op div_grad cannot broadcast tensor<2x3xf32> with tensor<2xf32>}}
  %r0 = mpc.div_grad %0, %1, %2 : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @div_grad(%0: tensor<3xf32>, %1: tensor<3xf32>, %2: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.div_grad' op div_grad expects dy of shape 2x3, got tensor<3xf32>}}
  %r0 = mpc.div_grad %0, %1, %2 : (tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @maximum_grad(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>, %2: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.maximum_grad' op maximum_grad cannot broadcast tensor<2x3xf32> with tensor<2xf32>}}
  %r0, %r1 = mpc.maximum_grad %0, %1, %2 : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @maximum_grad(%0: tensor<3xf32>, %1: tensor<2x3xf32>, %2: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.maximum_grad' op maximum_grad expects dy of shape 2x3, got tensor<3xf32>}}
  %r0, %r1 = mpc.maximum_grad %0, %1, %2 : (tensor<3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @add_scalar(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.add_scalar' op result 0 is 'tensor<6xf32>', its shape must be 2x3}}
  %r0 = mpc.add_scalar %0 {value = 1.0} : (tensor<2x3xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @mul_scalar(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.mul_scalar' op result 0 is 'tensor<6xf32>', its shape must be 2x3}}
  %r0 = mpc.mul_scalar %0 {value = 1.0} : (tensor<2x3xf32>) -> tensor<6xf32>
  return
}

// -----

func.func @add_scalar(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{custom op 'mpc.add_scalar' attribute 'value' failed to satisfy constraint: 32-bit float attribute}}
  %r0 = mpc.add_scalar %0 {value = 1.0 : f64} : tensor<2x3xf32>
  return
}

// -----

func.func @mul_scalar(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.mul_scalar' op requires attribute 'value'}}
  %r0 = mpc.mul_scalar %0 : tensor<2x3xf32>
  return
}

// -----

func.func @sum_n(%0: tensor<2x3xf32>, %1: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.sum_n' op sum_n expects every operand of shape 2x3, got tensor<3xf32>}}
  %r0 = mpc.sum_n %0, %1 : (tensor<2x3xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @sum_n() {
  // expected-error @+1 {{'mpc.sum_n' op sum_n expects at least one operand}}
  %r0 = mpc.sum_n : () -> tensor<2x3xf32>
  return
}

// -----

func.func @equal(%0: tensor<2xi32>, %1: tensor<3xi32>) {
  // expected-error @+1 {{'mpc.equal' op equal cannot broadcast tensor<2xi32> with tensor<3xi32>}}
  %r0 = mpc.equal %0, %1 : (tensor<2xi32>, tensor<3xi32>) -> tensor<2xi1>
  return
}

// -----

func.func @equal(%0: tensor<2xi32>, %1: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.equal' op result #0 must be statically shaped tensor of 1-bit signless integer values}}
  %r0 = mpc.equal %0, %1 : tensor<2xi32>
  return
}

// -----

func.func @select(%0: tensor<i1>, %1: tensor<2xf32>, %2: tensor<2xf16>) {
  // expected-error @+1 {{'mpc.select' op select chooses between two tensors of one type, got tensor<2xf32> and tensor<2xf16>}}
  %r0 = mpc.select %0, %1, %2 : (tensor<i1>, tensor<2xf32>, tensor<2xf16>) -> tensor<2xf32>
  return
}

// -----

func.func @select(%0: tensor<3xi1>, %1: tensor<2xf32>, %2: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.select' op select expects a scalar condition or one of shape 2, got tensor<3xi1>}}
  %r0 = mpc.select %0, %1, %2 : (tensor<3xi1>, tensor<2xf32>, tensor<2xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @cast(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.cast' op result 0 is 'tensor<6xf16>', its shape must be 2x3}}
  %r0 = mpc.cast %0 : (tensor<2x3xf32>) -> tensor<6xf16>
  return
}

// -----

func.func @dropout(%0: tensor<2x3xf32>, %1: tensor<1xi64>, %2: tensor<i32>) {
  // expected-error @+1 {{'mpc.dropout' op dropout expects seed of shape scalar, got tensor<1xi64>}}
  %r0 = mpc.dropout %0, %1, %2 {p = 0.5} : (tensor<2x3xf32>, tensor<1xi64>, tensor<i32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dropout(%0: tensor<2x3xf32>, %1: tensor<i64>, %2: tensor<1xi32>) {
  // expected-error @+1 {{'mpc.dropout' op dropout expects step of shape scalar, got tensor<1xi32>}}
  %r0 = mpc.dropout %0, %1, %2 {p = 0.5} : (tensor<2x3xf32>, tensor<i64>, tensor<1xi32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @dropout(%0: tensor<2x3xf32>, %1: tensor<i64>, %2: tensor<i32>) {
  // expected-error @+1 {{'mpc.dropout' op dropout takes a probability p in [0, 1), got 1}}
  %r0 = mpc.dropout %0, %1, %2 {p = 1.0} : (tensor<2x3xf32>, tensor<i64>, tensor<i32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @reshape(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reshape' op reshape to 4 needs 4 elements, got tensor<2x3xf32> with 6}}
  %r0 = mpc.reshape %0 {shape = [4]} : (tensor<2x3xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @reshape(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reshape' op reshape to -1x3 needs}}
  %r0 = mpc.reshape %0 {shape = [-1, 3]} : tensor<2x3xf32>
  return
}

// -----

func.func @transpose(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.transpose' op transpose permutation must name each axis of tensor<2x3xf32> once, got axis 0}}
  %r0 = mpc.transpose %0 {permutation = [0, 0]} : tensor<2x3xf32>
  return
}

// -----

func.func @transpose(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.transpose' op transpose permutation has 1 axes, tensor<2x3xf32> has 2}}
  %r0 = mpc.transpose %0 {permutation = [0]} : tensor<2x3xf32>
  return
}

// -----

func.func @broadcast_to(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.broadcast_to' op broadcast_to cannot broadcast tensor<2x3xf32> with tensor<3x3xf32>}}
  %r0 = mpc.broadcast_to %0 {shape = [3, 3]} : (tensor<2x3xf32>) -> tensor<3x3xf32>
  return
}

// -----

func.func @broadcast_to(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.broadcast_to' op broadcast_to cannot stretch tensor<2x3xf32> to 1x3}}
  %r0 = mpc.broadcast_to %0 {shape = [1, 3]} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  return
}

// -----

func.func @reduce_sum(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reduce_sum' op reduce_sum axes must be distinct and in [0, 2), got 2}}
  %r0 = mpc.reduce_sum %0 {axes = [2]} : tensor<2x3xf32>
  return
}

// -----

func.func @reduce_sum(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reduce_sum' op reduce_sum axes must be distinct and in [0, 2), got 1}}
  %r0 = mpc.reduce_sum %0 {axes = [1, 1]} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @reduce_sum(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reduce_sum' op result 0 is 'tensor<2xf32>', its shape must be 2x1}}
  %r0 = mpc.reduce_sum %0 {axes = [1], keep_dims = true} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @reduce_mean(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reduce_mean' op reduce_mean axes must be distinct and in [0, 2), got 2}}
  %r0 = mpc.reduce_mean %0 {axes = [2]} : tensor<2x3xf32>
  return
}

// -----

func.func @reduce_mean(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reduce_mean' op reduce_mean axes must be distinct and in [0, 2), got 1}}
  %r0 = mpc.reduce_mean %0 {axes = [1, 1]} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @reduce_mean(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reduce_mean' op result 0 is 'tensor<2xf32>', its shape must be 2x1}}
  %r0 = mpc.reduce_mean %0 {axes = [1], keep_dims = true} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @argmax(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.argmax' op argmax axis 2 is outside [-2, 2) of a rank-2 tensor}}
  %r0 = mpc.argmax %0 {axis = 2} : (tensor<2x3xf32>) -> tensor<2xi32>
  return
}

// -----

func.func @argmax(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.argmax' op result 0 is 'tensor<2xi32>', its shape must be 3}}
  %r0 = mpc.argmax %0 {axis = 0} : (tensor<2x3xf32>) -> tensor<2xi32>
  return
}

// -----

func.func @iota_axis() {
  // expected-error @+1 {{'mpc.iota' op iota axis 2 is outside [-2, 2) of a rank-2 tensor}}
  %r0 = mpc.iota {axis = 2, shape = [2, 3]} : () -> tensor<2x3xi32>
  return
}

// -----

func.func @iota_empty() {
  // expected-error @+1 {{'mpc.iota' op iota takes a shape of extents >= 1 with at most 2^47 elements, got 2x0}}
  %r0 = mpc.iota {shape = [2, 0]} : () -> tensor<2x3xi32>
  return
}

// -----

func.func @iota_type() {
  // expected-error @+1 {{'mpc.iota' op result #0 must be statically shaped tensor of 32-bit float or 64-bit float or 32-bit signless integer or 64-bit signless integer values}}
  %r0 = mpc.iota {shape = [2]} : () -> tensor<2xf16>
  return
}

// -----

func.func @iota_range() {
  // expected-error @+1 {{'mpc.iota' op counts 2 numbers from 2147483647 in steps of 1, which i32 does not hold}}
  %r0 = mpc.iota {shape = [2], start = 2147483647} : () -> tensor<2xi32>
  return
}
