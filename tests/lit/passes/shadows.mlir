// RUN: mpc-opt %s --mpc-shadows | FileCheck %s
// RUN: mpc-opt %s --mpc-shadows > %t.once && mpc-opt %t.once --mpc-shadows | diff %t.once -

// The low copy of a parameter is an argument, and the optimizer writes the next one.
// CHECK-LABEL: func @train_step(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x4xf32> {mpc.state = #mpc.state<parameter, "fc.weight">}
// CHECK-SAME: %[[WS:[a-z0-9]+]]: tensor<4x4xf16> {mpc.state = #mpc.state<derived, "fc.weight.f16", of = "fc.weight">})
// CHECK-SAME: -> (tensor<4x4xf32> {mpc.state = #mpc.state<parameter, "fc.weight">}, {{.*}}, tensor<4x4xf16> {mpc.state = #mpc.state<derived, "fc.weight.f16">})
// CHECK-NOT: mpc.cast
// CHECK: %[[G:.*]] = mpc.matmul %{{.*}}, %[[WS]]
// CHECK: %[[W2:.*]], %[[V2:.*]], %[[WS2:.*]] = mpc.momentum %[[W]], %{{.*}}, %[[G]], %{{.*}}, %{{.*}} {momentum = 5.000000e-01, shadow = f16}
// CHECK: return %[[W2]], %[[V2]], %[[WS2]]
func.func @train_step(%w: tensor<4x4xf32> {mpc.state = #mpc.state<parameter, "fc.weight">},
                      %v: tensor<4x4xf32> {mpc.state = #mpc.state<slot, "optimizer.fc.weight.velocity">},
                      %x: tensor<4x4xf16>, %rate: tensor<f32>, %finite: tensor<i1>)
    -> (tensor<4x4xf32> {mpc.state = #mpc.state<parameter, "fc.weight">},
        tensor<4x4xf32> {mpc.state = #mpc.state<slot, "optimizer.fc.weight.velocity">}) attributes {mpc.step} {
  %low = mpc.cast %w : (tensor<4x4xf32>) -> tensor<4x4xf16>
  %g = mpc.matmul %x, %low : tensor<4x4xf16>
  %w2, %v2 = mpc.momentum %w, %v, %g, %rate, %finite {momentum = 5.000000e-01}
      : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf16>, tensor<f32>, tensor<i1>)
      -> (tensor<4x4xf32>, tensor<4x4xf32>)
  return %w2, %v2 : tensor<4x4xf32>, tensor<4x4xf32>
}

// Without an update the shadow is read only. The user's cast has the same bits.
// CHECK-LABEL: func @predict(
// CHECK-SAME: %[[WS:[a-z0-9]+]]: tensor<4xbf16> {mpc.state = #mpc.state<derived, "scale.bf16", of = "scale">}) -> tensor<4xbf16>
// CHECK-NEXT: %[[Y:.*]] = mpc.mul %{{.*}}, %[[WS]]
// CHECK-NEXT: return %[[Y]]
func.func @predict(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "scale">}, %x: tensor<4xbf16>) -> tensor<4xbf16> attributes {mpc.step} {
  %low = mpc.cast %w {user = true} : (tensor<4xf32>) -> tensor<4xbf16>
  %y = mpc.mul %x, %low : tensor<4xbf16>
  return %y : tensor<4xbf16>
}

// Data movement between the parameter and its cast moves the shadow; what reads it in f32 keeps its own.
// CHECK-LABEL: func @moved(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<2x3xf32>
// CHECK-SAME: %[[WS:[a-z0-9]+]]: tensor<2x3xf16> {mpc.state = #mpc.state<derived, "w.f16", of = "w">}
// CHECK-DAG: %[[LOW:.*]] = mpc.transpose %[[WS]] {permutation = [1, 0]} : (tensor<2x3xf16>) -> tensor<3x2xf16>
// CHECK-DAG: %[[FLAT:.*]] = mpc.reshape %[[LOW]] {{.*}} : (tensor<3x2xf16>) -> tensor<6xf16>
// CHECK-DAG: %[[WIDE:.*]] = mpc.transpose %[[W]] {{.*}} : (tensor<2x3xf32>) -> tensor<3x2xf32>
// CHECK-NOT: mpc.cast
// CHECK: return %[[FLAT]], %[[LOW]], %[[WIDE]]
func.func @moved(%w: tensor<2x3xf32> {mpc.state = #mpc.state<parameter, "w">})
    -> (tensor<6xf16>, tensor<3x2xf16>, tensor<3x2xf32>) attributes {mpc.step} {
  %t = mpc.transpose %w {permutation = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %flat = mpc.reshape %t {shape = [6]} : (tensor<3x2xf32>) -> tensor<6xf32>
  %a = mpc.cast %flat : (tensor<6xf32>) -> tensor<6xf16>
  %b = mpc.cast %t : (tensor<3x2xf32>) -> tensor<3x2xf16>
  return %a, %b, %t : tensor<6xf16>, tensor<3x2xf16>, tensor<3x2xf32>
}

// Rows are taken from a shadow that exists; they are no reason for one.
// CHECK-LABEL: func @tied_embedding(
// CHECK-SAME: %[[WS:[a-z0-9]+]]: tensor<9x4xf16> {mpc.state = #mpc.state<derived, "table.f16", of = "table">}
// CHECK: mpc.gather %[[WS]], %{{.*}} : (tensor<9x4xf16>, tensor<2xi32>) -> tensor<2x4xf16>
// CHECK-NOT: mpc.cast
func.func @tied_embedding(%w: tensor<9x4xf32> {mpc.state = #mpc.state<parameter, "table">}, %i: tensor<2xi32>)
    -> tensor<2x9xf16> attributes {mpc.step} {
  %rows = mpc.gather %w, %i : (tensor<9x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
  %x = mpc.cast %rows : (tensor<2x4xf32>) -> tensor<2x4xf16>
  %low = mpc.cast %w : (tensor<9x4xf32>) -> tensor<9x4xf16>
  %y = mpc.matmul %x, %low {transpose_b = true} : (tensor<2x4xf16>, tensor<9x4xf16>) -> tensor<2x9xf16>
  return %y : tensor<2x9xf16>
}

// CHECK-LABEL: func @embedding(
// CHECK-NOT: derived
// CHECK: mpc.gather {{.*}} -> tensor<2x4xf32>
// CHECK-NEXT: mpc.cast
func.func @embedding(%w: tensor<9x4xf32> {mpc.state = #mpc.state<parameter, "table">}, %i: tensor<2xi32>)
    -> tensor<2x4xf16> attributes {mpc.step} {
  %rows = mpc.gather %w, %i : (tensor<9x4xf32>, tensor<2xi32>) -> tensor<2x4xf32>
  %x = mpc.cast %rows : (tensor<2x4xf32>) -> tensor<2x4xf16>
  return %x : tensor<2x4xf16>
}

// A parameter that is updated and read again in the same step: the second reader gets the first optimizer's shadow.
// CHECK-LABEL: func @updated_twice(
// CHECK-SAME: %[[WS:[a-z0-9]+]]: tensor<4xf16> {mpc.state = #mpc.state<derived, "w.f16", of = "w">}
// CHECK: %[[A:.*]] = mpc.neg %[[WS]]
// CHECK: %[[W1:.*]], %{{.*}}, %[[S1:.*]] = mpc.momentum {{.*}} {shadow = f16}
// CHECK: %[[B:.*]] = mpc.neg %[[S1]]
// CHECK: %{{.*}}, %{{.*}}, %[[S2:.*]] = mpc.momentum %[[W1]], {{.*}}, %[[B]], %{{.*}} {shadow = f16}
// CHECK: return %{{.*}}, %{{.*}}, %[[S2]]
func.func @updated_twice(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                         %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "v">}, %rate: tensor<f32>)
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<4xf32> {mpc.state = #mpc.state<slot, "v">}) attributes {mpc.step} {
  %low = mpc.cast %w : (tensor<4xf32>) -> tensor<4xf16>
  %a = mpc.neg %low : tensor<4xf16>
  %w1, %v1 = mpc.momentum %w, %v, %a, %rate
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %low1 = mpc.cast %w1 : (tensor<4xf32>) -> tensor<4xf16>
  %b = mpc.neg %low1 : tensor<4xf16>
  %w2, %v2 = mpc.momentum %w1, %v1, %b, %rate
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2, %v2 : tensor<4xf32>, tensor<4xf32>
}

// Two low types: the optimizer writes one, the runtime rebuilds the other. What no optimizer writes has no new shadow.
// CHECK-LABEL: func @two_types(
// CHECK-SAME: tensor<4xf16> {mpc.state = #mpc.state<derived, "w.f16", of = "w">}, %{{.*}}: tensor<4xbf16> {mpc.state = #mpc.state<derived, "w.bf16", of = "w">})
// CHECK-SAME: tensor<4xf16> {mpc.state = #mpc.state<derived, "w.f16">}) attributes {mpc.step} {
// CHECK-NOT: mpc.cast
// CHECK: mpc.momentum {{.*}} {shadow = f16}
func.func @two_types(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                     %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "v">}, %rate: tensor<f32>)
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<4xf32> {mpc.state = #mpc.state<slot, "v">},
        tensor<4xbf16>) attributes {mpc.step} {
  %a = mpc.cast %w : (tensor<4xf32>) -> tensor<4xf16>
  %b = mpc.cast %w : (tensor<4xf32>) -> tensor<4xbf16>
  %w1, %v1 = mpc.momentum %w, %v, %a, %rate
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w1, %v1, %b : tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>
}

// CHECK-LABEL: func @assigned(
// CHECK-SAME: -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<4xf16>) attributes {mpc.step} {
// CHECK-NOT: mpc.cast
func.func @assigned(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<4xf16>) attributes {mpc.step} {
  %a = mpc.cast %w : (tensor<4xf32>) -> tensor<4xf16>
  %w1 = mpc.neg %w : tensor<4xf32>
  return %w1, %a : tensor<4xf32>, tensor<4xf16>
}

// Statistics and inputs have none; nor has a parameter that is read in f32.
// CHECK-LABEL: func @no_parameters(
// CHECK-NOT: derived
// CHECK-COUNT-2: mpc.cast
// CHECK-NOT: shadow
func.func @no_parameters(%m: tensor<4xf32> {mpc.state = #mpc.state<statistic, "norm.moving_mean">},
                         %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">},
                         %g: tensor<4xf32> {mpc.state = #mpc.state<parameter, "norm.gamma">})
    -> (tensor<4xf16>, tensor<4xf16>, tensor<4xf32>) attributes {mpc.step} {
  %a = mpc.cast %m : (tensor<4xf32>) -> tensor<4xf16>
  %b = mpc.cast %x : (tensor<4xf32>) -> tensor<4xf16>
  %c = mpc.neg %g : tensor<4xf32>
  return %a, %b, %c : tensor<4xf16>, tensor<4xf16>, tensor<4xf32>
}
