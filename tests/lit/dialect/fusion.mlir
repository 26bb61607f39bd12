// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --cse --canonicalize | FileCheck %s --check-prefix=CSE

// CHECK-LABEL: func @fusion(
// CHECK: %[[R:.*]]:2 = mpc.fusion(%arg0, %arg1) {
// CHECK-NEXT: ^bb0(%[[A:.*]]: tensor<32x84xf32>, %[[B:.*]]: tensor<84xf32>):
// CHECK-NEXT:   %[[S:.*]] = mpc.add %[[A]], %[[B]] : (tensor<32x84xf32>, tensor<84xf32>) -> tensor<32x84xf32>
// CHECK-NEXT:   %[[T:.*]] = mpc.relu %[[S]] : tensor<32x84xf32>
// CHECK-NEXT:   mpc.yield %[[T]], %[[S]] : tensor<32x84xf32>, tensor<32x84xf32>
// CHECK-NEXT: } : (tensor<32x84xf32>, tensor<84xf32>) -> (tensor<32x84xf32>, tensor<32x84xf32>)
// CHECK-NEXT: return %[[R]]#0, %[[R]]#1
func.func @fusion(%x: tensor<32x84xf32>, %bias: tensor<84xf32>) -> (tensor<32x84xf32>, tensor<32x84xf32>) {
  %y, %r = mpc.fusion(%x, %bias) {
  ^bb0(%a: tensor<32x84xf32>, %b: tensor<84xf32>):
    %s = mpc.add %a, %b : (tensor<32x84xf32>, tensor<84xf32>) -> tensor<32x84xf32>
    %t = mpc.relu %s : tensor<32x84xf32>
    mpc.yield %t, %s : tensor<32x84xf32>, tensor<32x84xf32>
  } : (tensor<32x84xf32>, tensor<84xf32>) -> (tensor<32x84xf32>, tensor<32x84xf32>)
  return %y, %r : tensor<32x84xf32>, tensor<32x84xf32>
}

// Attributes of the region, reshapes and reductions inside.
// CHECK-LABEL: func @attributes(
// CHECK: mpc.reshape
// CHECK: mpc.reduce_sum
// CHECK: } {mpc.fusion_choice = {bytes_saved = 8 : i64, left_out = []}, mpc.scope = #mpc.scope<"net">}
func.func @attributes(%x: tensor<2x4x8xf32>) -> tensor<8xf32> {
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<2x4x8xf32>):
    %s = mpc.neg %a : tensor<2x4x8xf32>
    %t = mpc.reshape %s {shape = [8, 8]} : (tensor<2x4x8xf32>) -> tensor<8x8xf32>
    %u = mpc.reduce_sum %t {axes = [0]} : (tensor<8x8xf32>) -> tensor<8xf32>
    mpc.yield %u : tensor<8xf32>
  } {mpc.fusion_choice = {bytes_saved = 8 : i64, left_out = []}, mpc.scope = #mpc.scope<"net">}
      : (tensor<2x4x8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// A region computes: it is dead where nothing reads it, and equal ones are one.
// CSE-LABEL: func @pure(
// CSE: mpc.fusion
// CSE-NOT: mpc.fusion
func.func @pure(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf32>):
    %s = mpc.neg %a : tensor<4xf32>
    mpc.yield %s : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  %1 = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf32>):
    %s = mpc.neg %a : tensor<4xf32>
    mpc.yield %s : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  %2 = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf32>):
    %s = mpc.abs %a : tensor<4xf32>
    mpc.yield %s : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}
