// RUN: mpc-opt %s --cse --canonicalize | FileCheck %s
// RUN: mpc-opt %s --mpc-cast-cleanup | FileCheck %s
// RUN: mpc-opt %s --mpc-schedule | FileCheck %s --check-prefixes=CHECK,SCHEDULE
// RUN: mpc-opt %s --mpc-fusion | FileCheck %s --check-prefixes=CHECK,FUSION
// RUN: mpc-opt %s --mpc-recompute 2>/dev/null | FileCheck %s --check-prefixes=CHECK,RECOMPUTE
// RUN: mpc-opt %s --mpc-check-program | FileCheck %s

// What passes make of a sum that other operations run beside.

// Equal sums are not merged, and one that nothing reads is not dropped.
// CHECK-LABEL: func @kept
// CHECK-NEXT: %[[A:.*]] = mpc.all_reduce_start
// CHECK-NEXT: %[[B:.*]] = mpc.all_reduce_start
// CHECK-NEXT: mpc.all_reduce_wait %[[A]]
// CHECK-NEXT: %[[SUM:.*]] = mpc.all_reduce_wait %[[B]]
// CHECK-NEXT: return %[[SUM]]
func.func @kept(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = mpc.all_reduce_start %x : tensor<4xf32>
  %b = mpc.all_reduce_start %x : tensor<4xf32>
  %unread = mpc.all_reduce_wait %a : tensor<4xf32>
  %sum = mpc.all_reduce_wait %b : tensor<4xf32>
  return %sum : tensor<4xf32>
}

// The peak would be lower with the start behind the exponentials: it does not move.
// CHECK-LABEL: func @not_moved
// SCHEDULE: mpc.neg
// SCHEDULE-NEXT: mpc.all_reduce_start
// SCHEDULE-NEXT: mpc.exp
// SCHEDULE-NEXT: mpc.exp
func.func @not_moved(%w: tensor<64x64xf32> {mpc.state = #mpc.state<parameter, "w">},
                     %b: tensor<64xf32> {mpc.state = #mpc.state<parameter, "b">},
                     %v: tensor<64xf32> {mpc.state = #mpc.state<slot, "v", of = "b">}, %rate: tensor<f32>)
    -> (tensor<64xf32> {mpc.state = #mpc.state<parameter, "b">}, tensor<64xf32> {mpc.state = #mpc.state<slot, "v">},
        tensor<64x64xf32>) attributes {mpc.step} {
  %a = mpc.neg %w : tensor<64x64xf32>
  %started = mpc.all_reduce_start %a : tensor<64x64xf32>
  %l = mpc.exp %a : tensor<64x64xf32>
  %m = mpc.exp %l : tensor<64x64xf32>
  %g = mpc.reduce_sum %m {axes = [0]} : (tensor<64x64xf32>) -> tensor<64xf32>
  %b1, %v1 = mpc.momentum %b, %v, %g, %rate
      : (tensor<64xf32>, tensor<64xf32>, tensor<64xf32>, tensor<f32>) -> (tensor<64xf32>, tensor<64xf32>)
  %sum = mpc.all_reduce_wait %started : tensor<64x64xf32>
  return %b1, %v1, %sum : tensor<64xf32>, tensor<64xf32>, tensor<64x64xf32>
}

// A region may hold a view of the sum, but not the wait. What the sum is made of stays in front of the start.
// CHECK-LABEL: func @outside_regions
// FUSION: %[[E:.*]] = mpc.exp
// FUSION-NEXT: %[[STARTED:.*]] = mpc.all_reduce_start %[[E]]
// FUSION-NEXT: %[[SUM:.*]] = mpc.all_reduce_wait %[[STARTED]]
// FUSION-NEXT: mpc.fusion(%[[E]], %[[SUM]]) {
// FUSION-NOT: mpc.all_reduce
// FUSION: mpc.reshape
// FUSION: return
func.func @outside_regions(%x: tensor<8x16xf32>) -> tensor<128xf32> {
  %e = mpc.exp %x : tensor<8x16xf32>
  %started = mpc.all_reduce_start %e : tensor<8x16xf32>
  %sum = mpc.all_reduce_wait %started : tensor<8x16xf32>
  %flat = mpc.reshape %sum {shape = [128]} : (tensor<8x16xf32>) -> tensor<128xf32>
  %p = mpc.mul %e, %sum : tensor<8x16xf32>
  %q = mpc.reshape %p {shape = [128]} : (tensor<8x16xf32>) -> tensor<128xf32>
  %y = mpc.add %q, %flat : tensor<128xf32>
  return %y : tensor<128xf32>
}

// The call computes again what it makes of the sum, but no sum.
// CHECK-LABEL: func @not_copied
// RECOMPUTE: mpc.all_reduce_start
// RECOMPUTE-NEXT: %[[SUM:.*]] = mpc.all_reduce_wait
// RECOMPUTE-NOT: mpc.all_reduce
// RECOMPUTE: %[[E2:.*]] = mpc.exp %[[SUM]] {mpc.recomputed} backward
// RECOMPUTE-NEXT: mpc.mul %[[E2]]
// RECOMPUTE-NEXT: return
func.func @not_copied(%x: tensor<4xf32>, %d: tensor<4xf32>) -> tensor<4xf32> {
  %started = mpc.all_reduce_start %x {mpc.recompute = 1 : i64} : tensor<4xf32>
  %sum = mpc.all_reduce_wait %started {mpc.recompute = 1 : i64} : tensor<4xf32>
  %e = mpc.exp %sum {mpc.recompute = 1 : i64} : tensor<4xf32>
  %dx = mpc.mul %e, %d backward : tensor<4xf32>
  return %dx : tensor<4xf32>
}
