// RUN: mpc-opt %s --mpc-autodiff --verify-diagnostics --split-input-file

func.func @unused(%w: tensor<4xf32>, %b: tensor<4xf32> {mpc.state = #mpc.state<input, "fc.bias">}, %s: tensor<f32>) -> tensor<4xf32> {
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  // expected-remark @below {{the loss does not depend on operand 1 ('fc.bias'); its gradient is zero}}
  %dw, %db = mpc.backward %loss wrt(%w, %b) seed(%s)
      : (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %db : tensor<4xf32>
}

// -----

// expected-note @below {{from operand 0 ('w')}}
func.func @no_rule(%w: tensor<4xf32> {mpc.state = #mpc.state<input, "w">}, %s: tensor<f32>) -> tensor<4xf32> {
  // expected-error @below {{'mpc.tensor_statistics' has no derivative rule (VJP), but the gradient of operand 0 ('w') passes through it}}
  %e, %z, %largest = mpc.tensor_statistics %w : (tensor<4xf32>) -> (tensor<256xi32>, tensor<i32>, tensor<f32>)
  // expected-note @below {{from the loss: computed by 'mpc.neg'}}
  %loss = mpc.neg %largest : tensor<f32>
  %dw = mpc.backward %loss wrt(%w) seed(%s) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %dw : tensor<4xf32>
}

// -----

// The path ends at the value that is differentiated by, which an operation gives.
func.func @no_rule_from_a_value(%x: tensor<4xf32>, %s: tensor<f32>) -> tensor<4xf32> {
  // expected-note @below {{from operand 0}}
  %h = mpc.tanh %x : tensor<4xf32>
  // expected-error @below {{'mpc.tensor_statistics' has no derivative rule (VJP), but the gradient of operand 0 passes through it}}
  %e, %z, %largest = mpc.tensor_statistics %h : (tensor<4xf32>) -> (tensor<256xi32>, tensor<i32>, tensor<f32>)
  %dh = mpc.backward %largest wrt(%h) seed(%s) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %dh : tensor<4xf32>
}

// -----

func.func private @outside(tensor<f32>) -> tensor<f32>

func.func @no_body(%x: tensor<f32>, %s: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{cannot be differentiated: function 'outside' has no body}}
  %y = func.call @outside(%x) : (tensor<f32>) -> tensor<f32>
  %dx = mpc.backward %y wrt(%x) seed(%s) : (tensor<f32>, tensor<f32>, tensor<f32>) -> tensor<f32>
  return %dx : tensor<f32>
}

// -----

// The derivative of packed attention was asked for before: nobody has written packed_attention_grad.
// expected-note @below {{from operand 0 ('w')}}
func.func @second_derivative(%w: tensor<1x2x3xf32> {mpc.state = #mpc.state<input, "w">}, %s: tensor<f32>) -> tensor<1x2x3xf32> {
  // expected-error @below {{'packed_attention' has no second derivative: 'mpc.packed_attention_grad' has no derivative rule (VJP), but the gradient of operand 0 ('w') passes through it}}
  %y, %sums = mpc.packed_attention %w {heads = 1, scale = 1.0}
      : (tensor<1x2x3xf32>) -> (tensor<1x2x1xf32>, tensor<1x1x2xf32>)
  %loss = mpc.reduce_sum %y {axes = []} : (tensor<1x2x1xf32>) -> tensor<f32>
  %dw = mpc.backward %loss wrt(%w) seed(%s) : (tensor<f32>, tensor<1x2x3xf32>, tensor<f32>) -> tensor<1x2x3xf32>
  // expected-note @below {{from the loss: computed by 'mpc.reduce_sum'}}
  %norm = mpc.reduce_sum %dw {axes = []} : (tensor<1x2x3xf32>) -> tensor<f32>
  %ddw = mpc.backward %norm wrt(%w) seed(%s) : (tensor<f32>, tensor<1x2x3xf32>, tensor<f32>) -> tensor<1x2x3xf32>
  return %ddw : tensor<1x2x3xf32>
}
