// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic accumulation-steps=2" | FileCheck %s
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic accumulation-steps=2" > %t.once && mpc-opt %t.once --mpc-loss-scale="mode=dynamic accumulation-steps=2" | diff %t.once -
// RUN: mpc-opt %s --mpc-loss-scale="accumulation-steps=3" | FileCheck %s --check-prefix=NONE
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic accumulation-steps=2" --mpc-flatten-guards | FileCheck %s --check-prefix=FLAT

func.func private @f(tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)

// Every micro-step adds its unscaled gradient to the mean and remembers the first bad position; the optimizer with its
// counter and the scaler act in the last one. Statistics and the generator move in every micro-step and fall back to
// what they were before the first one where any was not finite. The average of weights follows the optimizer.
// CHECK-LABEL: func @train_step(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}
// CHECK-SAME: %[[RNG:[a-z0-9]+]]: tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">}
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}
// CHECK-SAME: %[[MICRO:[a-z0-9]+]]: tensor<i32> {mpc.state = #mpc.state<accumulator, "accumulator.micro_step">}
// CHECK-SAME: %[[KNOWN:[a-z0-9]+]]: tensor<i32> {mpc.state = #mpc.state<accumulator, "accumulator.first_bad">}
// CHECK-SAME: %[[SUM:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<accumulator, "accumulator.w", of = "w">}
// CHECK-SAME: {mpc.state = #mpc.state<accumulator, "accumulator.old.mean", of = "mean">}
// CHECK-SAME: {mpc.state = #mpc.state<accumulator, "accumulator.old.variance", of = "variance">}
// CHECK-SAME: %[[OLD:[a-z0-9]+]]: tensor<i32> {mpc.state = #mpc.state<accumulator, "accumulator.old.rng.step", of = "rng.step">}) -> (
// CHECK-SAME: tensor<i32> {mpc.state = #mpc.state<accumulator, "accumulator.micro_step">}
// CHECK-SAME: tensor<i32> {mpc.state = #mpc.state<record, "micro_step">})
// CHECK: %[[ZERO:.*]] = mpc.constant {value = dense<0>
// CHECK: %[[FIRST:.*]] = mpc.equal %[[MICRO]], %[[ZERO]]
// CHECK: %[[BACKUP:.*]] = mpc.select %[[FIRST]], %[[RNG]], %[[OLD]]
// CHECK: %[[LAST:.*]] = mpc.equal %[[MICRO]], %{{.*}}
// CHECK: %[[G:.*]]:4 = mpc.value_and_grad @f({{.*}}) seed(%[[SCALE]])
// CHECK: %{{.*}}, %[[BAD:.*]] = mpc.all_finite %[[SCALE]], %[[G]]#0, %[[G]]#3
// CHECK: %[[SO_FAR:.*]] = mpc.select %[[FIRST]], %{{.*}}, %[[KNOWN]]
// CHECK: %[[MERGED:.*]] = mpc.merge_checks %[[SO_FAR]], %[[BAD]]
// CHECK: %[[FINITE:.*]] = mpc.equal %[[MERGED]],
// CHECK: mpc.guarded_update %[[FINITE]] else({{.*}}%[[BACKUP]]) {
// CHECK-NEXT: mpc.batch_norm_running_update
// CHECK-NEXT: mpc.increment %[[RNG]]
// CHECK: %[[ACT:.*]] = mpc.all_of %[[LAST]], %[[FINITE]]
// CHECK: %[[U:.*]] = mpc.unscale %[[G]]#3, %[[SCALE]]
// CHECK: %[[MEAN:.*]] = mpc.accumulate_gradient %[[SUM]], %[[U]], %[[MICRO]] {count = 2}
// CHECK: %[[NEW:.*]]:3 = mpc.guarded_update %[[ACT]] else(%[[W]],
// CHECK-NEXT: mpc.momentum %[[W]], %{{.*}}, %[[MEAN]],
// CHECK-NEXT: mpc.increment
// CHECK: %[[EMA:.*]] = mpc.add %{{.*}}, %[[NEW]]#0
// CHECK: mpc.select %[[ACT]], %[[EMA]],
// CHECK: %[[S:.*]], %[[GOOD:.*]], %[[SCALER_BAD:.*]], %[[SKIPPED:.*]], %[[CONSECUTIVE:.*]] = mpc.update_loss_scale %[[MERGED]], %[[SCALE]]
// CHECK: mpc.select %[[LAST]], %[[S]], %[[SCALE]]
// CHECK: mpc.select %[[LAST]], %[[GOOD]],
// CHECK: mpc.select %[[LAST]], %[[SCALER_BAD]],
// CHECK: mpc.select %[[LAST]], %[[SKIPPED]],
// CHECK: mpc.select %[[LAST]], %[[CONSECUTIVE]],
// CHECK: mpc.next_micro_step %[[MICRO]] {count = 2}

// Without a scaler nothing is checked and nothing is kept.
// NONE-LABEL: func @train_step(
// NONE-NOT: scaler
// NONE-NOT: accumulator.old
// NONE-NOT: mpc.all_finite
// NONE: %[[C:.*]] = mpc.constant {value = dense<2>
// NONE: %[[LAST:.*]] = mpc.equal %{{.*}}, %[[C]]
// NONE: mpc.accumulate_gradient {{.*}} {count = 3}
// NONE: mpc.guarded_update %[[LAST]]
// NONE-NEXT: mpc.momentum
// NONE: mpc.batch_norm_running_update
// NONE: mpc.increment

// Statistics fall back to another value than their own: that is a choice of its own.
// FLAT-LABEL: func @train_step(
// FLAT: %[[MEAN:.*]], %{{.*}} = mpc.batch_norm_running_update {{.*}}, %[[FINITE:.*]] {count
// FLAT: mpc.select %[[FINITE]], %[[MEAN]],
func.func @train_step(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
    %rm: tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
    %rv: tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
    %step: tensor<i32> {mpc.state = #mpc.state<step, "optimizer.step">},
    %rng: tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">},
    %ema: tensor<4xf32> {mpc.state = #mpc.state<statistic, "ema">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<f32> {mpc.state = #mpc.state<output, "loss">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
        tensor<i32> {mpc.state = #mpc.state<step, "optimizer.step">},
        tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "ema">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %mean, %variance, %dw = mpc.value_and_grad @f(%w, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %w2, %v2 = mpc.momentum %w, %v, %dw, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %step2 = mpc.increment %step : tensor<i32>
  %ema2 = mpc.add %ema, %w2 : tensor<4xf32>
  %rm2, %rv2 = mpc.batch_norm_running_update %rm, %rv, %mean, %variance {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %rng2 = mpc.increment %rng : tensor<i32>
  return %loss, %w2, %v2, %rm2, %rv2, %step2, %rng2, %ema2
      : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<i32>,
        tensor<4xf32>
}
