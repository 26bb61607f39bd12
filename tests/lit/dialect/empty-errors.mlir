// RUN: mpc-opt %s --verify-diagnostics --split-input-file

// A tensor has at least one element, wherever an operation meets it.

func.func @operand(%x: tensor<0x4xf32>) -> tensor<0xf32> {
  // expected-error @+1 {{'mpc.reduce_mean' op operand #0 must be statically shaped tensor of 32-bit float or 16-bit float or bfloat16 type or 64-bit float values, at least one, but got 'tensor<0x4xf32>'}}
  %y = mpc.reduce_mean %x {axes = [1]} : (tensor<0x4xf32>) -> tensor<0xf32>
  return %y : tensor<0xf32>
}

// -----

func.func @one_of_several(%x: tensor<4x2xf32>, %y: tensor<0x2xf32>) -> tensor<4x2xf32> {
  // expected-error @+1 {{'mpc.concat' op operand #1 must be variadic of statically shaped tensor of}}
  %z = mpc.concat %x, %y : (tensor<4x2xf32>, tensor<0x2xf32>) -> tensor<4x2xf32>
  return %z : tensor<4x2xf32>
}

// -----

func.func @indices(%table: tensor<4x2xf32>, %indices: tensor<0xi32>) -> tensor<0x2xf32> {
  // expected-error @+1 {{'mpc.gather' op operand #1 must be statically shaped tensor of 32-bit signless integer or 64-bit signless integer values, at least one}}
  %y = mpc.gather %table, %indices : (tensor<4x2xf32>, tensor<0xi32>) -> tensor<0x2xf32>
  return %y : tensor<0x2xf32>
}

// -----

func.func @result(%x: tensor<1xf32>) -> tensor<0xf32> {
  // expected-error @+1 {{'mpc.broadcast_to' op result #0 must be statically shaped tensor of}}
  %y = mpc.broadcast_to %x {shape = [0]} : (tensor<1xf32>) -> tensor<0xf32>
  return %y : tensor<0xf32>
}

// -----

func.func @constant() -> tensor<0xf32> {
  // expected-error @+1 {{'mpc.constant' op result #0 must be statically shaped tensor of}}
  %y = mpc.constant {value = dense<> : tensor<0xf32>} : () -> tensor<0xf32>
  return %y : tensor<0xf32>
}

// -----

func.func private @loss(%w: tensor<f32>, %x: tensor<0x4xf32>) -> tensor<f32> {
  return %w : tensor<f32>
}
func.func @gradient(%w: tensor<f32>, %x: tensor<0x4xf32>, %one: tensor<f32>) -> tensor<0x4xf32> {
  // expected-error @+1 {{'mpc.value_and_grad' op operand #1 must be variadic of statically shaped tensor of}}
  %l, %dx = mpc.value_and_grad @loss(%w, %x) seed(%one) {wrt = array<i64: 1>}
      : (tensor<f32>, tensor<0x4xf32>, tensor<f32>) -> (tensor<f32>, tensor<0x4xf32>)
  return %dx : tensor<0x4xf32>
}

// -----

func.func @region(%x: tensor<0x4xf32>) -> tensor<0x4xf32> {
  // expected-error @+1 {{'mpc.fusion' op operand #0 must be variadic of statically shaped tensor of}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<0x4xf32>):
    %s = mpc.neg %a : tensor<0x4xf32>
    mpc.yield %s : tensor<0x4xf32>
  } : (tensor<0x4xf32>) -> tensor<0x4xf32>
  return %y : tensor<0x4xf32>
}
