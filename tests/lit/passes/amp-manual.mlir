// RUN: mpc-opt %s --mpc-amp="level=O2" | FileCheck %s
// RUN: mpc-opt %s --mpc-amp="level=O0" | FileCheck %s --check-prefix=O0

// AMP-31: the manual program of MindSpore's documentation, LeNet-5 with `conv1.to_float(float16)` and a cast to f32 in
// front of the first relu, at O2: conv1 is f16 by its pin; from the user's cast on f32, until the next matrix work.
#net = #mpc.scope<"net", network>
#conv1 = #mpc.scope<"net/conv1", network, pin = f16>
#loss = #mpc.scope<"loss">

// CHECK-LABEL: func @manual
// CHECK: %[[C1:.*]] = mpc.conv2d {{.*}}, to_float "f16", user>{{.*}} -> tensor<4x6x28x28xf16>
// CHECK-NEXT: %[[U:.*]] = mpc.cast %[[C1]] {{.*}}, user_cast, user>{{.*}} : (tensor<4x6x28x28xf16>) -> tensor<4x6x28x28xf32>
// CHECK-NEXT: %[[R1:.*]] = mpc.relu %[[U]] {{.*}}, user_cast, user>{{.*}} : tensor<4x6x28x28xf32>
// CHECK-NEXT: %[[P1:.*]], %{{.*}} = mpc.max_pool2d %[[R1]] {{.*}}, user_cast, user>{{.*}} -> (tensor<4x6x14x14xf32>, tensor<4x6x14x14xi8>)
// CHECK-NEXT: %[[P1L:.*]] = mpc.cast %[[P1]] : (tensor<4x6x14x14xf32>) -> tensor<4x6x14x14xf16>
// CHECK: %[[C2:.*]] = mpc.conv2d %[[P1L]], %{{.*}}, level "O2">{{.*}} -> tensor<4x16x10x10xf16>
// CHECK-NEXT: %[[R2:.*]] = mpc.relu %[[C2]] {{.*}} : tensor<4x16x10x10xf16>
// CHECK-NEXT: %[[P2:.*]], %{{.*}} = mpc.max_pool2d %[[R2]] {{.*}} -> (tensor<4x16x5x5xf16>, tensor<4x16x5x5xi8>)
// CHECK-NEXT: %[[F:.*]] = mpc.reshape %[[P2]] {{.*}} -> tensor<4x400xf16>
// CHECK: mpc.matmul %[[F]], {{.*}} -> tensor<4x120xf16>
// CHECK-NEXT: mpc.relu {{.*}} : tensor<4x120xf16>
// CHECK: %[[Y:.*]] = mpc.matmul {{.*}} -> tensor<4x10xf16>
// CHECK-NEXT: %[[YF:.*]] = mpc.cast %[[Y]] : (tensor<4x10xf16>) -> tensor<4x10xf32>
// CHECK-NEXT: mpc.softmax_cross_entropy %[[YF]], {{.*}} : (tensor<4x10xf32>, tensor<4x10xf32>) -> (tensor<f32>, tensor<4xf32>)

// At O0 the pin alone is low.
// O0-LABEL: func @manual
// O0: mpc.conv2d {{.*}}, to_float "f16", user>{{.*}} -> tensor<4x6x28x28xf16>
// O0: mpc.conv2d {{.*}} -> tensor<4x16x10x10xf32>
// O0: mpc.matmul {{.*}} -> tensor<4x10xf32>
func.func @manual(%x: tensor<4x1x32x32xf32>, %labels: tensor<4x10xf32>, %w1: tensor<6x1x5x5xf32>,
                  %w2: tensor<16x6x5x5xf32>, %w3: tensor<400x120xf32>, %w4: tensor<120x10xf32>) -> tensor<f32> {
  %c1 = mpc.conv2d %x, %w1 in #conv1
      : (tensor<4x1x32x32xf32>, tensor<6x1x5x5xf32>) -> tensor<4x6x28x28xf32>
  %u = mpc.cast %c1 {user = true} in #net : tensor<4x6x28x28xf32>
  %r1 = mpc.relu %u in #net : tensor<4x6x28x28xf32>
  %p1, %i1 = mpc.max_pool2d %r1 {kernel_size = [2, 2], strides = [2, 2]} in #net
      : (tensor<4x6x28x28xf32>) -> (tensor<4x6x14x14xf32>, tensor<4x6x14x14xi8>)
  %c2 = mpc.conv2d %p1, %w2 in #net
      : (tensor<4x6x14x14xf32>, tensor<16x6x5x5xf32>) -> tensor<4x16x10x10xf32>
  %r2 = mpc.relu %c2 in #net : tensor<4x16x10x10xf32>
  %p2, %i2 = mpc.max_pool2d %r2 {kernel_size = [2, 2], strides = [2, 2]} in #net
      : (tensor<4x16x10x10xf32>) -> (tensor<4x16x5x5xf32>, tensor<4x16x5x5xi8>)
  %f = mpc.reshape %p2 {shape = [4, 400]} in #net : (tensor<4x16x5x5xf32>) -> tensor<4x400xf32>
  %h = mpc.matmul %f, %w3 in #net : (tensor<4x400xf32>, tensor<400x120xf32>) -> tensor<4x120xf32>
  %r3 = mpc.relu %h in #net : tensor<4x120xf32>
  %y = mpc.matmul %r3, %w4 in #net : (tensor<4x120xf32>, tensor<120x10xf32>) -> tensor<4x10xf32>
  %loss, %lse = mpc.softmax_cross_entropy %y, %labels in #loss
      : (tensor<4x10xf32>, tensor<4x10xf32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}
