// RUN: mpc-opt %s --mpc-autodiff --mpc-cast-cleanup --mpc-instrument | FileCheck %s
// RUN: mpc-opt %s --mpc-autodiff --mpc-cast-cleanup --mpc-instrument > %t.once && mpc-opt %t.once --mpc-instrument | diff %t.once -

// Every value of the forward and the backward pass is measured, in program order; nothing updates state any more.
// CHECK-LABEL: func @train_step
// CHECK-SAME: #mpc.state<record, "statistics|w|parameter|forward|0|f32|exponents">
// CHECK-SAME: #mpc.state<record, "statistics|w|parameter|forward|0|f32|zeros">
// CHECK-SAME: #mpc.state<record, "statistics|w|parameter|forward|0|f32|largest">
// CHECK-SAME: #mpc.state<record, "statistics|net/fc|matmul|forward|0|f32|exponents">
// CHECK-SAME: #mpc.state<record, "statistics|net|mse|forward|0|f32|largest">
// CHECK-SAME: #mpc.state<record, "statistics|net/fc|matmul|backward|0|f32|exponents">
// CHECK: mpc.tensor_statistics
// CHECK: mpc.matmul
// CHECK-NEXT: mpc.tensor_statistics
// CHECK-NOT: mpc.sgd
func.func private @forward(%w: tensor<4x3xf32>, %x: tensor<2x4xf32>, %t: tensor<2x3xf32>) -> tensor<f32> {
  %y = mpc.matmul %x, %w in "net/fc"
      : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %loss = mpc.mse %y, %t in <"net"> : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
func.func @train_step(%x: tensor<2x4xf32> {mpc.state = #mpc.state<input, "x">}, %t: tensor<2x3xf32> {mpc.state = #mpc.state<input, "t">},
                      %w: tensor<4x3xf32> {mpc.state = #mpc.state<parameter, "w">},
                      %v: tensor<4x3xf32> {mpc.state = #mpc.state<slot, "v">},
                      %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
                      %step: tensor<i32> {mpc.state = #mpc.state<step, "step">})
    -> (tensor<f32>, tensor<4x3xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<4x3xf32> {mpc.state = #mpc.state<slot, "v">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dw = mpc.value_and_grad @forward(%w, %x, %t) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4x3xf32>, tensor<2x4xf32>, tensor<2x3xf32>, tensor<f32>) -> (tensor<f32>, tensor<4x3xf32>)
  %w2, %v2 = mpc.sgd %w, %v, %dw, %lr, %step
      : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>, tensor<i32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return %loss, %w2, %v2 : tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>
}
