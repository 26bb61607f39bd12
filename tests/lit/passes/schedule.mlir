// RUN: mpc-opt %s --mpc-schedule | FileCheck %s
// RUN: mpc-opt %s --mpc-schedule > %t.once && mpc-opt %t.once --mpc-schedule | diff %t.once -

// What is widened is widened where it is read, behind the peak.
// CHECK-LABEL: func @casts_wait
// CHECK: mpc.broadcast_to
// CHECK-NEXT: mpc.reduce_sum
// CHECK-NEXT: mpc.cast
// CHECK-NEXT: mpc.add
func.func @casts_wait(%x: tensor<64xf16>, %s: tensor<64xf32>) -> tensor<64xf32> {
  %a = mpc.cast %x : (tensor<64xf16>) -> tensor<64xf32>
  %l = mpc.broadcast_to %s {shape = [64, 64]} : (tensor<64xf32>) -> tensor<64x64xf32>
  %r = mpc.reduce_sum %l {axes = [0]} : (tensor<64x64xf32>) -> tensor<64xf32>
  %y = mpc.add %a, %r : tensor<64xf32>
  return %y : tensor<64xf32>
}

// What frees more than it makes goes first.
// CHECK-LABEL: func @reductions_go_first
// CHECK: %[[A:.*]] = mpc.exp
// CHECK-NEXT: %[[RA:.*]] = mpc.reduce_sum %[[A]]
// CHECK-NEXT: %[[B:.*]] = mpc.exp
// CHECK-NEXT: mpc.reduce_sum %[[B]]
func.func @reductions_go_first(%x: tensor<64x64xf32> {mpc.state = #mpc.state<parameter, "x">}) -> tensor<64xf32> attributes {mpc.step} {
  %a = mpc.exp %x : tensor<64x64xf32>
  %b = mpc.exp %x : tensor<64x64xf32>
  %ra = mpc.reduce_sum %a {axes = [0]} : (tensor<64x64xf32>) -> tensor<64xf32>
  %rb = mpc.reduce_sum %b {axes = [0]} : (tensor<64x64xf32>) -> tensor<64xf32>
  %y = mpc.add %ra, %rb : tensor<64xf32>
  return %y : tensor<64xf32>
}

// Nothing passes an update of state: %old is read before.
// CHECK-LABEL: func @updates_stay
// CHECK: mpc.exp
// CHECK-NEXT: mpc.increment
// CHECK-NEXT: mpc.reduce_sum
func.func @updates_stay(%x: tensor<64x64xf32>, %n: tensor<i32> {mpc.state = #mpc.state<step, "n">})
    -> (tensor<64xf32>, tensor<i32> {mpc.state = #mpc.state<step, "n">}) attributes {mpc.step} {
  %a = mpc.exp %x : tensor<64x64xf32>
  %m = mpc.increment %n : tensor<i32>
  %r = mpc.reduce_sum %a {axes = [0]} : (tensor<64x64xf32>) -> tensor<64xf32>
  return %r, %m : tensor<64xf32>, tensor<i32>
}

// An order that no move betters stays as it is.
// CHECK-LABEL: func @stays
// CHECK: mpc.exp
// CHECK-NEXT: mpc.relu
// CHECK-NEXT: mpc.add
func.func @stays(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = mpc.exp %x : tensor<4xf32>
  %b = mpc.relu %x : tensor<4xf32>
  %y = mpc.add %a, %b : tensor<4xf32>
  return %y : tensor<4xf32>
}

// No kernel is made for what nothing reads: @dead of lowering.mlir in tests/lit/robustness.
// CHECK-LABEL: func @dead
// CHECK: mpc.batch_matmul
func.func @dead(%x: tensor<2x4x4xf32>) -> tensor<2x4x4xf32> {
  %y = mpc.batch_matmul %x, %x : tensor<2x4x4xf32>
  return %x : tensor<2x4x4xf32>
}
