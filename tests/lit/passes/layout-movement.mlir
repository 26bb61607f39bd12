// RUN: mpc-opt %s --mpc-layout | FileCheck %s
// RUN: mpc-opt %s --mpc-layout > %t.once && mpc-opt %t.once --mpc-layout | diff %t.once -

// Activation functions, prelu, and joining, cutting and padding of images follow the layout: two transposes at the
// borders, none between.
// CHECK-LABEL: func @forward
// CHECK: mpc.transpose %{{.*}} {permutation = [0, 2, 3, 1]} : (tensor<2x3x8x8xf32>)
// CHECK: mpc.conv2d
// CHECK-NOT: mpc.transpose
// CHECK: mpc.gelu %{{.*}} : tensor<2x6x6x4xf32>
// CHECK: mpc.prelu %{{.*}}, %{{.*}} {data_format = NHWC} : (tensor<2x6x6x4xf32>, tensor<4xf32>) -> tensor<2x6x6x4xf32>
// CHECK: mpc.concat %{{.*}}, %{{.*}} {axis = 3} : (tensor<2x6x6x4xf32>, tensor<2x6x6x4xf32>) -> tensor<2x6x6x8xf32>
// CHECK: mpc.slice %{{.*}} {sizes = [2, 4, 5, 8], starts = [0, 1, 1, 0]} : (tensor<2x6x6x8xf32>) -> tensor<2x4x5x8xf32>
// CHECK: mpc.split %{{.*}} {axis = 3, sizes = [2, 6]} : (tensor<2x4x5x8xf32>) -> (tensor<2x4x5x2xf32>, tensor<2x4x5x6xf32>)
// CHECK: mpc.pad %{{.*}} {high = [0, 3, 4, 0], low = [0, 1, 2, 0]} : (tensor<2x4x5x6xf32>) -> tensor<2x8x11x6xf32>
// CHECK: mpc.greater
// CHECK: mpc.where %{{.*}} : (tensor<2x8x11x6xi1>, tensor<2x8x11x6xf32>, tensor<f32>) -> tensor<2x8x11x6xf32>
// CHECK: mpc.reduce_max %{{.*}} {axes = [1, 2]} : (tensor<2x8x11x6xf32>) -> tensor<2x6xf32>
// CHECK-NOT: mpc.transpose
func.func @forward(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %alpha: tensor<4xf32>, %zero: tensor<f32>)
    -> tensor<2x6xf32> {
  %c = mpc.conv2d %x, %w : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  %g = mpc.gelu %c : tensor<2x4x6x6xf32>
  %p = mpc.prelu %g, %alpha : (tensor<2x4x6x6xf32>, tensor<4xf32>) -> tensor<2x4x6x6xf32>
  %j = mpc.concat %p, %c {axis = 1} : (tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>) -> tensor<2x8x6x6xf32>
  %s = mpc.slice %j {sizes = [2, 8, 4, 5], starts = [0, 0, 1, 1]}
      : (tensor<2x8x6x6xf32>) -> tensor<2x8x4x5xf32>
  %first, %rest = mpc.split %s {axis = -3, sizes = [2, 6]}
      : (tensor<2x8x4x5xf32>) -> (tensor<2x2x4x5xf32>, tensor<2x6x4x5xf32>)
  %d = mpc.pad %rest {high = [0, 0, 3, 4], low = [0, 0, 1, 2]}
      : (tensor<2x6x4x5xf32>) -> tensor<2x6x8x11xf32>
  %above = mpc.greater %d, %zero : (tensor<2x6x8x11xf32>, tensor<f32>) -> tensor<2x6x8x11xi1>
  %chosen = mpc.where %above, %d, %zero
      : (tensor<2x6x8x11xi1>, tensor<2x6x8x11xf32>, tensor<f32>) -> tensor<2x6x8x11xf32>
  %m = mpc.reduce_max %chosen {axes = [2, 3]} : (tensor<2x6x8x11xf32>) -> tensor<2x6xf32>
  return %m : tensor<2x6xf32>
}

// CHECK-LABEL: func @backward
// CHECK: mpc.conv2d
// CHECK-NOT: mpc.transpose {{.*}}permutation = [0, 3, 1, 2]
// CHECK: mpc.prelu_grad %{{.*}} {data_format = NHWC} : (tensor<2x6x6x4xf32>, tensor<2x6x6x4xf32>, tensor<4xf32>) -> (tensor<2x6x6x4xf32>, tensor<4xf32>)
// CHECK: mpc.silu_grad %{{.*}} : tensor<2x6x6x4xf32>
// CHECK: mpc.conv2d_grad_weight
func.func @backward(%x: tensor<2x3x8x8xf32>, %w: tensor<4x3x3x3xf32>, %alpha: tensor<4xf32>,
                    %dy: tensor<2x4x6x6xf32>) -> (tensor<4x3x3x3xf32>, tensor<4xf32>) {
  %c = mpc.conv2d %x, %w : (tensor<2x3x8x8xf32>, tensor<4x3x3x3xf32>) -> tensor<2x4x6x6xf32>
  %s = mpc.silu %c : tensor<2x4x6x6xf32>
  %ds, %dalpha = mpc.prelu_grad %dy, %s, %alpha
      : (tensor<2x4x6x6xf32>, tensor<2x4x6x6xf32>, tensor<4xf32>) -> (tensor<2x4x6x6xf32>, tensor<4xf32>)
  %dc = mpc.silu_grad %ds, %c : tensor<2x4x6x6xf32>
  %dw = mpc.conv2d_grad_weight %x, %dc {weight_shape = [4, 3, 3, 3]}
      : (tensor<2x3x8x8xf32>, tensor<2x4x6x6xf32>) -> tensor<4x3x3x3xf32>
  return %dw, %dalpha : tensor<4x3x3x3xf32>, tensor<4xf32>
}
