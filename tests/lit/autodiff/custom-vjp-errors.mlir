// RUN: mpc-opt %s --mpc-autodiff --verify-diagnostics --split-input-file

func.func private @rule(%x: tensor<f32>, %y: tensor<f32>, %dy: tensor<f32>) -> tensor<f32> {
  return %dy : tensor<f32>
}
func.func private @again(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{cannot be expanded: function 'again' calls itself}}
  %y = mpc.custom_vjp @again(%x) vjp @rule : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

func.func private @forward(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
func.func private @rule(%x: tensor<f32>, %dy: tensor<f32>) -> tensor<f32> {
  return %dy : tensor<f32>
}
func.func @wrong_rule(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{needs a rule 'rule' from inputs, outputs and cotangents}}
  %y = mpc.custom_vjp @forward(%x) vjp @rule : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}

// -----

func.func private @forward(tensor<f32>) -> tensor<f32>
func.func private @rule(%x: tensor<f32>, %y: tensor<f32>, %dy: tensor<f32>) -> tensor<f32> {
  return %dy : tensor<f32>
}
func.func @no_body(%x: tensor<f32>) -> tensor<f32> {
  // expected-error @below {{function 'forward' has no body}}
  %y = mpc.custom_vjp @forward(%x) vjp @rule : (tensor<f32>) -> tensor<f32>
  return %y : tensor<f32>
}
