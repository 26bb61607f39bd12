// RUN: mpc-opt %s --mpc-verify-precision --verify-diagnostics --split-input-file

func.func @low_logits(%x: tensor<2x4xf16>, %l: tensor<2xi32>) -> tensor<f32> {
  // expected-error @below {{operand 0 in 'net/loss' is 'tensor<2x4xf16>'; losses are f32 at every level}}
  %loss, %lse = mpc.softmax_cross_entropy %x, %l in <"net/loss">
      : (tensor<2x4xf16>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>)
  return %loss : tensor<f32>
}

// -----

func.func @low_labels(%x: tensor<2x4xf32>, %l: tensor<2x4xf32>) -> tensor<f32> {
  // expected-note @below {{the cast is here}}
  %low = mpc.cast %l : (tensor<2x4xf32>) -> tensor<2x4xbf16>
  %s = mpc.mul_scalar %low {value = 0.5} : tensor<2x4xbf16>
  %wide = mpc.cast %s : (tensor<2x4xbf16>) -> tensor<2x4xf32>
  // expected-error @below {{reads floating labels that passed through 'bf16'}}
  %loss, %lse = mpc.softmax_cross_entropy %x, %wide : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<f32>, tensor<2xf32>)
  return %loss : tensor<f32>
}

// -----

func.func @integer_labels(%x: tensor<2x4xf32>, %l: tensor<2x4xi32>) -> tensor<f32> {
  // expected-note @below {{the cast is here}}
  %f = mpc.cast %l : (tensor<2x4xi32>) -> tensor<2x4xf32>
  // expected-error @below {{reads integer labels that were cast to 'tensor<2x4xf32>'}}
  %loss = mpc.mse %x, %f : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
