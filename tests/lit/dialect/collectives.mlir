// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s

// What processes that train together compute of the values of each other.

// CHECK-LABEL: func @all_reduce(
// CHECK: mpc.all_reduce %{{.*}} : tensor<4xf16>
func.func @all_reduce(%0: tensor<4xf16>) -> tensor<4xf16> {
  %r0 = mpc.all_reduce %0 : tensor<4xf16>
  return %r0 : tensor<4xf16>
}

// CHECK-LABEL: func @all_reduce_of_processes(
// CHECK: mpc.all_reduce %{{.*}} {processes = 4} : tensor<4xf32>
func.func @all_reduce_of_processes(%0: tensor<4xf32>) -> tensor<4xf32> {
  %r0 = mpc.all_reduce %0 {processes = 4} : tensor<4xf32>
  return %r0 : tensor<4xf32>
}

// CHECK-LABEL: func @all_reduce_max(
// CHECK: mpc.all_reduce_max %{{.*}} {processes = 2} : tensor<i32>
func.func @all_reduce_max(%0: tensor<i32>) -> tensor<i32> {
  %r0 = mpc.all_reduce_max %0 {processes = 2} : tensor<i32>
  return %r0 : tensor<i32>
}

// CHECK-LABEL: func @all_gather(
// CHECK: mpc.all_gather %{{.*}} {processes = 2} : (tensor<4x3xf32>) -> tensor<2x4x3xf32>
func.func @all_gather(%0: tensor<4x3xf32>) -> tensor<2x4x3xf32> {
  %r0 = mpc.all_gather %0 {processes = 2} : (tensor<4x3xf32>) -> tensor<2x4x3xf32>
  return %r0 : tensor<2x4x3xf32>
}

// CHECK-LABEL: func @process_rank(
// CHECK: mpc.process_rank {processes = 8} : () -> tensor<i32>
func.func @process_rank() -> tensor<i32> {
  %r0 = mpc.process_rank {processes = 8} : () -> tensor<i32>
  return %r0 : tensor<i32>
}

// CHECK-LABEL: func @all_reduce_start(
// CHECK: %[[STARTED:.*]] = mpc.all_reduce_start %{{.*}} : tensor<4xf16>
// CHECK-NEXT: mpc.all_reduce_wait %[[STARTED]] : tensor<4xf16>
func.func @all_reduce_start(%0: tensor<4xf16>) -> tensor<4xf16> {
  %started = mpc.all_reduce_start %0 : tensor<4xf16>
  %r0 = mpc.all_reduce_wait %started : tensor<4xf16>
  return %r0 : tensor<4xf16>
}
