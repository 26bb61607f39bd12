// RUN: mpc-opt %s --mpc-relu-mask | FileCheck %s
// RUN: mpc-opt %s --mpc-attach-target=name=cuda --mpc-relu-mask | FileCheck %s --check-prefix=CUDA
// RUN: mpc-opt %s --mpc-relu-mask > %t.once && mpc-opt %t.once --mpc-relu-mask | diff %t.once -

// A mean reads relu's result before its derivative, but does not need it for its own.
// CHECK-LABEL: func @mean(
// CHECK: %[[ZERO:.*]] = mpc.constant {value = dense<0.000000e+00> : tensor<f32>}
// CHECK: %[[Y:.*]] = mpc.relu %{{.*}} in <"net/relu">
// CHECK-NEXT: %[[K:.*]] = mpc.greater %[[Y]], %[[ZERO]] in <"net/relu"> : (tensor<2x4x4x3xf16>, tensor<f32>) -> tensor<2x4x4x3xi1>
// CHECK: mpc.reduce_mean %[[Y]]
// CHECK: %[[DX:.*]] = mpc.where %[[K]], %{{.*}}, %[[ZERO]] backward in <"net/relu"> : (tensor<2x4x4x3xi1>, tensor<2x4x4x3xf16>, tensor<f32>) -> tensor<2x4x4x3xf16>
// CHECK-NOT: mpc.relu_grad
// CHECK: return %{{.*}}, %[[DX]]
func.func @mean(%x: tensor<2x4x4x3xf16>, %dm: tensor<2x1x1x3xf16>) -> (tensor<2x3xf16>, tensor<2x4x4x3xf16>) {
  %y = mpc.relu %x in <"net/relu"> : tensor<2x4x4x3xf16>
  %m = mpc.reduce_mean %y {axes = [1, 2]} : (tensor<2x4x4x3xf16>) -> tensor<2x3xf16>
  %dy = mpc.broadcast_to %dm {shape = [2, 4, 4, 3]} backward : (tensor<2x1x1x3xf16>) -> tensor<2x4x4x3xf16>
  %dx = mpc.relu_grad %dy, %y backward in <"net/relu"> : tensor<2x4x4x3xf16>
  return %m, %dx : tensor<2x3xf16>, tensor<2x4x4x3xf16>
}

// One mask for all derivatives of a value, under each shape; the results of a convolution and of a product that end in
// relu have one as well. A mask belongs to the call that its value belongs to. On a GPU the comparison with a small
// product would be a launch of its own.
// CUDA-LABEL: func @shared(
// CUDA: %[[Z:.*]] = mpc.matmul
// CUDA-NEXT: %[[R:.*]] = mpc.relu
// CUDA-NEXT: mpc.greater %[[R]]
// CUDA: mpc.relu_grad %{{.*}}, %[[Z]] backward
// CHECK-LABEL: func @shared(
// CHECK: %[[Z:.*]] = mpc.matmul %{{.*}} {activation = relu, mpc.recompute = 3 : i64}
// CHECK-NEXT: %[[K:.*]] = mpc.greater %[[Z]], %{{.*}} {mpc.recompute = 3 : i64} : {{.*}} -> tensor<4x8xi1>
// CHECK: %[[R:.*]] = mpc.relu
// CHECK-NEXT: mpc.greater %[[R]]
// CHECK: mpc.where %[[K]], {{.*}} -> tensor<4x8xf32>
// CHECK: %[[V:.*]] = mpc.reshape %[[K]] {shape = [32]} : (tensor<4x8xi1>) -> tensor<32xi1>
// CHECK: mpc.where %[[V]], {{.*}} : (tensor<32xi1>, tensor<32xf32>, tensor<f32>) -> tensor<32xf16>
// CHECK-NOT: mpc.relu_grad
func.func @shared(%x: tensor<4x2xf32>, %w: tensor<2x8xf32>, %u: tensor<4x8xf32>, %dy: tensor<4x8xf32>, %dv: tensor<32xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<32xf16>, tensor<4x8xf32>) {
  %z = mpc.matmul %x, %w {activation = relu, mpc.recompute = 3 : i64} : (tensor<4x2xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %r = mpc.relu %u : tensor<4x8xf32>
  %s = mpc.add %z, %r : tensor<4x8xf32>
  %v = mpc.reshape %z {shape = [32]} : (tensor<4x8xf32>) -> tensor<32xf32>
  %d0 = mpc.relu_grad %dy, %z backward : tensor<4x8xf32>
  %d1 = mpc.relu_grad %dv, %v backward : (tensor<32xf32>, tensor<32xf32>) -> tensor<32xf16>
  %d2 = mpc.relu_grad %dy, %r backward : tensor<4x8xf32>
  return %s, %d0, %d1, %d2 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<32xf16>, tensor<4x8xf32>
}

// A product's derivative reads relu's result: it is kept anyway. So is what the step returns, under another shape too,
// and what relu's derivative reads as a cotangent.
// CHECK-LABEL: func @kept(
// CHECK-COUNT-4: mpc.relu_grad
// CHECK-NOT: mpc.greater
func.func @kept(%x: tensor<4x8xf32>, %w: tensor<8x2xf32>, %dz: tensor<4x2xf32>, %dy: tensor<4x8xf32>)
    -> (tensor<4x2xf32>, tensor<8x2xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<32xf32>, tensor<4x8xf32>) {
  %y = mpc.relu %x : tensor<4x8xf32>
  %r = mpc.relu %dy : tensor<4x8xf32>
  %q = mpc.relu %r : tensor<4x8xf32>
  %z = mpc.matmul %y, %w : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %v = mpc.reshape %r {shape = [32]} : (tensor<4x8xf32>) -> tensor<32xf32>
  %dw = mpc.matmul %y, %dz {transpose_a = true} backward : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<8x2xf32>
  %d0 = mpc.relu_grad %dy, %y backward : tensor<4x8xf32>
  %d1 = mpc.relu_grad %dy, %r backward : tensor<4x8xf32>
  %d2 = mpc.relu_grad %q, %q backward : tensor<4x8xf32>
  %d3 = mpc.relu_grad %d2, %dy backward : tensor<4x8xf32>
  return %z, %dw, %d0, %d1, %v, %d3 : tensor<4x2xf32>, tensor<8x2xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<32xf32>, tensor<4x8xf32>
}

// relu's operand is kept for another derivative: it says what the result would. One that rounds says something else.
// CHECK-LABEL: func @operand(
// CHECK: %[[X:.*]] = mpc.add
// CHECK: %[[R:.*]] = mpc.relu %[[X]] : (tensor<4x8xf32>) -> tensor<4x8xf16>
// CHECK-NEXT: %[[K:.*]] = mpc.greater %[[R]]
// CHECK: mpc.gelu_grad %{{.*}}, %[[X]]
// CHECK: mpc.relu_grad %{{.*}}, %[[X]]
// CHECK: mpc.where %[[K]]
func.func @operand(%a: tensor<4x8xf32>, %dy: tensor<4x8xf32>)
    -> (tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %x = mpc.add %a, %a : tensor<4x8xf32>
  %y = mpc.relu %x : tensor<4x8xf32>
  %r = mpc.relu %x : (tensor<4x8xf32>) -> tensor<4x8xf16>
  %g = mpc.gelu %x : tensor<4x8xf32>
  %s = mpc.sum_n %y, %r, %g : (tensor<4x8xf32>, tensor<4x8xf16>, tensor<4x8xf32>) -> tensor<4x8xf32>
  %d0 = mpc.gelu_grad %dy, %x backward : tensor<4x8xf32>
  %d1 = mpc.relu_grad %dy, %y backward : tensor<4x8xf32>
  %d2 = mpc.relu_grad %dy, %r backward : (tensor<4x8xf32>, tensor<4x8xf16>) -> tensor<4x8xf32>
  return %s, %d0, %d1, %d2 : tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}

// No backward pass.
// CHECK-LABEL: func @forward(
// CHECK-NEXT: mpc.relu
// CHECK-NEXT: return
func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = mpc.relu %x : tensor<4xf32>
  return %y : tensor<4xf32>
}
func.func private @declared(tensor<4xf32>) -> tensor<4xf32>

// A constant is there anyway, and so is what a derivative reads as its cotangent.
// CHECK-LABEL: func @kept_anyway(
// CHECK-NOT: mpc.greater
// CHECK: mpc.relu_grad
// CHECK: mpc.relu_grad
// CHECK-NOT: mpc.greater
func.func @kept_anyway(%x: tensor<4xf32>, %z: tensor<4xf32>, %dy: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %c = mpc.constant {value = dense<[1.0, 0.0, 2.0, 0.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %y = mpc.relu %x : tensor<4xf32>
  %da = mpc.relu_grad %dy, %c backward : tensor<4xf32>
  %db = mpc.relu_grad %dy, %y backward : tensor<4xf32>
  %dc = mpc.relu_grad %y, %z backward : tensor<4xf32>
  return %da, %db, %dc : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
