// RUN: mpc-opt %s --mpc-amp=level=O2 | FileCheck %s
// RUN: mpc-opt %s --mpc-amp=level=O3 | FileCheck %s
// RUN: mpc-opt %s --mpc-amp=level=O2 > %t.once && mpc-opt %t.once --mpc-amp=level=O2 | diff %t.once -
// RUN: mpc-opt %s --mpc-amp=level=O1 --mpc-autodiff > %t.o1 && mpc-opt %t.o1 --mpc-amp=level=O1 | diff %t.o1 -
// RUN: mpc-opt %s --mpc-amp=level=O2 --mpc-autodiff > %t.o2 && mpc-opt %t.o2 --mpc-amp=level=O2 | diff %t.o2 -
// RUN: mpc-opt %s --mpc-autodiff --mpc-amp=level=O3 | FileCheck %s --check-prefix=BEHIND
// RUN: mpc-opt --model=lenet5 --train --batch=4 --amp-level=O1 --stage=grad > %t.model && mpc-opt %t.model --mpc-amp=level=O1 | diff %t.model -
// RUN: mpc-opt --model=lenet5 --train --batch=4 | mpc-opt --mpc-step-pipeline="level=O1 stage=scheduled" > %t.step && mpc-opt %t.step --mpc-amp=level=O1 --mpc-verify-precision=level=O1 | diff %t.step -

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

// What only the update reads is part of it: the decay of a weight here. What the loss reads too is not.
// CHECK-LABEL: func @decayed(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x2xf32>
// CHECK: %[[DECAYED:.*]] = mpc.mul_scalar %[[W]] {value = {{[^}]*}}} : tensor<4x2xf32>
// CHECK: mpc.tanh %{{.*}} as <f16, level {{.*}}> : tensor<4x2xf16>
// CHECK: mpc.sub %[[DECAYED]], %{{.*}} : tensor<4x2xf32>

// Behind autodiff, gradients keep their types.
// BEHIND-LABEL: func @by_hand(
// BEHIND-SAME: %[[W:[a-z0-9]+]]: tensor<4x2xf32>
// BEHIND: mpc.matmul {{.*}} as <f16, level "O3"> {{.*}} -> tensor<3x2xf16>
// BEHIND: %[[G:.*]] = mpc.matmul {{.*}} backward : {{.*}} -> tensor<4x2xf32>
// BEHIND: %[[STEP:.*]] = mpc.mul_scalar %[[G]] {value = {{[^}]*}}} : tensor<4x2xf32>
// BEHIND: %[[NEW:.*]] = mpc.sub %[[W]], %[[STEP]] : tensor<4x2xf32>
// BEHIND: return %[[NEW]]
// BEHIND-LABEL: func @decayed(
// BEHIND-SAME: %[[W:[a-z0-9]+]]: tensor<4x2xf32>
// BEHIND: %[[DECAYED:.*]] = mpc.mul_scalar %[[W]] {value = {{[^}]*}}} : tensor<4x2xf32>
// BEHIND: mpc.sub %[[DECAYED]], %{{.*}} : tensor<4x2xf32>
func.func @decayed(
    %w: tensor<4x2xf32> {mpc.state = #mpc.state<parameter, "w">},
    %x: tensor<3x4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<4x2xf32> {mpc.state = #mpc.state<parameter, "w">}) attributes {mpc.step} {
  %decayed = mpc.mul_scalar %w {value = 0.9999} : tensor<4x2xf32>
  %t = mpc.tanh %w : tensor<4x2xf32>
  %y = mpc.matmul %x, %t : (tensor<3x4xf32>, tensor<4x2xf32>) -> tensor<3x2xf32>
  %loss = mpc.reduce_sum %y {axes = []} : (tensor<3x2xf32>) -> tensor<f32>
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %g = mpc.backward %loss wrt(%w) seed(%one) : (tensor<f32>, tensor<4x2xf32>, tensor<f32>) -> tensor<4x2xf32>
  %step = mpc.mul_scalar %g {value = 1.0e-4} : tensor<4x2xf32>
  %new = mpc.sub %decayed, %step : tensor<4x2xf32>
  return %new : tensor<4x2xf32>
}
