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

// A norm of what the step computes from gradients may overflow though they are finite: the check takes it in. A norm of the
// gradients themselves may not.
// CHECK-LABEL: func @norms(
// CHECK: %[[OF_GRADIENTS:.*]] = mpc.global_norm
// CHECK: mpc.clip_by_norm %{{.*}}, %[[OF_GRADIENTS]]
// CHECK: %[[NORM:.*]] = mpc.global_norm
// CHECK: %[[FLAG:.*]] = mpc.check_finite %[[NORM]]
// CHECK-NOT: mpc.check_finite
// CHECK: %[[FINITE:.*]], %[[BAD:.*]] = mpc.all_finite %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %[[FLAG]] :
// CHECK: mpc.clip_by_norm %{{.*}}, %[[NORM]]
// CHECK: mpc.momentum {{.*}}, %[[FINITE]] :
func.func @norms(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
    %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %scaled = mpc.scale_loss %loss, %scale : tensor<f32>
  %g = mpc.backward %scaled wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %finite, %bad = mpc.all_finite %scale, %loss, %g
      : (tensor<f32>, tensor<f32>, tensor<4xf32>) -> (tensor<i1>, tensor<i32>)
  %u = mpc.unscale %g, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %norm0 = mpc.global_norm %u : (tensor<4xf32>) -> tensor<f64>
  %c0 = mpc.clip_by_norm %u, %norm0 {max_norm = 1.0} : (tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  %doubled = mpc.add %c0, %u : tensor<4xf32>
  %norm1 = mpc.global_norm %doubled : (tensor<4xf32>) -> tensor<f64>
  %c1 = mpc.clip_by_norm %doubled, %norm1 {max_norm = 1.0} : (tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  %w2, %v2 = mpc.momentum %w, %v, %c1, %lr, %finite
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2, %v2 : tensor<4xf32>, tensor<4xf32>
}

// A scaler that moves between two losses: the second norm follows from the first check, which cannot wait for it.
// CHECK-LABEL: func @moved_between(
// CHECK: mpc.all_finite %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} :
// CHECK: mpc.update_loss_scale
// CHECK: %[[FLAG:.*]] = mpc.check_finite
// CHECK: mpc.all_finite %{{[a-z0-9_]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %[[FLAG]] :
// CHECK: mpc.all_of
// CHECK: mpc.momentum
func.func @moved_between(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
    %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %n = mpc.constant {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %scaled0 = mpc.scale_loss %loss, %scale : tensor<f32>
  %g0 = mpc.backward %scaled0 wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %finite0, %bad0 = mpc.all_finite %scale, %loss, %g0
      : (tensor<f32>, tensor<f32>, tensor<4xf32>) -> (tensor<i1>, tensor<i32>)
  %u0 = mpc.unscale %g0, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %scale1, %good, %badn, %skipped, %consecutive = mpc.update_loss_scale
      %bad0, %scale, %n, %n, %n, %n, %one, %one, %one, %one, %n, %n, %n, %n
      : (tensor<i32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>,
         tensor<f32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>)
      -> (tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>)
  %scaled1 = mpc.scale_loss %loss, %scale1 : tensor<f32>
  %g1 = mpc.backward %scaled1 wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %finite1, %bad1 = mpc.all_finite %scale1, %loss, %g1
      : (tensor<f32>, tensor<f32>, tensor<4xf32>) -> (tensor<i1>, tensor<i32>)
  %u1 = mpc.unscale %g1, %scale1 : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %sum = mpc.add %u0, %u1 : tensor<4xf32>
  %norm = mpc.global_norm %sum : (tensor<4xf32>) -> tensor<f64>
  %c = mpc.clip_by_norm %sum, %norm {max_norm = 1.0} : (tensor<4xf32>, tensor<f64>) -> tensor<4xf32>
  %both = mpc.all_of %finite0, %finite1 : tensor<i1>
  %w2, %v2 = mpc.momentum %w, %v, %c, %lr, %both
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2, %v2 : tensor<4xf32>, tensor<4xf32>
}
