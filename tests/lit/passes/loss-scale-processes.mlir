// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2" | FileCheck %s
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2" > %t.once && mpc-opt %t.once --mpc-loss-scale="mode=dynamic processes=2" | diff %t.once -
// RUN: mpc-opt %s --mpc-loss-scale="processes=2" | FileCheck %s --check-prefix=NONE
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2" --mpc-verify-loss-scale | FileCheck %s

func.func private @f(tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)

// The update reads the mean over processes, and happens where all processes are finite. Running statistics move by the
// batches of both. A process draws by its own number.
// CHECK-LABEL: func @train_step(
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}
// CHECK-SAME: %[[RNG:[a-z0-9]+]]: tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">}
// CHECK-SAME: mpc.processes = 2
// CHECK: %[[RANK:.*]] = mpc.process_rank {processes = 2
// CHECK-NEXT: %[[DRAWN:.*]] = mpc.int_add %[[RNG]], %[[RANK]]
// CHECK: %[[G:.*]]:4 = mpc.value_and_grad @f(%[[W]], %{{.*}}, %[[DRAWN]]) seed(%[[SCALE:.*]]) {
// CHECK: %{{.*}}, %[[BAD:.*]] = mpc.all_finite %[[SCALE]], %[[G]]#0, %[[G]]#3
// CHECK: %[[IS_FINITE:.*]] = mpc.equal %[[BAD]],
// CHECK: %[[CODE:.*]] = mpc.select %[[IS_FINITE]], %{{.*}}, %[[BAD]]
// CHECK: %[[LARGEST:.*]] = mpc.all_reduce_max %[[CODE]] {processes = 2
// CHECK: %[[AGREED:.*]] = mpc.select %{{.*}}, %{{.*}}, %[[LARGEST]]
// CHECK: %[[FINITE:.*]] = mpc.equal %[[AGREED]],
// CHECK: %[[U:.*]] = mpc.unscale %[[G]]#3, %[[SCALE]]
// CHECK: %[[SHARE:.*]] = mpc.mul_scalar %[[U]] {value = 5.000000e-01
// CHECK: %[[MEAN:.*]] = mpc.all_reduce %[[SHARE]] {processes = 2
// CHECK: %[[WEIGHTED:.*]] = mpc.mul_scalar %[[G]]#2 {value = 0.114285745
// CHECK: mpc.all_gather %[[G]]#1 {processes = 2
// CHECK: %[[VARIANCES:.*]] = mpc.all_gather %[[WEIGHTED]] {processes = 2
// CHECK: mpc.guarded_update %[[FINITE]] else(
// CHECK: mpc.momentum %[[W]], %{{.*}}, %[[MEAN]],
// CHECK: mpc.batch_norm_running_update {{.*}}, %[[VARIANCES]] {batches = 2, count = 0
// CHECK: mpc.increment %[[RNG]] {by = 2
// CHECK: mpc.update_loss_scale %[[AGREED]],

// Nothing is checked without a scaler.
// NONE-LABEL: func @train_step(
// NONE-NOT: mpc.all_reduce_max
// NONE: %[[SHARE:.*]] = mpc.mul_scalar %{{.*}}#3 {value = 5.000000e-01
// NONE: %[[MEAN:.*]] = mpc.all_reduce %[[SHARE]]
// NONE: mpc.momentum %{{.*}}, %{{.*}}, %[[MEAN]],
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

// A scaler that was traced by hand unscales the mean of the scaled gradients. Its check is that of both processes.
// CHECK-LABEL: func @by_hand(
// CHECK: %[[G:.*]]:4 = mpc.value_and_grad @f
// CHECK: %[[SHARE:.*]] = mpc.mul_scalar %[[G]]#3 {value = 5.000000e-01
// CHECK: %[[MEAN:.*]] = mpc.all_reduce %[[SHARE]]
// CHECK: %{{.*}}, %[[BAD:.*]] = mpc.all_finite %{{.*}}, %{{.*}}, %[[MEAN]]
// CHECK: mpc.all_reduce_max
// CHECK: %[[AGREED:.*]] = mpc.select
// CHECK: %[[FINITE:.*]] = mpc.equal %[[AGREED]],
// CHECK: %[[U:.*]] = mpc.unscale %[[MEAN]],
// CHECK: mpc.momentum {{.*}}%[[U]]{{.*}}, %[[FINITE]]
func.func @by_hand(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity", of = "w">},
    %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">},
    %rng: tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
        tensor<i32> {mpc.state = #mpc.state<record, "first_bad">}) attributes {mpc.step} {
  %loss, %m, %s, %dw = mpc.value_and_grad @f(%w, %x, %rng) seed(%scale) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<f32>)
      -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %finite, %bad = mpc.all_finite %scale, %loss, %dw
      : (tensor<f32>, tensor<f32>, tensor<4xf32>) -> (tensor<i1>, tensor<i32>)
  %u = mpc.unscale %dw, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %w1, %v1 = mpc.momentum %w, %v, %u, %lr, %finite
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w1, %v1, %bad : tensor<4xf32>, tensor<4xf32>, tensor<i32>
}

func.func private @synchronized(%w: tensor<4xf32>, %x: tensor<4xf32>)
    -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %xs = mpc.all_gather %x {processes = 2} : (tensor<4xf32>) -> tensor<2x4xf32>
  %m = mpc.reduce_mean %xs {axes = [0]} : (tensor<2x4xf32>) -> tensor<4xf32>
  %s = mpc.mul %m, %w : tensor<4xf32>
  %own = mpc.mul %x, %w : tensor<4xf32>
  %loss = mpc.reduce_sum %own {axes = []} : (tensor<4xf32>) -> tensor<f32>
  return %loss, %m, %s, %own : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Statistics that follow from what processes have gathered, and from parameters, are equal: they are gathered once. So
// may other state follow from them.
// CHECK-LABEL: func @equal_statistics(
// CHECK: %[[G:.*]]:5 = mpc.value_and_grad @synchronized
// CHECK-DAG: mpc.batch_norm_running_update %{{.*}}, %{{.*}}, %[[G]]#1, %[[G]]#2 {count = 8
// CHECK-DAG: %[[WEIGHTED:.*]] = mpc.mul_scalar %[[G]]#3 {value = 0.114285745
// CHECK-DAG: %[[OWN:.*]] = mpc.all_gather %[[WEIGHTED]] {processes = 2
// CHECK-DAG: %[[EQUAL:.*]] = mpc.all_gather %[[G]]#1 {processes = 2
// CHECK-DAG: mpc.batch_norm_running_update %{{.*}}, %{{.*}}, %[[EQUAL]], %[[OWN]] {batches = 2, count = 0
func.func @equal_statistics(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity", of = "w">},
    %rm: tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
    %rv: tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
    %rm2: tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean2">},
    %rv2: tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance2">},
    %last: tensor<4xf32> {mpc.state = #mpc.state<statistic, "last">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean2">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance2">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "last">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %m, %s, %own, %dw = mpc.value_and_grad @synchronized(%w, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>)
      -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %w1, %v1 = mpc.momentum %w, %v, %dw, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %rm1, %rv1 = mpc.batch_norm_running_update %rm, %rv, %m, %s {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %rm3, %rv3 = mpc.batch_norm_running_update %rm2, %rv2, %m, %own {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %last1 = mpc.maximum %last, %m : tensor<4xf32>
  return %w1, %v1, %rm1, %rv1, %rm3, %rv3, %last1
      : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
