// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @arithmetic(%x: tensor<4xf8E4M3FN>) {
  // expected-error @+1 {{'mpc.relu' op operand #0 must be statically shaped tensor of 32-bit float or 16-bit float or bfloat16 type or 64-bit float values, at least one, but got 'tensor<4xf8E4M3FN>'}}
  %y = mpc.relu %x : tensor<4xf8E4M3FN>
  return
}

// -----

func.func @movement(%x: tensor<4xf8E5M2>) {
  // expected-error @+1 {{'mpc.reshape' op operand #0 must be}}
  %y = mpc.reshape %x {shape = [2, 2]} : (tensor<4xf8E5M2>) -> tensor<2x2xf8E5M2>
  return
}

// -----

func.func @region(%x: tensor<4xf32>) {
  // expected-error @+1 {{it casts a type that generated code does not know}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf32>):
    %s = mpc.cast %a : (tensor<4xf32>) -> tensor<4xf8E5M2>
    %t = mpc.cast %s : (tensor<4xf8E5M2>) -> tensor<4xf32>
    mpc.yield %t : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @other_format(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.cast' op result #0 must be}}
  %y = mpc.cast %x : (tensor<4xf32>) -> tensor<4xf8E4M3>
  return
}

// -----

// expected-error @+1 {{argument 0 is the statistic 's' of type 'tensor<4xf8E5M2>'; nothing but a cast takes such values, and no update makes them}}
func.func @state(%s: tensor<4xf8E5M2> {mpc.state = #mpc.state<statistic, "s">}) attributes {mpc.step} {
  return
}

// -----

func.func private @loss(tensor<4xf32>) -> tensor<f8E5M2>
func.func @differentiated(%x: tensor<4xf32>, %seed: tensor<f32>) {
  // expected-error @+1 {{'mpc.value_and_grad' op result #0 must be}}
  %loss, %dx = mpc.value_and_grad @loss(%x) seed(%seed) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<f32>) -> (tensor<f8E5M2>, tensor<4xf32>)
  return
}
