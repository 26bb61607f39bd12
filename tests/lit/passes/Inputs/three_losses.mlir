// More losses than scalers.
func.func private @f(tensor<4xf32>) -> tensor<f32>
func.func @train_step(%w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss0, %dw0 = mpc.value_and_grad @f(%w) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %loss1, %dw1 = mpc.value_and_grad @f(%w) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %loss2, %dw2 = mpc.value_and_grad @f(%w) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return %dw0, %dw1, %dw2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
