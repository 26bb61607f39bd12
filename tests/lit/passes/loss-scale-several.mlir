// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" | FileCheck %s --check-prefixes=CHECK,SHARED
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic num-losses=2" | FileCheck %s --check-prefixes=CHECK,OWN
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic num-losses=2" > %t.once && mpc-opt %t.once --mpc-loss-scale="mode=dynamic num-losses=2" | diff %t.once -
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic num-losses=2" --mpc-flatten-guards | FileCheck %s --check-prefix=FLAT

func.func private @f(tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)

#first = #mpc.scope<"optimizer">
#second = #mpc.scope<"optimizer2">

// The trunk's statistics and a parameter that both losses use wait for both losses, an optimizer waits for the losses
// whose gradients reach it, the generator counts where any loss is finite. Gradients of two losses meet unscaled.
// CHECK-LABEL: func @train_step(
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<parameter, "a">}
// SHARED-SAME: %[[S0:[a-z0-9]+]]: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}
// OWN-SAME: %[[S0:[a-z0-9]+]]: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler0.scale">}
// OWN-SAME: %[[S1:[a-z0-9]+]]: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler1.scale">}
// SHARED-SAME: tensor<i1> {mpc.state = #mpc.state<record, "finite">}, tensor<i32> {mpc.state = #mpc.state<record, "first_bad">}, tensor<f32> {mpc.state = #mpc.state<record, "loss_scale">}, tensor<i32> {mpc.state = #mpc.state<record, "loss0.first_bad">}, tensor<i32> {mpc.state = #mpc.state<record, "loss1.first_bad">})
// SHARED-SAME: mpc.gradients = {loss0.first_bad = ["shared", "a"], loss1.first_bad = ["shared", "b"]}
// OWN-SAME: {mpc.state = #mpc.state<record, "finite0">}, tensor<i32> {mpc.state = #mpc.state<record, "first_bad0">}, tensor<f32> {mpc.state = #mpc.state<record, "loss_scale0">}, tensor<i1> {mpc.state = #mpc.state<record, "finite1">}
// OWN-SAME: mpc.gradients = {first_bad0 = ["shared", "a"], first_bad1 = ["shared", "b"]}
// CHECK: %{{.*}}, %[[MEAN:.*]], %{{.*}}, %{{.*}} = mpc.batch_norm_train
// CHECK: %[[L0:.*]] = mpc.reduce_sum
// CHECK: %[[G0:.*]]:2 = mpc.backward %[[L0]] wrt({{.*}}) seed(%[[S0]])
// CHECK: %[[F0:.*]], %[[B0:.*]] = mpc.all_finite %[[S0]], %[[L0]], %[[G0]]#0, %[[G0]]#1
// CHECK: %[[U0:.*]] = mpc.unscale %[[G0]]#0, %[[S0]]
// CHECK: %[[L1:.*]] = mpc.reduce_sum
// OWN: %[[G1:.*]]:2 = mpc.backward %[[L1]] wrt({{.*}}) seed(%[[S1]])
// OWN: %[[F1:.*]], %[[B1:.*]] = mpc.all_finite %[[S1]], %[[L1]], %[[G1]]#0, %[[G1]]#1
// SHARED: %[[G1:.*]]:2 = mpc.backward %[[L1]] wrt({{.*}}) seed(%[[S0]])
// SHARED: %[[F1:.*]], %[[B1:.*]] = mpc.all_finite %[[S0]], %[[L1]], %[[G1]]#0, %[[G1]]#1
// CHECK: %[[ANY:.*]] = mpc.any_of %[[F0]], %[[F1]]
// CHECK-NEXT: mpc.guarded_update %[[ANY]] else({{.*}}) {
// CHECK-NEXT: mpc.increment
// CHECK-NEXT: mpc.yield
// CHECK: mpc.guarded_update %[[F1]] else({{.*}}) {
// CHECK-NEXT: mpc.unscale %[[G1]]#1
// CHECK-NEXT: mpc.momentum {{.*}} in <"optimizer2">
// CHECK-NEXT: mpc.increment {{.*}} in <"optimizer2">
// CHECK-NEXT: mpc.batch_norm_running_update
// CHECK-NEXT: mpc.yield
// CHECK: %[[ALL:.*]] = mpc.all_of %[[F0]], %[[F1]]
// SHARED: %[[U1:.*]] = mpc.unscale %[[G1]]#0, %[[S0]]
// OWN: %[[U1:.*]] = mpc.unscale %[[G1]]#0, %[[S1]]
// CHECK: %[[SUM:.*]] = mpc.add %[[U0]], %[[U1]]
// CHECK-NEXT: mpc.guarded_update %[[ALL]] else({{.*}}) {
// CHECK-NEXT: mpc.unscale %[[G0]]#1, %[[S0]]
// CHECK-NEXT: mpc.momentum {{.*}} in <"optimizer">
// CHECK-NEXT: mpc.momentum %{{.*}}, %{{.*}}, %[[SUM]], {{.*}} in <"optimizer">
// CHECK-NEXT: mpc.increment {{.*}} in <"optimizer">
// CHECK-NEXT: mpc.batch_norm_running_update {{.*}}%[[MEAN]]
// CHECK-NEXT: mpc.yield
// CHECK-NOT: mpc.guarded_update
// SHARED: %[[MERGED:.*]] = mpc.merge_checks %[[B0]], %[[B1]]
// SHARED: mpc.update_loss_scale %[[MERGED]], %[[S0]]
// SHARED-NOT: mpc.update_loss_scale
// OWN: mpc.update_loss_scale %[[B0]], %[[S0]]
// OWN: mpc.update_loss_scale %[[B1]], %[[S1]]

// FLAT-LABEL: func @train_step(
// FLAT: %[[F1:.*]], %{{.*}} = mpc.all_finite
// FLAT-NOT: mpc.guarded_update
// FLAT-NOT: mpc.select
// FLAT-LABEL: func @alternating(
func.func @train_step(
    %shared: tensor<4xf32> {mpc.state = #mpc.state<parameter, "shared">},
    %a: tensor<4xf32> {mpc.state = #mpc.state<parameter, "a">},
    %b: tensor<4xf32> {mpc.state = #mpc.state<parameter, "b">},
    %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "shared.velocity">},
    %va: tensor<4xf32> {mpc.state = #mpc.state<slot, "a.velocity">},
    %vb: tensor<4xf32> {mpc.state = #mpc.state<slot, "b.velocity">},
    %rm: tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
    %rv: tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
    %rmb: tensor<4xf32> {mpc.state = #mpc.state<statistic, "b.mean">},
    %rvb: tensor<4xf32> {mpc.state = #mpc.state<statistic, "b.variance">},
    %step: tensor<i32> {mpc.state = #mpc.state<step, "optimizer.step">},
    %step2: tensor<i32> {mpc.state = #mpc.state<step, "optimizer2.step">},
    %rng: tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "lr">},
    %x: tensor<8x4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<f32> {mpc.state = #mpc.state<output, "loss">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "shared">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "a">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "b">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "shared.velocity">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "a.velocity">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "b.velocity">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "b.mean">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "b.variance">},
        tensor<i32> {mpc.state = #mpc.state<step, "optimizer.step">},
        tensor<i32> {mpc.state = #mpc.state<step, "optimizer2.step">},
        tensor<i32> {mpc.state = #mpc.state<rng, "rng.step">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %h, %mean, %variance, %inv = mpc.batch_norm_train %x, %shared, %shared
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %ya = mpc.mul %h, %a : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %l0 = mpc.reduce_sum %ya {axes = []} : (tensor<8x4xf32>) -> tensor<f32>
  %g0, %ga = mpc.backward %l0 wrt(%shared, %a) seed(%one)
      : (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %yb, %meanb, %varianceb, %invb = mpc.batch_norm_train %h, %b, %b
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %l1 = mpc.reduce_sum %yb {axes = []} : (tensor<8x4xf32>) -> tensor<f32>
  %g1, %gb = mpc.backward %l1 wrt(%shared, %b) seed(%one)
      : (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %g = mpc.add %g0, %g1 : tensor<4xf32>
  %a2, %va2 = mpc.momentum %a, %va, %ga, %lr in #first
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %shared2, %v2 = mpc.momentum %shared, %v, %g, %lr in #first
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %next = mpc.increment %step in #first : tensor<i32>
  %b2, %vb2 = mpc.momentum %b, %vb, %gb, %lr in #second
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %next2 = mpc.increment %step2 in #second : tensor<i32>
  %rm2, %rv2 = mpc.batch_norm_running_update %rm, %rv, %mean, %variance {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %rmb2, %rvb2 = mpc.batch_norm_running_update %rmb, %rvb, %meanb, %varianceb {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %rng2 = mpc.increment %rng : tensor<i32>
  return %l0, %shared2, %a2, %b2, %v2, %va2, %vb2, %rm2, %rv2, %rmb2, %rvb2, %next, %next2, %rng2
      : tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>,
        tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<i32>, tensor<i32>
}

// One after the other: the second loss reads what the first optimizer wrote. Its forward pass runs behind the first
// guarded update, and an overflow in the first loss does not hold the second optimizer.
// CHECK-LABEL: func @alternating(
// CHECK: %[[F0:.*]], %{{.*}} = mpc.all_finite
// CHECK-NEXT: %[[NEW:.*]]:2 = mpc.guarded_update %[[F0]]
// CHECK: %[[Y:.*]] = mpc.mul %[[NEW]]#0,
// CHECK: mpc.backward
// CHECK: %[[F1:.*]], %{{.*}} = mpc.all_finite
// CHECK: mpc.guarded_update %[[F1]]
func.func @alternating(%a: tensor<4xf32>, %b: tensor<4xf32>, %va: tensor<4xf32>, %vb: tensor<4xf32>, %lr: tensor<f32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %l0 = mpc.reduce_sum %a {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %ga = mpc.backward %l0 wrt(%a) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %a2, %va2 = mpc.momentum %a, %va, %ga, %lr in #first
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %y = mpc.mul %a2, %b : tensor<4xf32>
  %l1 = mpc.reduce_sum %y {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %gb = mpc.backward %l1 wrt(%b) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %b2, %vb2 = mpc.momentum %b, %vb, %gb, %lr in #second
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %a2, %va2, %b2, %vb2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Statistics that leave a differentiated function follow its request; with two forward passes of one norm, each update
// holds by itself, one on top of the other.
// CHECK-LABEL: func @functions(
// CHECK: %[[G0:.*]]:4 = mpc.value_and_grad
// CHECK: %[[F0:.*]], %{{.*}} = mpc.all_finite
// CHECK: %[[M0:.*]]:2 = mpc.guarded_update %[[F0]] else(%[[RM:[a-z0-9]+]], %[[RV:[a-z0-9]+]]) {
// CHECK-NEXT: mpc.batch_norm_running_update %[[RM]], %[[RV]], %[[G0]]#1, %[[G0]]#2
// CHECK: %[[G1:.*]]:4 = mpc.value_and_grad
// CHECK: %[[F1:.*]], %{{.*}} = mpc.all_finite
// CHECK: %[[M1:.*]]:2 = mpc.guarded_update %[[F1]] else(%[[M0]]#0, %[[M0]]#1) {
// CHECK-NEXT: mpc.batch_norm_running_update %[[M0]]#0, %[[M0]]#1, %[[G1]]#1, %[[G1]]#2
// CHECK: return %[[M1]]#0, %[[M1]]#1
func.func @functions(%w: tensor<4xf32>, %rm: tensor<4xf32>, %rv: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %l0, %m0, %v0, %g0 = mpc.value_and_grad @f(%w) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %l1, %m1, %v1, %g1 = mpc.value_and_grad @f(%w) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %rm2, %rv2 = mpc.batch_norm_running_update %rm, %rv, %m0, %v0 {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %rm3, %rv3 = mpc.batch_norm_running_update %rm2, %rv2, %m1, %v1 {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %rm3, %rv3 : tensor<4xf32>, tensor<4xf32>
}

// An update that reads what follows from another one of its optimizer needs a second region; a statistic that the loss
// itself reads cannot wait for the loss: its result is chosen at the end.
// CHECK-LABEL: func @chained(
// CHECK-SAME: %[[RM:[a-z0-9]+]]: tensor<4xf32> {mpc.state = #mpc.state<statistic, "rm">}
// CHECK: %[[STAT:.*]], %{{.*}} = mpc.batch_norm_running_update %[[RM]],
// CHECK: mpc.backward
// CHECK: %[[F:.*]], %{{.*}} = mpc.all_finite
// CHECK-NEXT: %[[FIRST:.*]]:2 = mpc.guarded_update %[[F]]
// CHECK: %[[NEXT:.*]] = mpc.mul %[[FIRST]]#0,
// CHECK-NEXT: mpc.guarded_update %[[F]]
// CHECK-NEXT: mpc.momentum %{{.*}}, %{{.*}}, %[[NEXT]],
// CHECK: mpc.select %[[F]], %[[STAT]], %[[RM]]
func.func @chained(%a: tensor<4xf32>, %b: tensor<4xf32>, %va: tensor<4xf32>, %vb: tensor<4xf32>, %lr: tensor<f32>,
                   %rm: tensor<4xf32> {mpc.state = #mpc.state<statistic, "rm">}, %rv: tensor<4xf32>, %x: tensor<8x4xf32>)
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32> {mpc.state = #mpc.state<statistic, "rm">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %h, %mean, %variance, %inv = mpc.batch_norm_train %x, %a, %a
      : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>)
      -> (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %rm2, %rv2 = mpc.batch_norm_running_update %rm, %rv, %mean, %variance {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %y = mpc.mul %h, %rm2 : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  %loss = mpc.reduce_sum %y {axes = []} : (tensor<8x4xf32>) -> tensor<f32>
  %ga = mpc.backward %loss wrt(%a) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %a2, %va2 = mpc.momentum %a, %va, %ga, %lr in #first
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %next = mpc.mul %a2, %va2 : tensor<4xf32>
  %b2, %vb2 = mpc.momentum %b, %vb, %next, %lr in #first
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %a2, %b2, %rm2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
