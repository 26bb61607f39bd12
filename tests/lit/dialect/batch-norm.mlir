// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s

// Batch normalisation: training, inference, their gradients, and what passes write.

// CHECK-LABEL: func @batch_norm_train(
// CHECK: mpc.batch_norm_train %{{.*}}, %{{.*}}, %{{.*}} {epsilon = 1.000000e-03} : (tensor<2x6x8x8xf16>, tensor<6xf32>, tensor<6xf32>) -> (tensor<2x6x8x8xf16>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
func.func @batch_norm_train(%0: tensor<2x6x8x8xf16>, %1: tensor<6xf32>, %2: tensor<6xf32>) -> (tensor<2x6x8x8xf16>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %r0, %r1, %r2, %r3 = mpc.batch_norm_train %0, %1, %2 {epsilon = 1.000000e-03}
      : (tensor<2x6x8x8xf16>, tensor<6xf32>, tensor<6xf32>) -> (tensor<2x6x8x8xf16>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>)
  return %r0, %r1, %r2, %r3 : tensor<2x6x8x8xf16>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>
}

// CHECK-LABEL: func @batch_norm_train_grad(
// CHECK: mpc.batch_norm_train_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<2x6x8x8xf16>, tensor<2x6x8x8xf16>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<2x6x8x8xf16>, tensor<6xf32>, tensor<6xf32>)
func.func @batch_norm_train_grad(%0: tensor<2x6x8x8xf16>, %1: tensor<2x6x8x8xf16>, %2: tensor<6xf32>, %3: tensor<6xf32>, %4: tensor<6xf32>) -> (tensor<2x6x8x8xf16>, tensor<6xf32>, tensor<6xf32>) {
  %r0, %r1, %r2 = mpc.batch_norm_train_grad %0, %1, %2, %3, %4
      : (tensor<2x6x8x8xf16>, tensor<2x6x8x8xf16>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<2x6x8x8xf16>, tensor<6xf32>, tensor<6xf32>)
  return %r0, %r1, %r2 : tensor<2x6x8x8xf16>, tensor<6xf32>, tensor<6xf32>
}

// CHECK-LABEL: func @batch_norm_apply(
// CHECK: mpc.batch_norm_apply %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {data_format = NHWC} : (tensor<2x8x8x6xf16>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x8x8x6xf16>
func.func @batch_norm_apply(%0: tensor<2x8x8x6xf16>, %1: tensor<6xf32>, %2: tensor<6xf32>, %3: tensor<6xf32>, %4: tensor<6xf32>) -> tensor<2x8x8x6xf16> {
  %r0 = mpc.batch_norm_apply %0, %1, %2, %3, %4 {data_format = NHWC}
      : (tensor<2x8x8x6xf16>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> tensor<2x8x8x6xf16>
  return %r0 : tensor<2x8x8x6xf16>
}

// CHECK-LABEL: func @batch_norm_infer(
// CHECK: mpc.batch_norm_infer %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<8x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<8x5xf32>
func.func @batch_norm_infer(%0: tensor<8x5xf32>, %1: tensor<5xf32>, %2: tensor<5xf32>, %3: tensor<5xf32>, %4: tensor<5xf32>) -> tensor<8x5xf32> {
  %r0 = mpc.batch_norm_infer %0, %1, %2, %3, %4
      : (tensor<8x5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<5xf32>) -> tensor<8x5xf32>
  return %r0 : tensor<8x5xf32>
}

// CHECK-LABEL: func @batch_norm_infer_grad(
// CHECK: mpc.batch_norm_infer_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {data_format = NHWC} : (tensor<2x8x8x6xf32>, tensor<2x8x8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<2x8x8x6xf32>, tensor<6xf32>, tensor<6xf32>)
func.func @batch_norm_infer_grad(%0: tensor<2x8x8x6xf32>, %1: tensor<2x8x8x6xf32>, %2: tensor<6xf32>, %3: tensor<6xf32>, %4: tensor<6xf32>) -> (tensor<2x8x8x6xf32>, tensor<6xf32>, tensor<6xf32>) {
  %r0, %r1, %r2 = mpc.batch_norm_infer_grad %0, %1, %2, %3, %4 {data_format = NHWC}
      : (tensor<2x8x8x6xf32>, tensor<2x8x8x6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<6xf32>) -> (tensor<2x8x8x6xf32>, tensor<6xf32>, tensor<6xf32>)
  return %r0, %r1, %r2 : tensor<2x8x8x6xf32>, tensor<6xf32>, tensor<6xf32>
}
