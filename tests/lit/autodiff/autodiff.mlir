// RUN: mpc-opt %s --mpc-autodiff --split-input-file | FileCheck %s
// RUN: mpc-opt %s --mpc-autodiff --mpc-autodiff --split-input-file | FileCheck %s

#fc1 = #mpc.scope<"mlp/fc1", network>
#loss = #mpc.scope<"loss">

// Forward, then backward in reverse order. Gradient operations carry the scope of their forward operation, matmul's
// need no transposes, and the callee is gone.
// CHECK-NOT: func private @forward
// CHECK-LABEL: func @train_step(
// CHECK-SAME: %[[W:.*]]: tensor<3x4xf32>, %[[B:.*]]: tensor<3xf32>, %[[X:.*]]: tensor<2x4xf32>, %[[L:.*]]: tensor<2xi32>, %[[S:.*]]: tensor<f32>)
// CHECK: %[[Y:.*]] = mpc.matmul %[[X]], %[[W]], %[[B]] {activation = relu, transpose_b = true} in [[FC1:"[^"]*"]] :
// CHECK: %[[LOSS:.*]], %[[LSE:.*]] = mpc.softmax_cross_entropy %[[Y]], %[[L]] in [[LOSSSCOPE:<"[^"]*">]] :
// CHECK: %[[DY:.*]] = mpc.softmax_cross_entropy_grad %[[S]], %[[Y]], %[[L]], %[[LSE]] backward in [[LOSSSCOPE]] :
// CHECK: %[[DZ:.*]] = mpc.relu_grad %[[DY]], %[[Y]] backward in [[FC1]] :
// CHECK: %[[DW:.*]] = mpc.matmul %[[DZ]], %[[X]] {transpose_a = true} backward in [[FC1]] : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
// CHECK: %[[DB:.*]] = mpc.reduce_sum %[[DZ]] {axes = [0]} backward in [[FC1]] :
// CHECK-NOT: mpc.
// CHECK: return %[[LOSS]], %[[Y]], %[[DW]], %[[DB]]
func.func private @forward(%w: tensor<3x4xf32>, %b: tensor<3xf32>, %x: tensor<2x4xf32>, %labels: tensor<2xi32>)
    -> (tensor<f32>, tensor<2x3xf32>) {
  %y = mpc.matmul %x, %w, %b {activation = relu, transpose_b = true} in #fc1
      : (tensor<2x4xf32>, tensor<3x4xf32>, tensor<3xf32>) -> tensor<2x3xf32>
  %loss, %lse = mpc.softmax_cross_entropy %y, %labels in #loss
      : (tensor<2x3xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>)
  return %loss, %y : tensor<f32>, tensor<2x3xf32>
}
func.func @train_step(%w: tensor<3x4xf32>, %b: tensor<3xf32>, %x: tensor<2x4xf32>, %labels: tensor<2xi32>,
                      %seed: tensor<f32>) -> (tensor<f32>, tensor<2x3xf32>, tensor<3x4xf32>, tensor<3xf32>) {
  %loss, %y, %dw, %db = mpc.value_and_grad @forward(%w, %b, %x, %labels) seed(%seed) {wrt = array<i64: 0, 1>}
      : (tensor<3x4xf32>, tensor<3xf32>, tensor<2x4xf32>, tensor<2xi32>, tensor<f32>)
      -> (tensor<f32>, tensor<2x3xf32>, tensor<3x4xf32>, tensor<3xf32>)
  return %loss, %y, %dw, %db : tensor<f32>, tensor<2x3xf32>, tensor<3x4xf32>, tensor<3xf32>
}

// -----

// The derivative of a cast is a cast; the gradients of a low operation are low and rounded once; the two uses of the
// low weight meet in one sum. A scalar seed becomes the loss's type and shape.
// CHECK-LABEL: func @low(
// CHECK-SAME: %[[W:.*]]: tensor<4x4xf32>, %[[X:.*]]: tensor<2x4xf16>, %[[S:.*]]: tensor<f32>)
// CHECK: %[[WL:.*]] = mpc.cast %[[W]] : (tensor<4x4xf32>) -> tensor<4x4xf16>
// CHECK: %[[H:.*]] = mpc.matmul %[[X]], %[[WL]]
// CHECK: %[[Y:.*]] = mpc.matmul %[[H]], %[[WL]]
// CHECK: %[[S16:.*]] = mpc.cast %[[S]] backward : (tensor<f32>) -> tensor<f16>
// CHECK: %[[DY:.*]] = mpc.broadcast_to %[[S16]] {shape = [2, 4]} backward : (tensor<f16>) -> tensor<2x4xf16>
// CHECK: %[[DH:.*]] = mpc.matmul %[[DY]], %[[WL]] {transpose_b = true} backward : (tensor<2x4xf16>, tensor<4x4xf16>) -> tensor<2x4xf16>
// CHECK: %[[G1:.*]] = mpc.matmul %[[H]], %[[DY]] {transpose_a = true} backward : (tensor<2x4xf16>, tensor<2x4xf16>) -> tensor<4x4xf16>
// CHECK: %[[G2:.*]] = mpc.matmul %[[X]], %[[DH]] {transpose_a = true} backward :
// CHECK: %[[G:.*]] = mpc.sum_n %[[G1]], %[[G2]] backward : tensor<4x4xf16>
// CHECK: %[[DW:.*]] = mpc.cast %[[G]] backward : (tensor<4x4xf16>) -> tensor<4x4xf32>
// CHECK: return %[[Y]], %[[DW]]
func.func private @forward(%w: tensor<4x4xf32>, %x: tensor<2x4xf16>) -> tensor<2x4xf16> {
  %low = mpc.cast %w : (tensor<4x4xf32>) -> tensor<4x4xf16>
  %h = mpc.matmul %x, %low : (tensor<2x4xf16>, tensor<4x4xf16>) -> tensor<2x4xf16>
  %y = mpc.matmul %h, %low : (tensor<2x4xf16>, tensor<4x4xf16>) -> tensor<2x4xf16>
  return %y : tensor<2x4xf16>
}
func.func @low(%w: tensor<4x4xf32>, %x: tensor<2x4xf16>, %seed: tensor<f32>)
    -> (tensor<2x4xf16>, tensor<4x4xf32>) {
  %loss, %dw = mpc.value_and_grad @forward(%w, %x) seed(%seed) {wrt = array<i64: 0>}
      : (tensor<4x4xf32>, tensor<2x4xf16>, tensor<f32>) -> (tensor<2x4xf16>, tensor<4x4xf32>)
  return %loss, %dw : tensor<2x4xf16>, tensor<4x4xf32>
}

// -----

// A folded norm: x and its gradient low, parameters, statistics and their gradients f32. Statistics leave the forward
// pass as auxiliary results.
// CHECK-LABEL: func @folded_norm(
// CHECK: %[[Y:.*]], %[[MEAN:.*]], %{{.*}}, %[[INV:.*]] = mpc.batch_norm_train
// CHECK: %[[DX:.*]], %[[DG:.*]], %[[DB:.*]] = mpc.batch_norm_train_grad %{{.*}}, %[[X:.*]], %{{.*}}, %[[MEAN]], %[[INV]]
// CHECK-SAME: (tensor<4x3xf16>, tensor<4x3xf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf16>, tensor<3xf32>, tensor<3xf32>)
// CHECK: return %[[MEAN]], %[[DX]], %[[DG]], %[[DB]]
func.func private @forward(%x: tensor<4x3xf16>, %gamma: tensor<3xf32>, %beta: tensor<3xf32>)
    -> (tensor<f32>, tensor<3xf32>) {
  %y, %mean, %variance, %inv_std = mpc.batch_norm_train %x, %gamma, %beta
      : (tensor<4x3xf16>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %loss = mpc.reduce_sum %y {axes = []} : (tensor<4x3xf16>) -> tensor<f32>
  return %loss, %mean : tensor<f32>, tensor<3xf32>
}
func.func @folded_norm(%x: tensor<4x3xf16>, %gamma: tensor<3xf32>, %beta: tensor<3xf32>, %seed: tensor<f32>)
    -> (tensor<3xf32>, tensor<4x3xf16>, tensor<3xf32>, tensor<3xf32>) {
  %loss, %mean, %dx, %dgamma, %dbeta = mpc.value_and_grad @forward(%x, %gamma, %beta) seed(%seed)
      {wrt = array<i64: 0, 1, 2>} : (tensor<4x3xf16>, tensor<3xf32>, tensor<3xf32>, tensor<f32>)
      -> (tensor<f32>, tensor<3xf32>, tensor<4x3xf16>, tensor<3xf32>, tensor<3xf32>)
  return %mean, %dx, %dgamma, %dbeta : tensor<3xf32>, tensor<4x3xf16>, tensor<3xf32>, tensor<3xf32>
}

// -----

// Batch statistics have derivatives too: they add to those of x through y.
// CHECK-LABEL: func @of_statistics(
// CHECK: %{{.*}}, %[[MEAN:.*]], %[[VARIANCE:.*]], %[[INV:.*]] = mpc.batch_norm_train %[[X:.*]], %[[G:.*]], %[[G]] {epsilon = 1.000000e-03
// CHECK-DAG: %[[DY:.*]], %{{.*}}, %{{.*}} = mpc.batch_norm_train_grad %{{.*}}, %[[X]], %[[G]], %[[MEAN]], %[[INV]]
// CHECK-DAG: %[[TWICE:.*]] = mpc.mul_scalar %{{.*}} {value = 5.000000e-01
// CHECK-DAG: %[[GAMMA:.*]] = mpc.div %[[TWICE]], %[[INV]]
// CHECK-DAG: %[[BETA:.*]] = mpc.mul_scalar %{{.*}} {value = 2.500000e-01
// CHECK: %[[DS:.*]] = mpc.batch_norm_infer %[[X]], %[[GAMMA]], %[[BETA]], %[[MEAN]], %[[VARIANCE]] {epsilon = 1.000000e-03
// CHECK: %[[DX:.*]] = mpc.sum_n %[[DY]], %[[DS]]
// CHECK: return %[[DX]]
func.func private @statistics(%x: tensor<4x3xf16>, %gamma: tensor<3xf32>) -> tensor<f32> {
  %y, %mean, %variance, %inv_std = mpc.batch_norm_train %x, %gamma, %gamma {epsilon = 1.0e-3}
      : (tensor<4x3xf16>, tensor<3xf32>, tensor<3xf32>) -> (tensor<4x3xf16>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %of_y = mpc.reduce_sum %y {axes = []} : (tensor<4x3xf16>) -> tensor<f32>
  %both = mpc.add %mean, %variance : tensor<3xf32>
  %of_both = mpc.reduce_sum %both {axes = []} : (tensor<3xf32>) -> tensor<f32>
  %loss = mpc.add %of_y, %of_both : tensor<f32>
  return %loss : tensor<f32>
}
func.func @of_statistics(%x: tensor<4x3xf16>, %gamma: tensor<3xf32>, %seed: tensor<f32>) -> tensor<4x3xf16> {
  %loss, %dx = mpc.value_and_grad @statistics(%x, %gamma) seed(%seed) {wrt = array<i64: 0>}
      : (tensor<4x3xf16>, tensor<3xf32>, tensor<f32>) -> (tensor<f32>, tensor<4x3xf16>)
  return %dx : tensor<4x3xf16>
}

// -----

// A process's operand is a part of every process's result: its cotangent is that part of the sum.
// CHECK-LABEL: func @gathered(
// CHECK: %[[SUM:.*]] = mpc.all_reduce %{{.*}} {processes = 2{{.*}} : tensor<2x3xf32>
// CHECK: %[[RANK:.*]] = mpc.process_rank {processes = 2
// CHECK: %[[DX:.*]] = mpc.gather %[[SUM]], %[[RANK]] {{.*}}: (tensor<2x3xf32>, tensor<i32>) -> tensor<3xf32>
// CHECK: return %[[DX]]
func.func private @gather(%x: tensor<3xf32>) -> tensor<2x3xf32> {
  %all = mpc.all_gather %x {processes = 2} : (tensor<3xf32>) -> tensor<2x3xf32>
  return %all : tensor<2x3xf32>
}
func.func @gathered(%x: tensor<3xf32>, %seed: tensor<2x3xf32>) -> tensor<3xf32> {
  %loss, %dx = mpc.value_and_grad @gather(%x) seed(%seed) {wrt = array<i64: 0>}
      : (tensor<3xf32>, tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xf32>)
  return %dx : tensor<3xf32>
}

// -----

// Broadcasting is undone in f32 and rounded once.
// CHECK-LABEL: func @broadcast(
// CHECK-SAME: %[[A:.*]]: tensor<4x1x5xf16>, %[[B:.*]]: tensor<3x1xf16>, %[[S:.*]]: tensor<4x3x5xf32>)
// CHECK: %[[DY:.*]] = mpc.cast %[[S]] backward : (tensor<4x3x5xf32>) -> tensor<4x3x5xf16>
// CHECK: %[[TA:.*]] = mpc.mul %[[DY]], %[[B]] backward : (tensor<4x3x5xf16>, tensor<3x1xf16>) -> tensor<4x3x5xf32>
// CHECK: %[[DA:.*]] = mpc.reduce_sum %[[TA]] {axes = [1], keep_dims = true} backward : (tensor<4x3x5xf32>) -> tensor<4x1x5xf16>
// CHECK: %[[TB:.*]] = mpc.mul %[[DY]], %[[A]] backward : (tensor<4x3x5xf16>, tensor<4x1x5xf16>) -> tensor<4x3x5xf32>
// CHECK: %[[SB:.*]] = mpc.reduce_sum %[[TB]] {axes = [0, 2]} backward : (tensor<4x3x5xf32>) -> tensor<3xf16>
// CHECK: %[[DB:.*]] = mpc.reshape %[[SB]] {shape = [3, 1]} backward : (tensor<3xf16>) -> tensor<3x1xf16>
// CHECK: return %[[DA]], %[[DB]]
func.func private @forward(%a: tensor<4x1x5xf16>, %b: tensor<3x1xf16>) -> tensor<4x3x5xf16> {
  %y = mpc.mul %a, %b : (tensor<4x1x5xf16>, tensor<3x1xf16>) -> tensor<4x3x5xf16>
  return %y : tensor<4x3x5xf16>
}
func.func @broadcast(%a: tensor<4x1x5xf16>, %b: tensor<3x1xf16>, %seed: tensor<4x3x5xf32>)
    -> (tensor<4x1x5xf16>, tensor<3x1xf16>) {
  %loss, %da, %db = mpc.value_and_grad @forward(%a, %b) seed(%seed) {wrt = array<i64: 0, 1>}
      : (tensor<4x1x5xf16>, tensor<3x1xf16>, tensor<4x3x5xf32>)
      -> (tensor<4x3x5xf16>, tensor<4x1x5xf16>, tensor<3x1xf16>)
  return %da, %db : tensor<4x1x5xf16>, tensor<3x1xf16>
}

// -----

// Only what the gradients need is built: x is data, so conv2d has no derivative by it; the loss and the prediction have
// no users and go; an operation without a rule is fine off the path. The public function stays.
// CHECK-LABEL: func @evaluate(
// CHECK-LABEL: func @activity(
// CHECK: %[[IMAGE:.*]] = mpc.select
// CHECK-NEXT: mpc.constant
// CHECK-NEXT: mpc.div
// CHECK-NEXT: %[[DY:.*]] = mpc.broadcast_to
// CHECK-NEXT: %[[DW:.*]] = mpc.conv2d_grad_weight %[[IMAGE]], %[[DY]] {pad_mode = pad, padding = [1, 1, 1, 1], weight_shape = [2, 1, 3, 3]} backward :
// CHECK-NEXT: return %[[DW]]
func.func @evaluate(%w: tensor<2x1x3x3xf32>, %x: tensor<1x1x4x4xf32>, %c: tensor<i1>)
    -> (tensor<f32>, tensor<1x4x4xi32>) {
  %image = mpc.select %c, %x, %x : (tensor<i1>, tensor<1x1x4x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x1x4x4xf32>
  %y = mpc.conv2d %image, %w {pad_mode = pad, padding = [1, 1, 1, 1]}
      : (tensor<1x1x4x4xf32>, tensor<2x1x3x3xf32>) -> tensor<1x2x4x4xf32>
  %prediction = mpc.argmax %y {axis = 1} : (tensor<1x2x4x4xf32>) -> tensor<1x4x4xi32>
  %loss = mpc.reduce_mean %y {axes = []} : (tensor<1x2x4x4xf32>) -> tensor<f32>
  return %loss, %prediction : tensor<f32>, tensor<1x4x4xi32>
}
func.func @activity(%w: tensor<2x1x3x3xf32>, %x: tensor<1x1x4x4xf32>, %c: tensor<i1>, %seed: tensor<f32>)
    -> tensor<2x1x3x3xf32> {
  %loss, %prediction, %dw = mpc.value_and_grad @evaluate(%w, %x, %c) seed(%seed) {wrt = array<i64: 0>}
      : (tensor<2x1x3x3xf32>, tensor<1x1x4x4xf32>, tensor<i1>, tensor<f32>)
      -> (tensor<f32>, tensor<1x4x4xi32>, tensor<2x1x3x3xf32>)
  return %dw : tensor<2x1x3x3xf32>
}

// -----

// A mean divides once, then stretches.
// CHECK-LABEL: func @mean(
// CHECK-SAME: %{{.*}}: tensor<2x5xf32>, %[[S:.*]]: tensor<f32>)
// CHECK: %[[N:.*]] = mpc.constant {value = dense<1.000000e+01> : tensor<f32>} backward :
// CHECK: %[[SHARE:.*]] = mpc.div %[[S]], %[[N]]
// CHECK: %[[DX:.*]] = mpc.broadcast_to %[[SHARE]] {shape = [2, 5]} backward :
// CHECK: return %[[DX]]
func.func private @forward(%x: tensor<2x5xf32>) -> tensor<f32> {
  %loss = mpc.reduce_mean %x {axes = []} : (tensor<2x5xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
func.func @mean(%x: tensor<2x5xf32>, %seed: tensor<f32>) -> tensor<2x5xf32> {
  %loss, %dx = mpc.value_and_grad @forward(%x) seed(%seed) {wrt = array<i64: 0>}
      : (tensor<2x5xf32>, tensor<f32>) -> (tensor<f32>, tensor<2x5xf32>)
  return %dx : tensor<2x5xf32>
}

// -----

// A result that kept its axes has the rank of the operand: it is stretched as it is.
// CHECK-LABEL: func @kept(
// CHECK-NOT: mpc.reshape
// CHECK: %[[DX:.*]] = mpc.broadcast_to %{{.*}} {shape = [2, 5]} backward : (tensor<2x1xf32>) -> tensor<2x5xf32>
// CHECK-NEXT: return %[[DX]]
func.func private @forward(%x: tensor<2x5xf32>) -> tensor<2x1xf32> {
  %loss = mpc.reduce_sum %x {axes = [1], keep_dims = true} : (tensor<2x5xf32>) -> tensor<2x1xf32>
  return %loss : tensor<2x1xf32>
}
func.func @kept(%x: tensor<2x5xf32>, %dy: tensor<2x1xf32>) -> tensor<2x5xf32> {
  %loss, %dx = mpc.value_and_grad @forward(%x) seed(%dy) {wrt = array<i64: 0>}
      : (tensor<2x5xf32>, tensor<2x1xf32>) -> (tensor<2x1xf32>, tensor<2x5xf32>)
  return %dx : tensor<2x5xf32>
}

// -----

// Prediction and target share the gradient of mse where they have one type. Of two types each has its own: the f32 one
// is not rounded to f16.
// CHECK-LABEL: func @types_of_mse(
// CHECK-DAG: %[[LOW:.*]] = mpc.mse_grad {{.*}} -> tensor<4xf16>
// CHECK-DAG: %[[WIDE:.*]] = mpc.mse_grad {{.*}} -> tensor<4xf32>
// CHECK: %[[MINUS:.*]] = mpc.neg %[[WIDE]]
// CHECK: return %[[LOW]], %[[MINUS]]
func.func private @forward(%x: tensor<4xf16>, %target: tensor<4xf32>) -> tensor<f32> {
  %loss = mpc.mse %x, %target : (tensor<4xf16>, tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
func.func @types_of_mse(%x: tensor<4xf16>, %target: tensor<4xf32>, %seed: tensor<f32>)
    -> (tensor<4xf16>, tensor<4xf32>) {
  %loss, %dx, %dt = mpc.value_and_grad @forward(%x, %target) seed(%seed) {wrt = array<i64: 0, 1>}
      : (tensor<4xf16>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf16>, tensor<4xf32>)
  return %dx, %dt : tensor<4xf16>, tensor<4xf32>
}

// -----

// Dropout draws its mask again on the cotangent: same seed, step, call site.
// CHECK-LABEL: func @dropout(
// CHECK-SAME: %[[X:.*]]: tensor<8xf32>, %[[SEED:.*]]: tensor<i64>, %[[STEP:.*]]: tensor<i32>, %[[DY:.*]]: tensor<8xf32>)
// CHECK: %[[DX:.*]] = mpc.dropout %[[DY]], %[[SEED]], %[[STEP]] {call_site = 3, p = 2.500000e-01} backward :
// CHECK: return %[[DX]]
func.func private @forward(%x: tensor<8xf32>, %seed: tensor<i64>, %step: tensor<i32>) -> tensor<8xf32> {
  %y = mpc.dropout %x, %seed, %step {call_site = 3, p = 0.25}
      : (tensor<8xf32>, tensor<i64>, tensor<i32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}
func.func @dropout(%x: tensor<8xf32>, %seed: tensor<i64>, %step: tensor<i32>, %dy: tensor<8xf32>) -> tensor<8xf32> {
  %loss, %dx = mpc.value_and_grad @forward(%x, %seed, %step) seed(%dy) {wrt = array<i64: 0>}
      : (tensor<8xf32>, tensor<i64>, tensor<i32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %dx : tensor<8xf32>
}
