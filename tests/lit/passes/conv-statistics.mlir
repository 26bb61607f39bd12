// RUN: mpc-opt %s --mpc-conv-statistics | FileCheck %s
// RUN: mpc-opt %s --mpc-conv-statistics > %t.once && mpc-opt %t.once --mpc-conv-statistics | diff %t.once -
// RUN: mpc-opt %s --pass-pipeline='builtin.module(mpc-step-pipeline{conv-statistics=true})' | FileCheck %s --check-prefix=PIPELINE
// RUN: mpc-opt %s --pass-pipeline='builtin.module(mpc-step-pipeline)' | FileCheck %s --check-prefix=WITHOUT

// PIPELINE: mpc.conv2d_statistics
// WITHOUT-NOT: mpc.conv2d_statistics

// The derivative and the running statistics read what the convolution gives; scopes stay with their operations.
// CHECK-LABEL: func @norm(
// CHECK: %[[Y:.*]], %[[MEAN:.*]], %[[VARIANCE:.*]], %[[INV:.*]] = mpc.conv2d_statistics %arg0, %arg1 {data_format = NHWC, epsilon = 1.000000e-03, pad_mode = same, strides = [2, 2]} in <"net/conv"> : (tensor<2x8x8x32xf16>, tensor<40x32x3x3xf16>) -> (tensor<2x4x4x40xf16>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>)
// CHECK-NEXT: %[[N:.*]] = mpc.batch_norm_apply %[[Y]], %arg2, %arg3, %[[MEAN]], %[[INV]] {data_format = NHWC} in <"net/bn"> : {{.*}} -> tensor<2x4x4x40xf16>
// CHECK: mpc.batch_norm_running_update %arg5, %arg6, %[[MEAN]], %[[VARIANCE]]
// CHECK: mpc.batch_norm_train_grad %arg4, %[[Y]], %arg2, %[[MEAN]], %[[INV]]
// CHECK-NOT: mpc.batch_norm_train %
func.func @norm(%x: tensor<2x8x8x32xf16>, %w: tensor<40x32x3x3xf16>, %gamma: tensor<40xf32>, %beta: tensor<40xf32>,
                %dn: tensor<2x4x4x40xf16>, %m: tensor<40xf32>, %v: tensor<40xf32>)
    -> (tensor<2x4x4x40xf16>, tensor<40xf32>, tensor<40xf32>, tensor<2x4x4x40xf16>) {
  %y = mpc.conv2d %x, %w {strides = [2, 2], pad_mode = same, data_format = NHWC} in <"net/conv"> : (tensor<2x8x8x32xf16>, tensor<40x32x3x3xf16>) -> tensor<2x4x4x40xf16>
  %n, %mean, %variance, %inv_std = mpc.batch_norm_train %y, %gamma, %beta {epsilon = 1.0e-3, data_format = NHWC} in <"net/bn"> : (tensor<2x4x4x40xf16>, tensor<40xf32>, tensor<40xf32>) -> (tensor<2x4x4x40xf16>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>)
  %m2, %v2 = mpc.batch_norm_running_update %m, %v, %mean, %variance {count = 32} : (tensor<40xf32>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>) -> (tensor<40xf32>, tensor<40xf32>)
  %dx, %dgamma, %dbeta = mpc.batch_norm_train_grad %dn, %y, %gamma, %mean, %inv_std {data_format = NHWC} : (tensor<2x4x4x40xf16>, tensor<2x4x4x40xf16>, tensor<40xf32>, tensor<40xf32>, tensor<40xf32>) -> (tensor<2x4x4x40xf16>, tensor<40xf32>, tensor<40xf32>)
  return %n, %m2, %v2, %dx : tensor<2x4x4x40xf16>, tensor<40xf32>, tensor<40xf32>, tensor<2x4x4x40xf16>
}

// Two normalisations of one result: the first has the statistics, the second makes its own.
// CHECK-LABEL: func @twice(
// CHECK: %[[Y:.*]], %[[MEAN:.*]], %{{.*}}, %{{.*}} = mpc.conv2d_statistics
// CHECK-NEXT: mpc.batch_norm_apply %[[Y]]
// CHECK-NEXT: mpc.batch_norm_train %[[Y]]
func.func @twice(%x: tensor<2x4x4x32xf16>, %w: tensor<32x32x1x1xf16>, %g: tensor<32xf32>)
    -> (tensor<2x4x4x32xf16>, tensor<2x4x4x32xf16>) {
  %y = mpc.conv2d %x, %w {data_format = NHWC} : (tensor<2x4x4x32xf16>, tensor<32x32x1x1xf16>) -> tensor<2x4x4x32xf16>
  %a:4 = mpc.batch_norm_train %y, %g, %g {data_format = NHWC} : (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>) -> (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>)
  %b:4 = mpc.batch_norm_train %y, %g, %g {data_format = NHWC} : (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>) -> (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>)
  return %a#0, %b#0 : tensor<2x4x4x32xf16>, tensor<2x4x4x32xf16>
}

// Not taken: other types and layouts, a bias, an activation, groups, few or odd channels.
// CHECK-LABEL: func @bf16(
// CHECK: mpc.conv2d %
func.func @bf16(%x: tensor<2x4x4x32xbf16>, %w: tensor<32x32x1x1xbf16>, %g: tensor<32xf32>) -> tensor<2x4x4x32xbf16> {
  %y = mpc.conv2d %x, %w {data_format = NHWC} : (tensor<2x4x4x32xbf16>, tensor<32x32x1x1xbf16>) -> tensor<2x4x4x32xbf16>
  %a:4 = mpc.batch_norm_train %y, %g, %g {data_format = NHWC} : (tensor<2x4x4x32xbf16>, tensor<32xf32>, tensor<32xf32>) -> (tensor<2x4x4x32xbf16>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>)
  return %a#0 : tensor<2x4x4x32xbf16>
}

// CHECK-LABEL: func @planes(
// CHECK: mpc.conv2d %
func.func @planes(%x: tensor<2x32x4x4xf16>, %w: tensor<32x32x1x1xf16>, %g: tensor<32xf32>) -> tensor<2x32x4x4xf16> {
  %y = mpc.conv2d %x, %w : (tensor<2x32x4x4xf16>, tensor<32x32x1x1xf16>) -> tensor<2x32x4x4xf16>
  %a:4 = mpc.batch_norm_train %y, %g, %g : (tensor<2x32x4x4xf16>, tensor<32xf32>, tensor<32xf32>) -> (tensor<2x32x4x4xf16>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>)
  return %a#0 : tensor<2x32x4x4xf16>
}

// CHECK-LABEL: func @bias(
// CHECK: mpc.conv2d %
func.func @bias(%x: tensor<2x4x4x32xf16>, %w: tensor<32x32x1x1xf16>, %b: tensor<32xf16>, %g: tensor<32xf32>) -> tensor<2x4x4x32xf16> {
  %y = mpc.conv2d %x, %w, %b {data_format = NHWC} : (tensor<2x4x4x32xf16>, tensor<32x32x1x1xf16>, tensor<32xf16>) -> tensor<2x4x4x32xf16>
  %a:4 = mpc.batch_norm_train %y, %g, %g {data_format = NHWC} : (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>) -> (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>)
  return %a#0 : tensor<2x4x4x32xf16>
}

// CHECK-LABEL: func @activation(
// CHECK: mpc.conv2d %
func.func @activation(%x: tensor<2x4x4x32xf16>, %w: tensor<32x32x1x1xf16>, %g: tensor<32xf32>) -> tensor<2x4x4x32xf16> {
  %y = mpc.conv2d %x, %w {data_format = NHWC, activation = relu} : (tensor<2x4x4x32xf16>, tensor<32x32x1x1xf16>) -> tensor<2x4x4x32xf16>
  %a:4 = mpc.batch_norm_train %y, %g, %g {data_format = NHWC} : (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>) -> (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>)
  return %a#0 : tensor<2x4x4x32xf16>
}

// CHECK-LABEL: func @groups(
// CHECK: mpc.conv2d %
func.func @groups(%x: tensor<2x4x4x64xf16>, %w: tensor<64x32x1x1xf16>, %g: tensor<64xf32>) -> tensor<2x4x4x64xf16> {
  %y = mpc.conv2d %x, %w {data_format = NHWC, groups = 2} : (tensor<2x4x4x64xf16>, tensor<64x32x1x1xf16>) -> tensor<2x4x4x64xf16>
  %a:4 = mpc.batch_norm_train %y, %g, %g {data_format = NHWC} : (tensor<2x4x4x64xf16>, tensor<64xf32>, tensor<64xf32>) -> (tensor<2x4x4x64xf16>, tensor<64xf32>, tensor<64xf32>, tensor<64xf32>)
  return %a#0 : tensor<2x4x4x64xf16>
}

// CHECK-LABEL: func @few(
// CHECK: mpc.conv2d %
func.func @few(%x: tensor<2x4x4x16xf16>, %w: tensor<32x16x1x1xf16>, %g: tensor<32xf32>) -> tensor<2x4x4x32xf16> {
  %y = mpc.conv2d %x, %w {data_format = NHWC} : (tensor<2x4x4x16xf16>, tensor<32x16x1x1xf16>) -> tensor<2x4x4x32xf16>
  %a:4 = mpc.batch_norm_train %y, %g, %g {data_format = NHWC} : (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>) -> (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>)
  return %a#0 : tensor<2x4x4x32xf16>
}

// CHECK-LABEL: func @odd(
// CHECK: mpc.conv2d %
func.func @odd(%x: tensor<2x4x4x32xf16>, %w: tensor<36x32x1x1xf16>, %g: tensor<36xf32>) -> tensor<2x4x4x36xf16> {
  %y = mpc.conv2d %x, %w {data_format = NHWC} : (tensor<2x4x4x32xf16>, tensor<36x32x1x1xf16>) -> tensor<2x4x4x36xf16>
  %a:4 = mpc.batch_norm_train %y, %g, %g {data_format = NHWC} : (tensor<2x4x4x36xf16>, tensor<36xf32>, tensor<36xf32>) -> (tensor<2x4x4x36xf16>, tensor<36xf32>, tensor<36xf32>, tensor<36xf32>)
  return %a#0 : tensor<2x4x4x36xf16>
}

// Libraries compute no statistics without the result.
// CHECK-LABEL: func @statistics(
// CHECK: mpc.conv2d %
func.func @statistics(%x: tensor<2x4x4x32xf16>, %w: tensor<32x32x1x1xf16>, %g: tensor<32xf32>) -> tensor<32xf32> {
  %y = mpc.conv2d %x, %w {data_format = NHWC} : (tensor<2x4x4x32xf16>, tensor<32x32x1x1xf16>) -> tensor<2x4x4x32xf16>
  %a:4 = mpc.batch_norm_train %y, %g, %g {data_format = NHWC} : (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>) -> (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>)
  return %a#1 : tensor<32xf32>
}
