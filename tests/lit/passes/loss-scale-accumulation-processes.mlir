// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2 accumulation-steps=2" | FileCheck %s
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2 accumulation-steps=2" > %t.once && mpc-opt %t.once --mpc-loss-scale="mode=dynamic processes=2 accumulation-steps=2" | diff %t.once -
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2 accumulation-steps=2 last-micro-step=false" | FileCheck %s --check-prefix=BEFORE
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2 accumulation-steps=2 last-micro-step=false" > %t.before && mpc-opt %t.before --mpc-loss-scale="mode=dynamic processes=2 accumulation-steps=2 last-micro-step=false" | diff %t.before -
// RUN: mpc-opt %s --mpc-loss-scale="processes=2 accumulation-steps=4 last-micro-step=false" | FileCheck %s --check-prefix=NONE

func.func private @f(tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)

// The last micro-step of a process reduces the sums and the findings of its own, without a comparison of its number.
// Statistics move by the batches of all four micro-steps in order, and the generator's counter by four.
// CHECK-LABEL: func @train_step(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}
// CHECK-SAME: %[[RNG:[a-z0-9]+]]: tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">}
// CHECK-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}
// CHECK-SAME: %[[MICRO:[a-z0-9]+]]: tensor<i32> {mpc.state = #mpc.state<accumulator, "accumulator.micro_step">}
// CHECK-SAME: %[[MEANS:[a-z0-9]+]]: tensor<2x4xf32> {mpc.state = #mpc.state<accumulator, "accumulator.batches.mean", of = "mean">}
// CHECK-SAME: {mpc.state = #mpc.state<accumulator, "accumulator.batches.variance", of = "variance">}
// CHECK-SAME: %[[SUM:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<accumulator, "accumulator.w", of = "w">}
// CHECK-SAME: mpc.processes = 2
// CHECK-NOT: accumulator.old
// CHECK: %[[RANK:.*]] = mpc.process_rank {processes = 2
// CHECK: %[[BEGIN:.*]] = mpc.int_mul %[[RANK]], %{{.*}} : tensor<i32>
// CHECK: %[[NUMBER:.*]] = mpc.int_add %[[BEGIN]], %[[MICRO]]
// CHECK: %[[DRAWN:.*]] = mpc.int_add %[[RNG]], %[[NUMBER]]
// CHECK: %[[G:.*]]:4 = mpc.value_and_grad @f(%[[W]], %{{.*}}, %[[DRAWN]]) seed(%[[SCALE]])
// CHECK: %{{.*}}, %[[BAD:.*]] = mpc.all_finite %[[SCALE]], %[[G]]#0, %[[G]]#3
// CHECK: %[[MERGED:.*]] = mpc.merge_checks %{{.*}}, %[[BAD]]
// CHECK: mpc.all_reduce_max %{{.*}} {processes = 2
// CHECK: %[[AGREED:.*]] = mpc.select
// CHECK: %[[FINITE:.*]] = mpc.equal %[[AGREED]],
// CHECK: %[[U:.*]] = mpc.unscale %[[G]]#3, %[[SCALE]]
// CHECK: %[[OWN:.*]] = mpc.accumulate_gradient %[[SUM]], %[[U]], %[[MICRO]] {count = 4
// CHECK: %[[MEAN:.*]] = mpc.all_reduce %[[OWN]] {processes = 2
// CHECK: %[[LATER:.*]] = mpc.slice %[[MEANS]] {sizes = {{.*}}1, 4{{.*}}, starts = {{.*}}1, 0
// CHECK: %[[ROW:.*]] = mpc.reshape %[[G]]#1
// CHECK: %[[BATCHES:.*]] = mpc.concat %[[LATER]], %[[ROW]]
// CHECK: %[[GATHERED:.*]] = mpc.all_gather %[[BATCHES]] {processes = 2{{.*}} -> tensor<2x2x4xf32>
// CHECK: mpc.reshape %[[GATHERED]] {{.*}} -> tensor<4x4xf32>
// CHECK: mpc.guarded_update %[[FINITE]] else(
// CHECK: mpc.momentum %[[W]], %{{.*}}, %[[MEAN]],
// CHECK: mpc.batch_norm_running_update {{.*}}batches = 4
// CHECK: mpc.increment %[[RNG]] {by = 4
// CHECK: mpc.update_loss_scale %[[AGREED]],
// CHECK: mpc.next_micro_step %[[MICRO]] {count = 2}

// Before the last micro-step nothing is exchanged, and accumulators alone move.
// BEFORE-LABEL: func @train_step(
// BEFORE-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}
// BEFORE-SAME: %[[V:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<slot,
// BEFORE-SAME: %[[RM:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">}
// BEFORE-SAME: %[[RV:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">}
// BEFORE-SAME: %[[RNG:[a-z0-9]+]]: tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">}
// BEFORE-SAME: %[[SCALE:[a-z0-9]+]]: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}
// BEFORE-NOT: mpc.all_reduce
// BEFORE-NOT: mpc.all_gather
// BEFORE-NOT: mpc.momentum
// BEFORE-NOT: mpc.batch_norm_running_update
// BEFORE-NOT: mpc.increment
// BEFORE-NOT: mpc.update_loss_scale
// BEFORE: mpc.merge_checks
// BEFORE: %[[SUM:.*]] = mpc.accumulate_gradient {{.*}} {count = 4
// BEFORE: %[[MEANS:.*]] = mpc.concat
// BEFORE: %[[VARIANCES:.*]] = mpc.concat
// BEFORE: %[[NEXT:.*]] = mpc.next_micro_step %{{.*}} {count = 2}
// BEFORE: return %{{.*}}, %[[W]], %[[V]], %[[RM]], %[[RV]], %[[RNG]], %[[SCALE]],
// BEFORE-SAME: %[[MEANS]], %[[VARIANCES]],
// BEFORE-SAME: %[[SUM]], %[[NEXT]],

// Eight micro-steps of an update, four of which a process adds in two levels.
// NONE-LABEL: func @train_step(
// NONE-NOT: mpc.all_finite
// NONE: mpc.accumulate_gradient {{.*}} {count = 8
// NONE: mpc.accumulate_gradient {{.*}} {count = 8, level = 1
// NONE-NOT: mpc.momentum
func.func @train_step(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity", of = "w">},
    %rm: tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
    %rv: tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
    %rng: tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<f32> {mpc.state = #mpc.state<output, "loss">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
        tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %m, %s, %dw = mpc.value_and_grad @f(%w, %x, %rng) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<f32>)
      -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %w1, %v1 = mpc.momentum %w, %v, %dw, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %rm1, %rv1 = mpc.batch_norm_running_update %rm, %rv, %m, %s {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %rng1 = mpc.increment %rng : tensor<i32>
  return %loss, %w1, %v1, %rm1, %rv1, %rng1
      : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>
}

// A layer that runs twice moves its statistics by the batches of a micro-step one after the other.
// CHECK-LABEL: func @runs_twice(
// CHECK: %[[G:.*]]:4 = mpc.value_and_grad @f
// CHECK: mpc.concat %{{.*}} -> tensor<2x4xf32>
// CHECK: mpc.all_gather %{{.*}} -> tensor<2x2x2x4xf32>
// CHECK: mpc.reshape %{{.*}} -> tensor<4x2x4xf32>
// CHECK: mpc.reshape %{{.*}} -> tensor<8x4xf32>
// CHECK: mpc.batch_norm_running_update {{.*}}batches = 8
// CHECK-NOT: mpc.batch_norm_running_update
func.func @runs_twice(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %rm: tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
    %rv: tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">},
    %draw: tensor<i32> {mpc.state = #mpc.state<input, "draw">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %m, %s, %dw = mpc.value_and_grad @f(%w, %x, %draw) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<f32>)
      -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %rm1, %rv1 = mpc.batch_norm_running_update %rm, %rv, %m, %s {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %rm2, %rv2 = mpc.batch_norm_running_update %rm1, %rv1, %s, %m {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %rm2, %rv2 : tensor<4xf32>, tensor<4xf32>
}
