// RUN: mpc-opt %s --mpc-renormalize | FileCheck %s
// RUN: mpc-opt %s --mpc-renormalize > %t.once && mpc-opt %t.once --mpc-renormalize | diff %t.once -
// RUN: mpc-opt %s --pass-pipeline='builtin.module(func.func(mpc-renormalize,mpc-relu-mask,mpc-fusion))' | FileCheck %s --check-prefix=FUSED

// relu's derivative reads no image. The one that it read is kept for the convolution alone.
// CHECK-LABEL: func @relu(
// CHECK: %[[N:.*]], %[[MEAN:.*]], %{{.*}}, %[[INV:.*]] = mpc.batch_norm_train %arg0, %arg1, %arg2
// CHECK-NEXT: %[[Y:.*]] = mpc.relu %[[N]]
// CHECK: %[[AGAIN:.*]] = mpc.batch_norm_apply %arg0, %arg1, %arg2, %[[MEAN]], %[[INV]] {data_format = NHWC} backward in <"net/relu"> : (tensor<2x4x4x8xf16>, {{.*}}) -> tensor<2x4x4x8xf16>
// CHECK-NEXT: %[[DN:.*]] = mpc.relu_grad %arg3, %[[AGAIN]] backward
// CHECK-NEXT: mpc.batch_norm_train_grad %[[DN]], %arg0, %arg1, %[[MEAN]], %[[INV]]
// CHECK: return %[[Y]]
// One region has all of them, and no mask.
// FUSED-LABEL: func @relu(
// FUSED: mpc.fusion(%arg0, %arg1, %arg2, %arg3)
// FUSED: mpc.batch_norm_apply
// FUSED-NEXT: mpc.relu_grad
// FUSED-NEXT: mpc.batch_norm_train_grad
// FUSED-NEXT: mpc.yield
func.func @relu(%x: tensor<2x4x4x8xf16>, %gamma: tensor<8xf32>, %beta: tensor<8xf32>, %dy: tensor<2x4x4x8xf16>)
    -> (tensor<2x4x4x8xf16>, tensor<2x4x4x8xf16>, tensor<8xf32>, tensor<8xf32>) {
  %n, %mean, %variance, %inv_std = mpc.batch_norm_train %x, %gamma, %beta {data_format = NHWC} in <"net/bn"> : (tensor<2x4x4x8xf16>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4x4x8xf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %y = mpc.relu %n in <"net/relu"> : tensor<2x4x4x8xf16>
  %dn = mpc.relu_grad %dy, %y backward in <"net/relu"> : tensor<2x4x4x8xf16>
  %dx, %dgamma, %dbeta = mpc.batch_norm_train_grad %dn, %x, %gamma, %mean, %inv_std {data_format = NHWC} backward in <"net/bn"> : (tensor<2x4x4x8xf16>, tensor<2x4x4x8xf16>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<2x4x4x8xf16>, tensor<8xf32>, tensor<8xf32>)
  return %y, %dx, %dgamma, %dbeta : tensor<2x4x4x8xf16>, tensor<2x4x4x8xf16>, tensor<8xf32>, tensor<8xf32>
}

// A convolution has made the statistics.
// CHECK-LABEL: func @statistics(
// CHECK: %[[X:.*]], %[[MEAN:.*]], %{{.*}}, %[[INV:.*]] = mpc.conv2d_statistics
// CHECK-NEXT: %[[N:.*]] = mpc.batch_norm_apply %[[X]], %arg2, %arg3, %[[MEAN]], %[[INV]] {data_format = NHWC} :
// CHECK-NEXT: mpc.relu %[[N]]
// CHECK-NEXT: %[[AGAIN:.*]] = mpc.batch_norm_apply %[[X]], %arg2, %arg3, %[[MEAN]], %[[INV]] {data_format = NHWC} backward
// CHECK-NEXT: mpc.relu_grad %arg4, %[[AGAIN]]
func.func @statistics(%a: tensor<2x4x4x32xf16>, %w: tensor<32x32x1x1xf16>, %gamma: tensor<32xf32>, %beta: tensor<32xf32>, %dy: tensor<2x4x4x32xf16>)
    -> (tensor<2x4x4x32xf16>, tensor<2x4x4x32xf16>) {
  %x, %mean, %variance, %inv_std = mpc.conv2d_statistics %a, %w {data_format = NHWC} : (tensor<2x4x4x32xf16>, tensor<32x32x1x1xf16>) -> (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>)
  %n = mpc.batch_norm_apply %x, %gamma, %beta, %mean, %inv_std {data_format = NHWC} : (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>) -> tensor<2x4x4x32xf16>
  %y = mpc.relu %n : tensor<2x4x4x32xf16>
  %dn = mpc.relu_grad %dy, %y backward : tensor<2x4x4x32xf16>
  %dx, %dgamma, %dbeta = mpc.batch_norm_train_grad %dn, %x, %gamma, %mean, %inv_std {data_format = NHWC} backward : (tensor<2x4x4x32xf16>, tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>, tensor<32xf32>) -> (tensor<2x4x4x32xf16>, tensor<32xf32>, tensor<32xf32>)
  return %y, %dx : tensor<2x4x4x32xf16>, tensor<2x4x4x32xf16>
}

// Left alone: relu behind an addition, relu with a rounding of its own, relu of another norm, another activation.
// CHECK-LABEL: func @others(
// CHECK-NOT: mpc.batch_norm_apply
func.func @others(%x: tensor<16x8xf32>, %z: tensor<16x8xf32>, %gamma: tensor<8xf32>, %beta: tensor<8xf32>, %dy: tensor<16x8xf32>)
    -> (tensor<16x8xf32>, tensor<16x8xf16>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>) {
  %n, %mean, %variance, %inv_std = mpc.batch_norm_train %x, %gamma, %beta : (tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %o, %mean2, %variance2, %inv_std2 = mpc.batch_norm_train %z, %gamma, %beta : (tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  %s = mpc.add %n, %z : tensor<16x8xf32>
  %y = mpc.relu %s : tensor<16x8xf32>
  %r = mpc.relu %n : (tensor<16x8xf32>) -> tensor<16x8xf16>
  %d0 = mpc.relu_grad %dy, %y backward : tensor<16x8xf32>
  %d1 = mpc.relu_grad %dy, %r backward : (tensor<16x8xf32>, tensor<16x8xf16>) -> tensor<16x8xf32>
  %q = mpc.relu %o : tensor<16x8xf32>
  %d2 = mpc.relu_grad %dy, %q backward : tensor<16x8xf32>
  %d3 = mpc.silu_grad %dy, %n backward : tensor<16x8xf32>
  %a:3 = mpc.batch_norm_train_grad %d0, %x, %gamma, %mean, %inv_std backward : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %b:3 = mpc.batch_norm_train_grad %d1, %x, %gamma, %mean, %inv_std backward : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %c:3 = mpc.batch_norm_train_grad %d2, %x, %gamma, %mean, %inv_std backward : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>)
  %d:3 = mpc.batch_norm_train_grad %d3, %x, %gamma, %mean, %inv_std backward : (tensor<16x8xf32>, tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> (tensor<16x8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %y, %r, %a#0, %b#0, %c#0, %d#0 : tensor<16x8xf32>, tensor<16x8xf16>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>, tensor<16x8xf32>
}
