// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @adamw(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<3xf32>, %3: tensor<4xf32>, %4: tensor<f32>, %5: tensor<i32>) {
  // expected-error @+1 {{'mpc.adamw' op adamw expects moment2 of shape 4, got tensor<3xf32>}}
  %r0, %r1, %r2 = mpc.adamw %0, %1, %2, %3, %4, %5 : (tensor<4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<3xf32>)
  return
}

// -----

func.func @lamb(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>, %4: tensor<f32>, %5: tensor<1xi32>) {
  // expected-error @+1 {{'mpc.lamb' op lamb expects scalars (rank 0), got tensor<1xi32>}}
  %r0, %r1, %r2 = mpc.lamb %0, %1, %2, %3, %4, %5 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<1xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @shadow_missing(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<f32>) {
  // expected-error @+1 {{'mpc.momentum' op has 2 results, expected 3}}
  %r0, %r1 = mpc.momentum %0, %1, %2, %3 {shadow = f16} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @shadow_unasked(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<f32>) {
  // expected-error @+1 {{'mpc.momentum' op result 2 must have the type of state operand 2}}
  %r0, %r1, %r2 = mpc.momentum %0, %1, %2, %3 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
  return
}

// -----

func.func @shadow_of_another_type(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<f32>) {
  // expected-error @+1 {{'mpc.momentum' op shadow is 'tensor<4xbf16>', expected 'tensor<4xf16>'}}
  %r0, %r1, %r2 = mpc.momentum %0, %1, %2, %3 {shadow = f16} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>)
  return
}

// -----

func.func @shadow_of_another_shape(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<f32>, %4: tensor<i32>) {
  // expected-error @+1 {{'mpc.sgd' op shadow is 'tensor<2xf16>', expected 'tensor<4xf16>'}}
  %r0, %r1, %r2 = mpc.sgd %0, %1, %2, %3, %4 {shadow = f16} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2xf16>)
  return
}

// -----

func.func @shadow_word(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>, %4: tensor<f32>, %5: tensor<i32>) {
  // expected-error @+1 {{'mpc.adam' 'shadow' is one of none, f16, bf16; got 'f32'}}
  %r0, %r1, %r2, %r3 = mpc.adam %0, %1, %2, %3, %4, %5 {shadow = f32} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
  return
}

// -----

func.func @scale_missing(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<f32>) {
  // expected-error @+1 {{'mpc.momentum' op momentum takes the operands (parameter, velocity, gradient, learning_rate, scale, predicate?), got 4 operands}}
  %r0, %r1 = mpc.momentum %0, %1, %2, %3 {unscale = true} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @scale_unasked(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<f32>, %4: tensor<f32>) {
  // expected-error @+1 {{'mpc.momentum' op momentum expects predicate to be tensor<i1>, got tensor<f32>; a scale comes with unscale = true, a norm with max_norm}}
  %r0, %r1 = mpc.momentum %0, %1, %2, %3, %4 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @predicate_for_norm(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<f32>, %4: tensor<i1>) {
  // expected-error @+1 {{'mpc.momentum' op momentum expects norm to be tensor<f64>, got tensor<i1>; a scale comes with unscale = true, a norm with max_norm}}
  %r0, %r1 = mpc.momentum %0, %1, %2, %3, %4 {max_norm = 1.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @negative_norm(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<f32>) {
  // expected-error @+1 {{'mpc.momentum' op momentum expects max_norm > 0, or 0 where it does not clip, got -1.00}}
  %r0, %r1 = mpc.momentum %0, %1, %2, %3 {max_norm = -1.0} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @scale_of_one_element(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<f32>, %4: tensor<1xf32>) {
  // expected-error @+1 {{'mpc.momentum' op momentum expects scalars (rank 0), got tensor<1xf32>}}
  %r0, %r1 = mpc.momentum %0, %1, %2, %3, %4 {unscale = true} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<1xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @norm_of_a_scale(%0: tensor<f32>) {
  // expected-error @+1 {{'mpc.global_norm' op global_norm expects at least one gradient}}
  %norm = mpc.global_norm %0 {unscale = true} : tensor<f32>
  return
}

// -----

func.func @low_scale(%0: tensor<f16>, %1: tensor<4xf16>) {
  // expected-error @+1 {{'mpc.global_norm' op global_norm expects scale to be tensor<f32>, got tensor<f16>}}
  %norm = mpc.global_norm %0, %1 {unscale = true} : (tensor<f16>, tensor<4xf16>) -> tensor<f32>
  return
}
