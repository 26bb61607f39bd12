// RUN: mpc-opt %s --mpc-amp=level=O2 | FileCheck %s
// RUN: mpc-opt %s --mpc-amp=level=O3 | FileCheck %s
// RUN: mpc-opt %s --mpc-amp=level=O2 > %t.once && mpc-opt %t.once --mpc-amp=level=O2 | diff %t.once -

// Without scopes the network ends where gradients begin: a step of 1e-4 from 1 is none in f16.
// CHECK-LABEL: func @by_hand(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x2xf32>
// CHECK: mpc.matmul %{{.*}} -> tensor<3x2xf16>
// CHECK: %[[G:.*]] = mpc.backward
// CHECK-NOT: f16
// CHECK: %[[STEP:.*]] = mpc.mul_scalar %[[G]]
// CHECK-NOT: f16
// CHECK: %[[NEW:.*]] = mpc.sub %[[W]], %[[STEP]]
// CHECK: return %[[NEW]]
func.func @by_hand(
    %w: tensor<4x2xf32> {mpc.state = #mpc.state<parameter, "w">},
    %x: tensor<3x4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<4x2xf32> {mpc.state = #mpc.state<parameter, "w">}) attributes {mpc.step} {
  %y = mpc.matmul %x, %w : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %loss = mpc.reduce_sum %y {axes = []} : (tensor<3x2xf32>) -> tensor<f32>
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %g = mpc.backward %loss wrt(%w) seed(%one) : (tensor<f32>, tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xf32>
  %step = mpc.mul_scalar %g {value = 1.0e-4} : tensor<4x2xf32>
  %new = mpc.sub %w, %step : tensor<4x2xf32>
  return %new : tensor<4x2xf32>
}
