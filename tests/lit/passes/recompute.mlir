// RUN: mpc-opt %s --mpc-recompute 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: mpc-opt %s --mpc-recompute > %t.once && mpc-opt %t.once --mpc-recompute | diff %t.once -

#mlp = #mpc.scope<"net/mlp">
#fc1 = #mpc.scope<"net/mlp/fc1">
#fc2 = #mpc.scope<"net/mlp/fc2">

// REMARK: remark: recompute: net/mlp: 2 operations run again in the backward pass, 1024 bytes less are kept for it

// What the call reads (%x) and hands on (%z) stays; %h and %y are computed again before their first reader, once.
// CHECK-LABEL: func @keeps_inputs_and_outputs
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<4x8xf32>, %[[W1:[a-z0-9]+]]: tensor<8x32xf32>, %[[W2:[a-z0-9]+]]:
// CHECK: %[[H:.*]] = mpc.matmul %[[X]], %[[W1]]
// CHECK: %[[Y:.*]] = mpc.gelu %[[H]]
// CHECK: %[[Z:.*]] = mpc.matmul %[[Y]], %[[W2]]
// CHECK: %[[DY:.*]] = mpc.matmul %[[DZ:.*]], %[[W2]]
// CHECK: %[[H2:.*]] = mpc.matmul %[[X]], %[[W1]] {mpc.recomputed} backward in <"net/mlp/fc1">
// CHECK: %[[Y2:.*]] = mpc.gelu %[[H2]] {mpc.recomputed} backward in <"net/mlp">
// CHECK-NEXT: mpc.matmul %[[Y2]], %[[DZ]]
// CHECK-NOT: mpc.recomputed
// CHECK: mpc.gelu_grad %[[DY]], %[[H2]]
// CHECK: mpc.mul %[[Z]]
func.func @keeps_inputs_and_outputs(%x: tensor<4x8xf32>, %w1: tensor<8x32xf32>, %w2: tensor<32x8xf32>, %dz: tensor<4x8xf32>)
    -> (tensor<4x8xf32>, tensor<32x8xf32>, tensor<4x32xf32>, tensor<4x8xf32>) {
  %h = mpc.matmul %x, %w1 {mpc.recompute = 1 : i64} in #fc1 : (tensor<4x8xf32>, tensor<8x32xf32>) -> tensor<4x32xf32>
  %y = mpc.gelu %h {mpc.recompute = 1 : i64} in #mlp : tensor<4x32xf32>
  %z = mpc.matmul %y, %w2 {mpc.recompute = 1 : i64} in #fc2 : (tensor<4x32xf32>, tensor<32x8xf32>) -> tensor<4x8xf32>
  %dy = mpc.matmul %dz, %w2 {transpose_b = true} backward : (tensor<4x8xf32>, tensor<32x8xf32>) -> tensor<4x32xf32>
  %dw2 = mpc.matmul %y, %dz {transpose_a = true} backward : (tensor<4x32xf32>, tensor<4x8xf32>) -> tensor<32x8xf32>
  %dh = mpc.gelu_grad %dy, %h backward : tensor<4x32xf32>
  %dv = mpc.mul %z, %dz backward : tensor<4x8xf32>
  return %z, %dw2, %dh, %dv : tensor<4x8xf32>, tensor<32x8xf32>, tensor<4x32xf32>, tensor<4x8xf32>
}

// Two calls: each keeps its own input. A transpose that a pass has put behind a marked operation follows it.
// CHECK-LABEL: func @calls_follow_each_other
// CHECK: %[[A:.*]] = mpc.relu %{{.*}} {mpc.recompute = 1
// CHECK: %[[B:.*]] = mpc.exp %[[A]] {mpc.recompute = 2
// CHECK-NEXT: %[[C:.*]] = mpc.relu %[[B]]
// CHECK-NEXT: %[[B2:.*]] = mpc.exp %[[A]] {mpc.recomputed} backward :
// CHECK-NEXT: %[[T2:.*]] = mpc.transpose %[[B2]] {mpc.recomputed, permutation = [1, 0]} backward :
// CHECK-NEXT: mpc.mul %[[T2]]
// CHECK: mpc.mul %[[A]]
func.func @calls_follow_each_other(%x: tensor<4x8xf32>, %dt: tensor<8x4xf32>, %d: tensor<4x8xf32>)
    -> (tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>) {
  %a = mpc.relu %x {mpc.recompute = 1 : i64} : tensor<4x8xf32>
  %b = mpc.exp %a {mpc.recompute = 2 : i64} : tensor<4x8xf32>
  %t = mpc.transpose %b {permutation = [1, 0]} : (tensor<4x8xf32>) -> tensor<8x4xf32>
  %c = mpc.relu %b {mpc.recompute = 2 : i64} : tensor<4x8xf32>
  %dx = mpc.mul %t, %dt backward : tensor<8x4xf32>
  %da = mpc.mul %a, %d backward : tensor<4x8xf32>
  return %c, %dx, %da : tensor<4x8xf32>, tensor<8x4xf32>, tensor<4x8xf32>
}

// The same counter gives the same mask. Updates of state read the forward pass: statistics stay.
// CHECK-LABEL: func @random_and_state
// CHECK: mpc.dropout %{{.*}}, %[[SEED:.*]], %[[STEP:.*]] {call_site = 3, {{.*}}p = 5.000000e-01
// CHECK: %[[Y:.*]], %[[MEAN:.*]], %[[VAR:.*]], %[[INV:.*]] = mpc.batch_norm_train
// CHECK: mpc.dropout %{{.*}}, %[[SEED]], %[[STEP]] {call_site = 3, mpc.recomputed, p = 5.000000e-01} backward
// CHECK: mpc.batch_norm_running_update %{{.*}}, %{{.*}}, %[[MEAN]], %[[VAR]]
func.func @random_and_state(%x: tensor<4x2x3x3xf32>, %seed: tensor<i64>, %step: tensor<i32>, %g: tensor<2xf32>, %b: tensor<2xf32>,
    %m: tensor<2xf32>, %v: tensor<2xf32>, %dy: tensor<4x2x3x3xf32>) -> (tensor<4x2x3x3xf32>, tensor<4x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>) {
  %d = mpc.dropout %x, %seed, %step {call_site = 3, p = 0.5, mpc.recompute = 1 : i64}
      : (tensor<4x2x3x3xf32>, tensor<i64>, tensor<i32>) -> tensor<4x2x3x3xf32>
  %y, %mean, %var, %inv = mpc.batch_norm_train %d, %g, %b {mpc.recompute = 1 : i64}
      : (tensor<4x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<4x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>)
  %dd = mpc.mul %d, %dy backward : tensor<4x2x3x3xf32>
  %m2, %v2 = mpc.batch_norm_running_update %m, %v, %mean, %var {count = 36, momentum = 0.9}
      : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %y, %dd, %m2, %v2 : tensor<4x2x3x3xf32>, tensor<4x2x3x3xf32>, tensor<2xf32>, tensor<2xf32>
}

// State that an update writes over before the reader cannot be read again: %e is kept. %r is computed again.
// CHECK-LABEL: func @updated_state
// CHECK: %[[E:.*]] = mpc.exp
// CHECK: mpc.momentum
// CHECK-NEXT: %[[R2:.*]] = mpc.relu %{{.*}} {mpc.recomputed} backward
// CHECK-NEXT: mpc.mul %[[E]], %[[R2]]
func.func @updated_state(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                         %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "v">}, %d: tensor<4xf32>, %rate: tensor<f32>)
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<4xf32> {mpc.state = #mpc.state<slot, "v">},
        tensor<4xf32>) attributes {mpc.step} {
  %e = mpc.exp %w {mpc.recompute = 1 : i64} : tensor<4xf32>
  %r = mpc.relu %d {mpc.recompute = 1 : i64} : tensor<4xf32>
  %w1, %v1 = mpc.momentum %w, %v, %d, %rate
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %dx = mpc.mul %e, %r backward : tensor<4xf32>
  return %w1, %v1, %dx : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What a call does besides its results would happen twice.
// CHECK-LABEL: func @effects
// CHECK: %[[Y:.*]] = call @outside
// CHECK-NOT: call
// CHECK: mpc.mul %[[Y]]
func.func private @outside(tensor<4xf32>) -> tensor<4xf32>
func.func @effects(%x: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @outside(%x) {mpc.recompute = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %dx = mpc.mul %y, %d backward : tensor<4xf32>
  return %dx : tensor<4xf32>
}

// A region is copied whole; one with operations of another Cell is not.
// CHECK-LABEL: func @regions
// CHECK: mpc.fusion(%[[X:.*]]) {
// CHECK: mpc.recompute = 1
// CHECK: %[[Z:.*]] = mpc.fusion
// CHECK: mpc.fusion
// CHECK: mpc.fusion(%[[X]]) {
// CHECK: mpc.relu %{{.*}} {mpc.recomputed} backward :
// CHECK: mpc.mul %{{.*}}, %[[DX:.*]] backward :
// CHECK: mpc.mul %[[Z]]
func.func @regions(%x: tensor<4x8xf32>, %d: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<4x8xf32>):
    %r = mpc.relu %a {mpc.recompute = 1 : i64} : tensor<4x8xf32>
    %e = mpc.exp %r {mpc.recompute = 1 : i64} : tensor<4x8xf32>
    mpc.yield %e : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %z = mpc.fusion(%y) {
  ^bb0(%a: tensor<4x8xf32>):
    %r = mpc.relu %a {mpc.recompute = 1 : i64} : tensor<4x8xf32>
    mpc.yield %r : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %u = mpc.fusion(%z) {
  ^bb0(%a: tensor<4x8xf32>):
    %r = mpc.exp %a {mpc.recompute = 1 : i64} : tensor<4x8xf32>
    %e = mpc.relu %r : tensor<4x8xf32>
    mpc.yield %e : tensor<4x8xf32>
  } : (tensor<4x8xf32>) -> tensor<4x8xf32>
  %dy = mpc.mul %y, %d backward : tensor<4x8xf32>
  %dz = mpc.mul %z, %d backward : tensor<4x8xf32>
  return %u, %dy, %dz : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// A region of both passes reads %a for a result of the forward pass: it is there anyway. %b goes to the backward pass
// alone, by way of a forward operation: it is computed again. What the region computes for both is kept.
// CHECK-LABEL: func @region_of_both(
// CHECK: %[[A:.*]] = mpc.gelu
// CHECK-NOT: mpc.gelu
// CHECK: %[[B:.*]] = mpc.exp %{{.*}} {mpc.recomputed} backward :
// CHECK: %[[Z:.*]]:2 = mpc.fusion(%[[A]], %[[B]], %{{.*}})
// CHECK-NOT: mpc.fusion
// CHECK: mpc.mul %[[Z]]#0
func.func @region_of_both(%x: tensor<4x8xf32>, %d: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %a = mpc.gelu %x {mpc.recompute = 1 : i64} : tensor<4x8xf32>
  %b = mpc.exp %x {mpc.recompute = 1 : i64} : tensor<4x8xf32>
  %z:2 = mpc.fusion(%a, %b, %d) {
  ^bb0(%p: tensor<4x8xf32>, %q: tensor<4x8xf32>, %r: tensor<4x8xf32>):
    %s = mpc.relu %p {mpc.recompute = 1 : i64} : tensor<4x8xf32>
    %t = mpc.neg %q {mpc.recompute = 1 : i64} : tensor<4x8xf32>
    %u = mpc.mul %t, %r backward : tensor<4x8xf32>
    %v = mpc.add %u, %p backward : tensor<4x8xf32>
    mpc.yield %s, %v : tensor<4x8xf32>, tensor<4x8xf32>
  } : (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>)
  %dz = mpc.mul %z#0, %d backward : tensor<4x8xf32>
  return %z#0, %z#1, %dz : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
