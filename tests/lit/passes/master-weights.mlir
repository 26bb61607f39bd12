// RUN: mpc-opt %s --mpc-shadows=master-weights=false | FileCheck %s
// RUN: mpc-opt %s --mpc-shadows=master-weights=false > %t.once && mpc-opt %t.once --mpc-shadows=master-weights=false | diff %t.once -

// A parameter that is only read low is stored low: the optimizer reads and writes it low, its slots stay f32.
// CHECK-LABEL: func @train_step(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4x4xf16> {mpc.state = #mpc.state<parameter, "fc.weight">}
// CHECK-SAME: -> (tensor<4x4xf16> {mpc.state = #mpc.state<parameter, "fc.weight">}, tensor<4x4xf32> {mpc.state = #mpc.state<slot, "v">}) attributes {mpc.step} {
// CHECK-NOT: mpc.cast
// CHECK: mpc.matmul %{{.*}}, %[[W]]
// CHECK: %[[W2:.*]], %[[V2:.*]] = mpc.momentum %[[W]], {{.*}} : (tensor<4x4xf16>, tensor<4x4xf32>, tensor<4x4xf16>, tensor<f32>){{$}}
// CHECK: return %[[W2]], %[[V2]]
func.func @train_step(%w: tensor<4x4xf32> {mpc.state = #mpc.state<parameter, "fc.weight">},
                      %v: tensor<4x4xf32> {mpc.state = #mpc.state<slot, "v">}, %x: tensor<4x4xf16>, %rate: tensor<f32>)
    -> (tensor<4x4xf32> {mpc.state = #mpc.state<parameter, "fc.weight">},
        tensor<4x4xf32> {mpc.state = #mpc.state<slot, "v">}) attributes {mpc.step} {
  %low = mpc.cast %w : (tensor<4x4xf32>) -> tensor<4x4xf16>
  %g = mpc.matmul %x, %low : tensor<4x4xf16>
  %w2, %v2 = mpc.momentum %w, %v, %g, %rate
      : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf16>, tensor<f32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
  return %w2, %v2 : tensor<4x4xf32>, tensor<4x4xf32>
}

// Movement in front of the casts moves low.
// CHECK-LABEL: func @predict(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<2x3xbf16> {mpc.state = #mpc.state<parameter, "w">}) -> tensor<3x2xbf16>
// CHECK-NEXT: %[[Y:.*]] = mpc.transpose %[[W]] {{.*}} -> tensor<3x2xbf16>
// CHECK-NEXT: return %[[Y]]
func.func @predict(%w: tensor<2x3xf32> {mpc.state = #mpc.state<parameter, "w">}) -> tensor<3x2xbf16> attributes {mpc.step} {
  %t = mpc.transpose %w {permutation = [1, 0]} : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %y = mpc.cast %t : (tensor<3x2xf32>) -> tensor<3x2xbf16>
  return %y : tensor<3x2xbf16>
}

// A reader in f32 keeps the master, and so does a second low type.
// CHECK-LABEL: func @read_in_f32(
// CHECK-SAME: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}
// CHECK-SAME: tensor<4xf16> {mpc.state = #mpc.state<derived, "w.f16", of = "w">}
func.func @read_in_f32(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}) -> (tensor<4xf16>, tensor<4xf32>) attributes {mpc.step} {
  %a = mpc.cast %w : (tensor<4xf32>) -> tensor<4xf16>
  %b = mpc.neg %w : tensor<4xf32>
  return %a, %b : tensor<4xf16>, tensor<4xf32>
}

// CHECK-LABEL: func @two_low_types(
// CHECK-SAME: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}
func.func @two_low_types(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}) -> (tensor<4xf16>, tensor<4xbf16>) attributes {mpc.step} {
  %a = mpc.cast %w : (tensor<4xf32>) -> tensor<4xf16>
  %b = mpc.cast %w : (tensor<4xf32>) -> tensor<4xbf16>
  return %a, %b : tensor<4xf16>, tensor<4xbf16>
}

// What is stored low already stays so; readers in f32 widen it, and what they make of it is rounded.
// CHECK-LABEL: func @stored_low(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf16> {mpc.state = #mpc.state<parameter, "w">})
// CHECK-SAME: -> (tensor<4xf16> {mpc.state = #mpc.state<parameter, "w">}, tensor<4xf16>, tensor<4xf32>)
// CHECK-NEXT: %[[WIDE:.*]] = mpc.cast %[[W]] : (tensor<4xf16>) -> tensor<4xf32>
// CHECK-NEXT: %[[NEW:.*]] = mpc.neg %[[WIDE]] : tensor<4xf32>
// CHECK-NEXT: %[[ROUNDED:.*]] = mpc.cast %[[NEW]] : (tensor<4xf32>) -> tensor<4xf16>
// CHECK-NEXT: return %[[ROUNDED]], %[[W]], %[[WIDE]]
func.func @stored_low(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w", form = f16>})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<4xf16>, tensor<4xf32>) attributes {mpc.step} {
  %a = mpc.cast %w : (tensor<4xf32>) -> tensor<4xf16>
  %new = mpc.neg %w : tensor<4xf32>
  return %new, %a, %w : tensor<4xf32>, tensor<4xf16>, tensor<4xf32>
}

// An update that reads its parameter as the gradient, too, reads it in f32.
// CHECK-LABEL: func @own_gradient(
// CHECK-SAME: tensor<4x4xf32> {mpc.state = #mpc.state<parameter, "w">}
func.func @own_gradient(%w: tensor<4x4xf32> {mpc.state = #mpc.state<parameter, "w">},
                        %v: tensor<4x4xf32> {mpc.state = #mpc.state<slot, "v">}, %rate: tensor<f32>)
    -> (tensor<4x4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4x4xf32> {mpc.state = #mpc.state<slot, "v">}, tensor<4x4xf16>) attributes {mpc.step} {
  %low = mpc.cast %w : (tensor<4x4xf32>) -> tensor<4x4xf16>
  %g = mpc.matmul %low, %low : tensor<4x4xf16>
  %w2, %v2 = mpc.momentum %w, %v, %w, %rate
      : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
  return %w2, %v2, %g : tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf16>
}
