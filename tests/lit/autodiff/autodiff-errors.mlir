// RUN: mpc-opt %s --mpc-autodiff --verify-diagnostics --split-input-file

// An operation without a rule on the path, with the way from the loss to the parameter.
// expected-note @+1 {{from operand 0 ('fc1.weight')}}
func.func private @forward(%w: tensor<2x2xf32>, %c: tensor<i1>) -> tensor<f32> {
  // expected-note @+1 {{its operand is computed by 'mpc.tanh'}}
  %t = mpc.tanh %w : tensor<2x2xf32>
  // expected-error @+1 {{'mpc.select' in 'mlp/gate' has no derivative rule (VJP), but the gradient of operand 0 ('fc1.weight') passes through it; mpc.stop_gradient on its operands makes it a constant}}
  %s = mpc.select %c, %t, %t in <"mlp/gate">
      : (tensor<i1>, tensor<2x2xf32>, tensor<2x2xf32>) -> tensor<2x2xf32>
  // expected-note @+1 {{which is computed by 'mpc.relu' in 'mlp/fc2'}}
  %r = mpc.relu %s in <"mlp/fc2"> : tensor<2x2xf32>
  // expected-note @+1 {{from the loss: computed by 'mpc.reduce_sum'}}
  %loss = mpc.reduce_sum %r {axes = []} : (tensor<2x2xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
func.func @train_step(%w: tensor<2x2xf32> {mpc.state = #mpc.state<input, "fc1.weight">}, %c: tensor<i1>, %seed: tensor<f32>)
    -> tensor<2x2xf32> {
  %loss, %dw = mpc.value_and_grad @forward(%w, %c) seed(%seed) {wrt = array<i64: 0>}
      : (tensor<2x2xf32>, tensor<i1>, tensor<f32>) -> (tensor<f32>, tensor<2x2xf32>)
  return %dw : tensor<2x2xf32>
}

// -----

// The same operation behind stop_gradient is a constant: no error, but no gradient either.
func.func private @forward(%w: tensor<f32> {mpc.state = #mpc.state<input, "gate">}, %c: tensor<i1>, %v: tensor<f32>) -> tensor<f32> {
  %s = mpc.select %c, %w, %w : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
  %k = mpc.stop_gradient %s : tensor<f32>
  %loss = mpc.mul %k, %v : tensor<f32>
  return %loss : tensor<f32>
}
func.func @train_step(%w: tensor<f32>, %c: tensor<i1>, %v: tensor<f32>) -> (tensor<f32>, tensor<f32>) {
  // expected-warning @+1 {{the loss of 'forward' does not depend on operand 0 ('gate'); its gradient is zero}}
  %loss, %dw, %dv = mpc.value_and_grad @forward(%w, %c, %v) seed(%v) {wrt = array<i64: 0, 2>}
      : (tensor<f32>, tensor<i1>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
  return %dw, %dv : tensor<f32>, tensor<f32>
}

// -----

func.func private @forward(%logits: tensor<2x3xf32>, %labels: tensor<2x3xf32>) -> tensor<f32> {
  // expected-error @+1 {{'mpc.softmax_cross_entropy' has no derivative by its labels, but the gradient of operand 1 (labels) is needed; use mpc.stop_gradient on labels that depend on parameters}}
  %loss, %lse = mpc.softmax_cross_entropy %logits, %labels
      : (tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<f32>, tensor<2xf32>)
  return %loss : tensor<f32>
}
func.func @train_step(%logits: tensor<2x3xf32>, %seed: tensor<f32>) -> tensor<2x3xf32> {
  %loss, %d = mpc.value_and_grad @forward(%logits, %logits) seed(%seed) {wrt = array<i64: 1>}
      : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>) -> (tensor<f32>, tensor<2x3xf32>)
  return %d : tensor<2x3xf32>
}

// -----

func.func private @forward(%qkv: tensor<1x2x3xf32>) -> tensor<1x1x2xf32> {
  // expected-error @+1 {{'mpc.packed_attention' has no derivative by its log_sum_exp, which is saved for its own derivative, but the loss depends on it}}
  %y, %lse = mpc.packed_attention %qkv {heads = 1, scale = 1.0}
      : (tensor<1x2x3xf32>) -> (tensor<1x2x1xf32>, tensor<1x1x2xf32>)
  return %lse : tensor<1x1x2xf32>
}
func.func @train_step(%qkv: tensor<1x2x3xf32>, %seed: tensor<f32>) -> tensor<1x2x3xf32> {
  %loss, %d = mpc.value_and_grad @forward(%qkv) seed(%seed) {wrt = array<i64: 0>}
      : (tensor<1x2x3xf32>, tensor<f32>) -> (tensor<1x1x2xf32>, tensor<1x2x3xf32>)
  return %d : tensor<1x2x3xf32>
}

// -----

func.func private @forward(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{'func.call' op cannot be differentiated: function 'forward' calls itself}}
  %y = call @forward(%x) : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
func.func @train_step(%x: tensor<f32>) -> tensor<f32> {
  %loss, %dx = mpc.value_and_grad @forward(%x) seed(%x) {wrt = array<i64: 0>}
      : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %dx : tensor<f32>
}

// -----

func.func private @forward(tensor<f32>) -> tensor<f32>
func.func @train_step(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{'mpc.value_and_grad' op cannot be differentiated: function 'forward' has no body}}
  %loss, %dx = mpc.value_and_grad @forward(%x) seed(%x) {wrt = array<i64: 0>}
      : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %dx : tensor<f32>
}

// -----

func.func private @forward(%x: tensor<f32>, %scale: tensor<f32>) -> tensor<f32> {
  // expected-error @+1 {{'mpc.scale_loss' has no derivative by its scale, but the gradient of it is needed}}
  %loss = mpc.scale_loss %x, %scale : tensor<f32>
  return %loss : tensor<f32>
}
func.func @train_step(%x: tensor<f32>, %scale: tensor<f32>) -> tensor<f32> {
  %loss, %ds = mpc.value_and_grad @forward(%x, %scale) seed(%scale) {wrt = array<i64: 1>}
      : (tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %ds : tensor<f32>
}

// -----

// Nobody asks an operation for its rule where no derivative passes: the scale stands behind stop_gradient.
func.func private @forward(%x: tensor<f32>, %scale: tensor<f32>) -> tensor<f32> {
  %y = mpc.mul %x, %scale : tensor<f32>
  %constant = mpc.stop_gradient %scale : tensor<f32>
  %loss = mpc.scale_loss %y, %constant : tensor<f32>
  return %loss : tensor<f32>
}
func.func @train_step(%x: tensor<f32>, %scale: tensor<f32>) -> tensor<f32> {
  %loss, %ds = mpc.value_and_grad @forward(%x, %scale) seed(%scale) {wrt = array<i64: 1>}
      : (tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %ds : tensor<f32>
}

// -----

// Nor where the loss depends on no parameter: select has no rule.
func.func private @forward(%x: tensor<f32>, %c: tensor<i1>, %w: tensor<f32> {mpc.state = #mpc.state<input, "gate">}) -> tensor<f32> {
  %loss = mpc.select %c, %x, %x : (tensor<i1>, tensor<f32>, tensor<f32>) -> tensor<f32>
  return %loss : tensor<f32>
}
func.func @train_step(%x: tensor<f32>, %c: tensor<i1>, %w: tensor<f32>) -> tensor<f32> {
  // expected-warning @+1 {{the loss of 'forward' does not depend on operand 2 ('gate'); its gradient is zero}}
  %loss, %dw = mpc.value_and_grad @forward(%x, %c, %w) seed(%x) {wrt = array<i64: 2>}
      : (tensor<f32>, tensor<i1>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %dw : tensor<f32>
}

// -----

// Nor of what is no number: a comparison of the parameter is a constant.
func.func private @forward(%w: tensor<4xf32>) -> tensor<f32> {
  %c = mpc.greater %w, %w : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %mask = mpc.cast %c : (tensor<4xi1>) -> tensor<4xf32>
  %y = mpc.mul %mask, %w : tensor<4xf32>
  %loss = mpc.reduce_sum %y {axes = []} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
func.func @train_step(%w: tensor<4xf32>, %seed: tensor<f32>) -> tensor<4xf32> {
  %loss, %dw = mpc.value_and_grad @forward(%w) seed(%seed) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return %dw : tensor<4xf32>
}

// -----

// Zero would be a wrong derivative of a rounding, and no cotangent is f8.
func.func private @forward(%w: tensor<4xf32>) -> tensor<f32> {
  %low = mpc.cast %w : (tensor<4xf32>) -> tensor<4xf8E5M2>
  // expected-error @+1 {{'mpc.cast' op has no derivative through 'f8E5M2': nothing but a cast takes it}}
  %wide = mpc.cast %low : (tensor<4xf8E5M2>) -> tensor<4xf32>
  %loss = mpc.reduce_sum %wide {axes = []} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
func.func @train_step(%w: tensor<4xf32>, %seed: tensor<f32>) -> tensor<4xf32> {
  %loss, %dw = mpc.value_and_grad @forward(%w) seed(%seed) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return %dw : tensor<4xf32>
}
