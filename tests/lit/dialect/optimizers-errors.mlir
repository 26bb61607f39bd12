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
  %r0, %r1 = mpc.momentum %0, %1, %2, %3 {shadow = "f16"} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
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
  %r0, %r1, %r2 = mpc.momentum %0, %1, %2, %3 {shadow = "f16"} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>)
  return
}

// -----

func.func @shadow_of_another_shape(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<f32>, %4: tensor<i32>) {
  // expected-error @+1 {{'mpc.sgd' op shadow is 'tensor<2xf16>', expected 'tensor<4xf16>'}}
  %r0, %r1, %r2 = mpc.sgd %0, %1, %2, %3, %4 {shadow = "f16"} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<2xf16>)
  return
}

// -----

func.func @shadow_word(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>, %4: tensor<f32>, %5: tensor<i32>) {
  // expected-error @+1 {{custom op 'mpc.adam' 'mpc.adam' op attribute 'shadow' failed to satisfy constraint: string attribute one of none, f16, bf16}}
  %r0, %r1, %r2, %r3 = mpc.adam %0, %1, %2, %3, %4, %5 {shadow = "f32"} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
  return
}
