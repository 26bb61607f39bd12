// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic all-reduce=true" | FileCheck %s
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic all-reduce=true" > %t.once && mpc-opt %t.once --mpc-loss-scale="mode=dynamic all-reduce=true" | diff %t.once -
// RUN: mpc-opt %s --mpc-loss-scale="mode=none all-reduce=true" | FileCheck %s --check-prefix=UNSCALED
// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic all-reduce=true" --mpc-verify-loss-scale | FileCheck %s

func.func private @f(tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)

// The sum over processes stands between the request for a gradient and its check; the update reads it, too.
// CHECK-LABEL: func @train_step
// CHECK: %[[G:.*]]:3 = mpc.value_and_grad @f
// CHECK-NEXT: %[[SUM:.*]] = mpc.all_reduce %[[G]]#2 : tensor<4xf32>
// CHECK-NEXT: mpc.all_finite %{{.*}}, %[[G]]#0, %[[SUM]]
// CHECK: mpc.guarded_update
// CHECK: mpc.unscale %[[SUM]],
// UNSCALED-LABEL: func @train_step
// UNSCALED: %[[G:.*]]:3 = mpc.value_and_grad @f
// UNSCALED-NEXT: %[[SUM:.*]] = mpc.all_reduce %[[G]]#2
// UNSCALED: mpc.momentum %{{.*}}, %{{.*}}, %[[SUM]],
func.func @train_step(%p: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                      %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity", of = "w">}, %x: tensor<4xf32>)
    -> (tensor<f32>, tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "w.velocity">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %rate = mpc.constant {value = dense<0.1> : tensor<f32>} : () -> tensor<f32>
  %loss, %y, %g = mpc.value_and_grad @f(%p, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)
  %p1, %v1 = mpc.momentum %p, %v, %g, %rate
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %loss, %p1, %v1 : tensor<f32>, tensor<4xf32>, tensor<4xf32>
}
