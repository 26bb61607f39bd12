// RUN: mpc-opt %s --mpc-loss-scale | FileCheck %s
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" | FileCheck %s
// RUN: mpc-opt %s --mpc-loss-scale > %t.once && mpc-opt %t.once --mpc-loss-scale | diff %t.once -

// Scalers that were traced by hand stay; statistics and the generator move behind the check and wait for it.
// CHECK-LABEL: func @train_step(
// CHECK-NOT: scaler.good
// CHECK: mpc.batch_norm_train
// CHECK: %[[FINITE:.*]], %{{.*}} = mpc.all_finite
// CHECK-DAG: mpc.increment %{{.*}}, %[[FINITE]] :
// CHECK-DAG: mpc.batch_norm_running_update {{.*}}, %[[FINITE]] {
// CHECK-DAG: mpc.momentum {{.*}}, %[[FINITE]] :
// CHECK: return
func.func @train_step(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
    %rm: tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
    %rv: tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
    %rng: tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">},
    %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<8x4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
        tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %rng2 = mpc.increment %rng : tensor<i32>
  %h, %mean, %variance, %inv = mpc.batch_norm_train %x, %w, %w
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %rm2, %rv2 = mpc.batch_norm_running_update %rm, %rv, %mean, %variance {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %loss = mpc.reduce_sum %h {axes = []} : (tensor<8x4xf32>) -> tensor<f32>
  %scaled = mpc.scale_loss %loss, %scale : tensor<f32>
  %g = mpc.backward %scaled wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %finite, %bad = mpc.all_finite %scale, %loss, %g
      : (tensor<f32>, tensor<f32>, tensor<4xf32>) -> (tensor<i1>, tensor<i32>)
  %u = mpc.unscale %g, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %w2, %v2 = mpc.momentum %w, %v, %u, %lr, %finite
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2, %v2, %rm2, %rv2, %rng2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>
}

// A scaler that does not skip holds nothing.
// CHECK-LABEL: func @no_skip(
// CHECK: mpc.increment %{{[a-z0-9]+}} :
// CHECK: mpc.batch_norm_running_update %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} {
// CHECK: mpc.all_finite
func.func @no_skip(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
    %rm: tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
    %rv: tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
    %rng: tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">},
    %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<8x4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
        tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %rng2 = mpc.increment %rng : tensor<i32>
  %h, %mean, %variance, %inv = mpc.batch_norm_train %x, %w, %w
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %rm2, %rv2 = mpc.batch_norm_running_update %rm, %rv, %mean, %variance {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %loss = mpc.reduce_sum %h {axes = []} : (tensor<8x4xf32>) -> tensor<f32>
  %scaled = mpc.scale_loss %loss, %scale : tensor<f32>
  %g = mpc.backward %scaled wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %finite, %bad = mpc.all_finite %scale, %loss, %g
      : (tensor<f32>, tensor<f32>, tensor<4xf32>) -> (tensor<i1>, tensor<i32>)
  %u = mpc.unscale %g, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %w2, %v2 = mpc.momentum %w, %v, %u, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2, %v2, %rm2, %rv2, %rng2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>
}
