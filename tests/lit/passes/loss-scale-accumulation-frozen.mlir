// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic accumulation-steps=2" | FileCheck %s --check-prefixes=CHECK,SCALED
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic accumulation-steps=2" > %t.once && mpc-opt %t.once --mpc-loss-scale="mode=dynamic accumulation-steps=2" | diff %t.once -
// RUN: mpc-opt %s --mpc-loss-scale="accumulation-steps=2" | FileCheck %s --check-prefixes=CHECK,NONE

func.func private @f(tensor<4xf32>, tensor<4xf32>) -> tensor<f32>

#trains = #mpc.scope<"optimizer">
#frozen = #mpc.scope<"optimizer2">

// No gradient reaches an optimizer whose parameters are all frozen. Its counter waits for the last micro-step, as that of
// the one which trains. The generator moves in every micro-step.
// CHECK-LABEL: func @train_step(
// CHECK-SAME: %[[FROZEN:[a-z0-9]+]]: tensor<i32> {mpc.state = #mpc.state<step, "optimizer2.step">}
// CHECK-SAME: %[[STEP:[a-z0-9]+]]: tensor<i32> {mpc.state = #mpc.state<step, "optimizer.step">}
// CHECK-SAME: %[[RNG:[a-z0-9]+]]: tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">}
// CHECK: %[[ONE:.*]] = mpc.constant {value = dense<1> : tensor<i32>}
// CHECK: %[[LAST:.*]] = mpc.equal %{{.*}}, %[[ONE]]
// SCALED: %[[ACT:.*]] = mpc.all_of %[[LAST]], %{{.*}} : tensor<i1>
// SCALED: %{{.*}}:4 = mpc.guarded_update %[[ACT]] else(%{{.*}}, %{{.*}}, %[[FROZEN]], %[[STEP]]) {
// NONE: %{{.*}}:4 = mpc.guarded_update %[[LAST]] else(%{{.*}}, %{{.*}}, %[[FROZEN]], %[[STEP]]) {
// NONE: mpc.increment %[[RNG]]
func.func @train_step(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
    %frozen: tensor<i32> {mpc.state = #mpc.state<step, "optimizer2.step">},
    %step: tensor<i32> {mpc.state = #mpc.state<step, "optimizer.step">},
    %rng: tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<f32> {mpc.state = #mpc.state<output, "loss">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
        tensor<i32> {mpc.state = #mpc.state<step, "optimizer2.step">},
        tensor<i32> {mpc.state = #mpc.state<step, "optimizer.step">},
        tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dw = mpc.value_and_grad @f(%w, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  %w2, %v2 = mpc.momentum %w, %v, %dw, %lr in #trains
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %frozen2 = mpc.increment %frozen in #frozen : tensor<i32>
  %step2 = mpc.increment %step in #trains : tensor<i32>
  %rng2 = mpc.increment %rng : tensor<i32>
  return %loss, %w2, %v2, %frozen2, %step2, %rng2
      : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<i32>, tensor<i32>
}
