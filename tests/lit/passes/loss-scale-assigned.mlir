// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" | FileCheck %s
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" > %t.once && mpc-opt %t.once --mpc-loss-scale="mode=dynamic" | diff %t.once -

// What is assigned keeps its bits in a skipped step: an update of what was assigned, the old or the new value of other
// state, an input.
// CHECK-LABEL: func @train_step(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}
// CHECK-SAME: %[[V:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<slot, "v", of = "w">}
// CHECK-SAME: %[[LAST:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<parameter, "last">}
// CHECK-SAME: %[[COPY:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<parameter, "copy">}
// CHECK-SAME: %[[SEEN:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<parameter, "seen">}
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4xf32>,
// CHECK: %[[CLAMPED:.*]] = mpc.clamp %[[W]]
// CHECK: %[[FINITE:.*]], %{{.*}} = mpc.all_finite
// CHECK: %[[NEW:.*]]:2 = mpc.guarded_update %[[FINITE]] else(%[[CLAMPED]], %[[V]])
// CHECK: %[[HELD_W:.*]] = mpc.select %[[FINITE]], %[[NEW]]#0, %[[W]]
// CHECK: %[[HELD_LAST:.*]] = mpc.select %[[FINITE]], %[[W]], %[[LAST]]
// CHECK: %[[HELD_COPY:.*]] = mpc.select %[[FINITE]], %[[NEW]]#0, %[[COPY]]
// CHECK: %[[HELD_SEEN:.*]] = mpc.select %[[FINITE]], %[[X]], %[[SEEN]]
// CHECK-NOT: mpc.select
// CHECK: return %{{.*}}, %[[HELD_W]], %[[NEW]]#1, %[[HELD_LAST]], %[[HELD_COPY]], %[[HELD_SEEN]],
func.func private @f(tensor<4xf32>, tensor<4xf32>) -> tensor<f32>

func.func @train_step(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                      %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "v", of = "w">},
                      %last: tensor<4xf32> {mpc.state = #mpc.state<parameter, "last">},
                      %copy: tensor<4xf32> {mpc.state = #mpc.state<parameter, "copy">},
                      %seen: tensor<4xf32> {mpc.state = #mpc.state<parameter, "seen">},
                      %x: tensor<4xf32>, %rate: tensor<f32>)
    -> (tensor<f32>, tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "v">}, tensor<4xf32> {mpc.state = #mpc.state<parameter, "last">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "copy">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "seen">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %clamped = mpc.clamp %w {minimum = -1.0 : f32, maximum = 1.0 : f32} : tensor<4xf32>
  %loss, %dw = mpc.value_and_grad @f(%clamped, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %w2, %v2 = mpc.momentum %clamped, %v, %dw, %rate
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss, %w2, %v2, %w, %w2, %x
      : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
