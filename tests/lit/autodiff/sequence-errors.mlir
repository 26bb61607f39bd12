// RUN: mpc-opt %s --mpc-autodiff --verify-diagnostics --split-input-file

func.func private @loss(%x: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<f32> {
  // expected-error @+1 {{'mpc.bce_with_logits' has no derivative by its labels, but the gradient of operand 1 (labels) is needed; use mpc.stop_gradient on labels that depend on parameters}}
  %r = mpc.bce_with_logits %x, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return %r : tensor<f32>
}
func.func @main(%x: tensor<4xf32>, %z: tensor<4xf32>, %seed: tensor<f32>) -> tensor<4xf32> {
  %l, %dz = mpc.value_and_grad @loss(%x, %z) seed(%seed) {wrt = array<i64: 1>} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return %dz : tensor<4xf32>
}
