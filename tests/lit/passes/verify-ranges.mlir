// RUN: mpc-opt %s --mpc-verify-ranges --verify-diagnostics --split-input-file
// RUN: mpc-opt %s --mpc-verify-ranges --mpc-verify-ranges --split-input-file 2> /dev/null > %t && mpc-opt %s --split-input-file | diff %t -

// Nothing is known of the operand, yet each value is at least 1e5.
func.func @constants(%x: tensor<4xf32>) -> tensor<4xf16> {
  // expected-note @below {{mpc.sigmoid in net has values in [}}
  %p = mpc.sigmoid %x in "net" : tensor<4xf32>
  // expected-note @below {{mpc.add_scalar in net has values in [}}
  %a = mpc.add_scalar %p {value = 1.0 : f32} in "net" : tensor<4xf32>
  // expected-note @below {{mpc.mul_scalar in net has values in [}}
  %b = mpc.mul_scalar %a {value = 1.0e5 : f32} in "net" : tensor<4xf32>
  // expected-warning @below {{mpc.cast in net overflows f16 in every step: one element is at least}}
  %y = mpc.cast %b in "net" : (tensor<4xf32>) -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

// bf16 has the range of f32.
func.func @bf16(%x: tensor<4xf32>) -> tensor<4xbf16> {
  %p = mpc.sigmoid %x : tensor<4xf32>
  %a = mpc.add_scalar %p {value = 1.0 : f32} : tensor<4xf32>
  %b = mpc.mul_scalar %a {value = 1.0e5 : f32} : tensor<4xf32>
  %y = mpc.cast %b : (tensor<4xf32>) -> tensor<4xbf16>
  return %y : tensor<4xbf16>
}

// -----

// What may overflow gives no warning: the input may be small.
func.func @may(%x: tensor<4xf32>) -> tensor<4xf16> {
  %b = mpc.mul_scalar %x {value = 1.0e5 : f32} : tensor<4xf32>
  %y = mpc.cast %b : (tensor<4xf32>) -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

// What reads an overflow is no second one.
func.func @behind(%x: tensor<4xf16>) -> tensor<4xf16> {
  %large = mpc.constant {value = dense<7.0e4> : tensor<4xf32>} : () -> tensor<4xf32>
  // expected-warning @below {{mpc.cast overflows f16 in every step}}
  // expected-note @-2 {{mpc.constant has values in [}}
  %y = mpc.cast %large : (tensor<4xf32>) -> tensor<4xf16>
  %z = mpc.relu %y : tensor<4xf16>
  return %z : tensor<4xf16>
}
