// RUN: mpc-opt %s --mpc-layout | FileCheck %s
// RUN: mpc-opt %s --mpc-layout > %t.once && mpc-opt %t.once --mpc-layout | diff %t.once -

// Transposes stand at the borders: none for one channel, none between convolution, bias, relu and pool.
// CHECK-LABEL: func @forward
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x1x8x8xf16>
// CHECK: %[[B:.*]] = mpc.reshape %{{.*}} -> tensor<1x1x1x3xf16>
// CHECK: %[[XL:.*]] = mpc.reshape %[[X]] {{.*}} -> tensor<2x8x8x1xf16>
// CHECK: %[[C:.*]] = mpc.conv2d %[[XL]], %{{.*}} {data_format = NHWC{{.*}} -> tensor<2x6x6x3xf16>
// CHECK: %[[A:.*]] = mpc.add %[[C]], %[[B]] {{.*}} -> tensor<2x6x6x3xf16>
// CHECK: %[[R:.*]] = mpc.relu %[[A]]
// CHECK: %[[P:.*]], %[[I:.*]] = mpc.max_pool2d %[[R]] {data_format = NHWC{{.*}} -> (tensor<2x3x3x3xf16>, tensor<2x3x3x3xi8>)
// CHECK: %[[T:.*]] = mpc.transpose %[[P]] {permutation = [0, 3, 1, 2]}
// CHECK-NOT: mpc.transpose
// CHECK: mpc.reshape %[[T]] {{.*}} -> tensor<2x27xf16>
func.func @forward(%x: tensor<2x1x8x8xf16>, %w: tensor<3x1x3x3xf16>, %b: tensor<3x1x1xf16>) -> tensor<2x27xf16> {
  %c = mpc.conv2d %x, %w : (tensor<2x1x8x8xf16>, tensor<3x1x3x3xf16>) -> tensor<2x3x6x6xf16>
  %a = mpc.add %c, %b : (tensor<2x3x6x6xf16>, tensor<3x1x1xf16>) -> tensor<2x3x6x6xf16>
  %r = mpc.relu %a : tensor<2x3x6x6xf16>
  %p, %i = mpc.max_pool2d %r {kernel_size = [2, 2], strides = [2, 2]}
      : (tensor<2x3x6x6xf16>) -> (tensor<2x3x3x3xf16>, tensor<2x3x3x3xi8>)
  %f = mpc.reshape %p {shape = [2, 27]} : (tensor<2x3x3x3xf16>) -> tensor<2x27xf16>
  return %f : tensor<2x27xf16>
}

// Backward: one transpose where the flattened cotangent comes in.
// CHECK-LABEL: func @backward
// CHECK: %[[D:.*]] = mpc.reshape %{{.*}} -> tensor<2x3x3x3xf32>
// CHECK: %[[T:.*]] = mpc.transpose %[[D]] {permutation = [0, 2, 3, 1]}
// CHECK-NOT: mpc.transpose
// CHECK: mpc.max_pool2d_grad %[[T]], %{{.*}} {data_format = NHWC, input_shape = [2, 6, 6, 3]
// CHECK: mpc.relu_grad {{.*}} : tensor<2x6x6x3xf32>
// CHECK: mpc.reduce_sum %{{.*}} {axes = [0, 1, 2]} : (tensor<2x6x6x3xf32>) -> tensor<3xf32>
// CHECK: mpc.conv2d_grad_weight {{.*}}data_format = NHWC{{.*}} -> tensor<3x1x3x3xf32>
// CHECK: mpc.conv2d_grad_input {{.*}}data_format = NHWC, input_shape = [2, 8, 8, 1]
// CHECK: mpc.reshape {{.*}} -> tensor<2x1x8x8xf32>
func.func @backward(%x: tensor<2x1x8x8xf32>, %w: tensor<3x1x3x3xf32>, %df: tensor<2x27xf32>)
    -> (tensor<3xf32>, tensor<3x1x3x3xf32>, tensor<2x1x8x8xf32>) {
  %c = mpc.conv2d %x, %w : (tensor<2x1x8x8xf32>, tensor<3x1x3x3xf32>) -> tensor<2x3x6x6xf32>
  %r = mpc.relu %c : tensor<2x3x6x6xf32>
  %p, %i = mpc.max_pool2d %r {kernel_size = [2, 2], strides = [2, 2]}
      : (tensor<2x3x6x6xf32>) -> (tensor<2x3x3x3xf32>, tensor<2x3x3x3xi8>)
  %d = mpc.reshape %df {shape = [2, 3, 3, 3]} : (tensor<2x27xf32>) -> tensor<2x3x3x3xf32>
  %dp = mpc.max_pool2d_grad %d, %i {input_shape = [2, 3, 6, 6], kernel_size = [2, 2],
                                    strides = [2, 2]}
      : (tensor<2x3x3x3xf32>, tensor<2x3x3x3xi8>) -> tensor<2x3x6x6xf32>
  %dr = mpc.relu_grad %dp, %r : tensor<2x3x6x6xf32>
  %db = mpc.reduce_sum %dr {axes = [0, 2, 3]} : (tensor<2x3x6x6xf32>) -> tensor<3xf32>
  %dw = mpc.conv2d_grad_weight %x, %dr {weight_shape = [3, 1, 3, 3]}
      : (tensor<2x1x8x8xf32>, tensor<2x3x6x6xf32>) -> tensor<3x1x3x3xf32>
  %dx = mpc.conv2d_grad_input %dr, %w {input_shape = [2, 1, 8, 8]}
      : (tensor<2x3x6x6xf32>, tensor<3x1x3x3xf32>) -> tensor<2x1x8x8xf32>
  return %db, %dw, %dx : tensor<3xf32>, tensor<3x1x3x3xf32>, tensor<2x1x8x8xf32>
}

// Global average pooling and its derivative need no transpose; batch norm and its gradient follow the image.
// CHECK-LABEL: func @norm
// CHECK: mpc.transpose
// CHECK: mpc.batch_norm_train {{.*}}data_format = NHWC
// CHECK-NOT: mpc.transpose
// CHECK: mpc.reduce_mean %{{.*}} {axes = [1, 2], keep_dims = true} : (tensor<2x4x4x3xf32>) -> tensor<2x1x1x3xf32>
// CHECK-NOT: mpc.transpose
// CHECK: mpc.broadcast_to {{.*}} -> tensor<2x4x4x3xf32>
// CHECK: mpc.relu_grad {{.*}} : tensor<2x4x4x3xf32>
// CHECK: mpc.batch_norm_train_grad {{.*}}data_format = NHWC
// CHECK: mpc.transpose {{.*}} -> tensor<2x3x4x4xf32>
func.func @norm(%x: tensor<2x3x4x4xf32>, %g: tensor<3xf32>, %dm: tensor<2x3x1x1xf32>)
    -> (tensor<2x3xf32>, tensor<2x3x4x4xf32>) {
  %y, %mean, %variance, %inv = mpc.batch_norm_train %x, %g, %g
      : (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
      -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
  %r = mpc.relu %y : tensor<2x3x4x4xf32>
  %m = mpc.reduce_mean %r {axes = [2, 3], keep_dims = true} : (tensor<2x3x4x4xf32>) -> tensor<2x3x1x1xf32>
  %f = mpc.reshape %m {shape = [2, 3]} : (tensor<2x3x1x1xf32>) -> tensor<2x3xf32>
  %db = mpc.broadcast_to %dm {shape = [2, 3, 4, 4]} : (tensor<2x3x1x1xf32>) -> tensor<2x3x4x4xf32>
  %dr = mpc.relu_grad %db, %r : tensor<2x3x4x4xf32>
  %dx, %dg, %dbeta = mpc.batch_norm_train_grad %dr, %x, %g, %mean, %inv
      : (tensor<2x3x4x4xf32>, tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>, tensor<3xf32>)
      -> (tensor<2x3x4x4xf32>, tensor<3xf32>, tensor<3xf32>)
  return %f, %dx : tensor<2x3xf32>, tensor<2x3x4x4xf32>
}

// Dropout counts elements in the traced order: the transpose stays before it. Matrices have no layout.
// CHECK-LABEL: func @stays
// CHECK: %[[C:.*]] = mpc.conv2d
// CHECK: %[[T:.*]] = mpc.transpose %[[C]] {permutation = [0, 3, 1, 2]}
// CHECK: mpc.dropout %[[T]]
func.func @stays(%x: tensor<2x3x4x4xf32>, %w: tensor<3x3x3x3xf32>, %seed: tensor<i64>, %step: tensor<i32>)
    -> tensor<2x3x2x2xf32> {
  %c = mpc.conv2d %x, %w : (tensor<2x3x4x4xf32>, tensor<3x3x3x3xf32>) -> tensor<2x3x2x2xf32>
  %d = mpc.dropout %c, %seed, %step {p = 0.5} : (tensor<2x3x2x2xf32>, tensor<i64>, tensor<i32>) -> tensor<2x3x2x2xf32>
  return %d : tensor<2x3x2x2xf32>
}

// A sum of one image that is channels-last and two that are not stays where it is: two transposes would replace one.
// CHECK-LABEL: func @more_plain
// CHECK: %[[C:.*]] = mpc.conv2d
// CHECK: %[[T:.*]] = mpc.transpose %[[C]] {permutation = [0, 3, 1, 2]}
// CHECK: mpc.sum_n %[[T]], %{{.*}}, %{{.*}} : tensor<2x3x4x4xf32>
func.func @more_plain(%x: tensor<2x3x4x4xf32>, %w: tensor<3x3x1x1xf32>, %p: tensor<2x3x4x4xf32>, %q: tensor<2x3x4x4xf32>)
    -> tensor<2x3x4x4xf32> {
  %c = mpc.conv2d %x, %w : (tensor<2x3x4x4xf32>, tensor<3x3x1x1xf32>) -> tensor<2x3x4x4xf32>
  %s = mpc.sum_n %c, %p, %q : tensor<2x3x4x4xf32>
  return %s : tensor<2x3x4x4xf32>
}
