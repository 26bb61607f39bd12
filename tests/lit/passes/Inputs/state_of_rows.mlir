// A step that keeps the rows it has seen: with several processes each would have its own.
func.func private @f(tensor<4xf32>, tensor<4xf32>) -> tensor<f32>

func.func @train_step(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity", of = "w">},
    %seen: tensor<4xf32> {mpc.state = #mpc.state<statistic, "seen">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "seen">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dw = mpc.value_and_grad @f(%w, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %w2, %v2 = mpc.momentum %w, %v, %dw, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %seen2 = mpc.add %seen, %x : tensor<4xf32>
  return %w2, %v2, %seen2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
