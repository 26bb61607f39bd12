// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s

// Arithmetic of integers.

// CHECK-LABEL: func @int_add(
// CHECK: mpc.int_add %{{.*}}, %{{.*}} : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
func.func @int_add(%0: tensor<2x3xi32>, %1: tensor<3xi32>) -> tensor<2x3xi32> {
  %r0 = mpc.int_add %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  return %r0 : tensor<2x3xi32>
}

// CHECK-LABEL: func @int_sub(
// CHECK: mpc.int_sub %{{.*}}, %{{.*}} : (tensor<2x3xi64>, tensor<3xi64>) -> tensor<2x3xi64>
func.func @int_sub(%0: tensor<2x3xi64>, %1: tensor<3xi64>) -> tensor<2x3xi64> {
  %r0 = mpc.int_sub %0, %1 : (tensor<2x3xi64>, tensor<3xi64>) -> tensor<2x3xi64>
  return %r0 : tensor<2x3xi64>
}

// CHECK-LABEL: func @int_mul(
// CHECK: mpc.int_mul %{{.*}}, %{{.*}} : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
func.func @int_mul(%0: tensor<2x3xi32>, %1: tensor<3xi32>) -> tensor<2x3xi32> {
  %r0 = mpc.int_mul %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  return %r0 : tensor<2x3xi32>
}

// CHECK-LABEL: func @int_floor_div(
// CHECK: mpc.int_floor_div %{{.*}}, %{{.*}} : (tensor<2x3xi64>, tensor<3xi64>) -> tensor<2x3xi64>
func.func @int_floor_div(%0: tensor<2x3xi64>, %1: tensor<3xi64>) -> tensor<2x3xi64> {
  %r0 = mpc.int_floor_div %0, %1 : (tensor<2x3xi64>, tensor<3xi64>) -> tensor<2x3xi64>
  return %r0 : tensor<2x3xi64>
}

// CHECK-LABEL: func @int_mod(
// CHECK: mpc.int_mod %{{.*}}, %{{.*}} : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
func.func @int_mod(%0: tensor<2x3xi32>, %1: tensor<3xi32>) -> tensor<2x3xi32> {
  %r0 = mpc.int_mod %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  return %r0 : tensor<2x3xi32>
}

// CHECK-LABEL: func @int_maximum(
// CHECK: mpc.int_maximum %{{.*}}, %{{.*}} : (tensor<2x3xi64>, tensor<3xi64>) -> tensor<2x3xi64>
func.func @int_maximum(%0: tensor<2x3xi64>, %1: tensor<3xi64>) -> tensor<2x3xi64> {
  %r0 = mpc.int_maximum %0, %1 : (tensor<2x3xi64>, tensor<3xi64>) -> tensor<2x3xi64>
  return %r0 : tensor<2x3xi64>
}

// CHECK-LABEL: func @int_minimum(
// CHECK: mpc.int_minimum %{{.*}}, %{{.*}} : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
func.func @int_minimum(%0: tensor<2x3xi32>, %1: tensor<3xi32>) -> tensor<2x3xi32> {
  %r0 = mpc.int_minimum %0, %1 : (tensor<2x3xi32>, tensor<3xi32>) -> tensor<2x3xi32>
  return %r0 : tensor<2x3xi32>
}

// CHECK-LABEL: func @int_neg(
// CHECK: mpc.int_neg %{{.*}} : tensor<2x3xi32>
func.func @int_neg(%0: tensor<2x3xi32>) -> tensor<2x3xi32> {
  %r0 = mpc.int_neg %0 : tensor<2x3xi32>
  return %r0 : tensor<2x3xi32>
}

// CHECK-LABEL: func @int_abs(
// CHECK: mpc.int_abs %{{.*}} : tensor<2x3xi64>
func.func @int_abs(%0: tensor<2x3xi64>) -> tensor<2x3xi64> {
  %r0 = mpc.int_abs %0 : tensor<2x3xi64>
  return %r0 : tensor<2x3xi64>
}
