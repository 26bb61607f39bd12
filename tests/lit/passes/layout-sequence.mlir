// RUN: mpc-opt %s --mpc-layout | FileCheck %s
// RUN: mpc-opt %s --mpc-layout > %t.once && mpc-opt %t.once --mpc-layout | diff %t.once -

// Transposed convolution and group normalisation keep images channels-last between them.
// CHECK-LABEL: func @forward
// CHECK: mpc.transpose %{{.*}} {permutation = [0, 2, 3, 1]}
// CHECK-NOT: mpc.transpose
// CHECK: mpc.conv_transpose2d %{{.*}} {data_format = NHWC{{.*}} -> tensor<2x8x8x6xf16>
// CHECK-NOT: mpc.transpose
// CHECK: mpc.group_norm %{{.*}} {data_format = NHWC, groups = 2} {{.*}} -> (tensor<2x8x8x6xf16>, tensor<2x2xf32>, tensor<2x2xf32>)
// CHECK-NOT: mpc.transpose
// CHECK: mpc.relu
// CHECK: mpc.transpose %{{.*}} {permutation = [0, 3, 1, 2]}
func.func @forward(%x: tensor<2x4x4x4xf16>, %w: tensor<4x6x2x2xf16>, %g: tensor<6xf32>) -> tensor<2x6x8x8xf16> {
  %c = mpc.conv_transpose2d %x, %w {strides = [2, 2]} : (tensor<2x4x4x4xf16>, tensor<4x6x2x2xf16>) -> tensor<2x6x8x8xf16>
  %n, %m, %s = mpc.group_norm %c, %g, %g {groups = 2} : (tensor<2x6x8x8xf16>, tensor<6xf32>, tensor<6xf32>) -> (tensor<2x6x8x8xf16>, tensor<2x2xf32>, tensor<2x2xf32>)
  %r = mpc.relu %n : tensor<2x6x8x8xf16>
  return %r : tensor<2x6x8x8xf16>
}

// CHECK-LABEL: func @backward
// CHECK: %[[D:.*]] = mpc.transpose %{{.*}} {permutation = [0, 2, 3, 1]}
// CHECK: mpc.group_norm_grad %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {data_format = NHWC, groups = 2} {{.*}} -> (tensor<2x8x8x6xf32>, tensor<6xf32>, tensor<6xf32>)
func.func @backward(%dy: tensor<2x6x8x8xf32>, %x: tensor<2x6x8x8xf32>, %g: tensor<6xf32>, %m: tensor<2x2xf32>) -> (tensor<2x6x8x8xf32>, tensor<6xf32>) {
  %dx, %dg, %db = mpc.group_norm_grad %dy, %x, %g, %m, %m {groups = 2}
      : (tensor<2x6x8x8xf32>, tensor<2x6x8x8xf32>, tensor<6xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> (tensor<2x6x8x8xf32>, tensor<6xf32>, tensor<6xf32>)
  return %dx, %dg : tensor<2x6x8x8xf32>, tensor<6xf32>
}
