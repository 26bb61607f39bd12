// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" --verify-diagnostics --split-input-file
// RUN: not mpc-opt %s --mpc-loss-scale="mode=always" --split-input-file 2>&1 | FileCheck %s

// CHECK: error: unknown loss-scale mode 'always'; choose none, static or dynamic

func.func private @f(tensor<4xf32>) -> tensor<f32>

func.func @own_seed(%w: tensor<4xf32>, %sens: tensor<f32>) -> tensor<4xf32> {
  // expected-remark @below {{the step has a seed of its own: it is not wrapped in loss scaling}}
  %loss, %dw = mpc.value_and_grad @f(%w) seed(%sens) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return %dw : tensor<4xf32>
}

// -----

func.func private @f(tensor<4xf32>) -> tensor<f32>

func.func @two_losses(%w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  // expected-note @below {{the first is here}}
  %loss0, %dw0 = mpc.value_and_grad @f(%w) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  // expected-error @below {{a loss scaler wraps one loss; 'two_losses' has 2}}
  %loss1, %dw1 = mpc.value_and_grad @f(%w) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return %dw0, %dw1 : tensor<4xf32>, tensor<4xf32>
}
