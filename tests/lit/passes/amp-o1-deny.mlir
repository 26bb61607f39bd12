// RUN: mpc-opt %s --mpc-amp="level=O1" --mpc-verify-precision="level=O1" | FileCheck %s
// RUN: mpc-opt %s --mpc-amp="level=O1 dtype=bf16" --mpc-verify-precision="level=O1" | FileCheck %s

#net = #mpc.scope<"net", network>

// AMP-2: between low matrix work, each of these reads and writes f32; a norm does so before it is folded, and keeps f32
// parameters and statistics when it is.

// CHECK-LABEL: func @softmax
// CHECK: mpc.softmax {{.*}}, class "deny">{{.*}} : tensor<2x4xf32>
func.func @softmax(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %d = mpc.softmax %h in #net : tensor<2x4xf32>
  %y = mpc.matmul %d, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func @pow
// CHECK: mpc.pow {{.*}}, class "deny">{{.*}} : tensor<2x4xf32>
func.func @pow(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %d = mpc.pow %h {exponent = 2.0} in #net : tensor<2x4xf32>
  %y = mpc.matmul %d, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func @sum
// CHECK: mpc.reduce_sum {{.*}}, class "deny">{{.*}} : (tensor<2x4xf32>) -> tensor<2x1xf32>
func.func @sum(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %v: tensor<1x4xf32>) -> tensor<2x4xf32> {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %d = mpc.reduce_sum %h {axes = [1], keep_dims = true} in #net : (tensor<2x4xf32>) -> tensor<2x1xf32>
  %y = mpc.matmul %d, %v in #net : (tensor<2x1xf32>, tensor<1x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func @mse
// CHECK: mpc.mse {{.*}}, loss>{{.*}} : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<f32>
func.func @mse(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %t: tensor<2x4xf32>) -> tensor<f32> {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %l = mpc.mse %h, %t in #net : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<f32>
  return %l : tensor<f32>
}

// CHECK-LABEL: func @layer_norm
// CHECK: mpc.layer_norm {{.*}}, class "norm", folded>{{.*}}, tensor<4xf32>, tensor<4xf32>) -> ({{.*}}, tensor<2xf32>, tensor<2xf32>)
func.func @layer_norm(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %n, %m, %i = mpc.layer_norm %h, %s, %s in #net
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  %y = mpc.matmul %n, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// Beside a norm that is not folded yet, what it feeds is f32: the infer rule sees an f32 norm.
// CHECK-LABEL: func @before_folding
// CHECK: mpc.layer_norm
// CHECK: mpc.add {{.*}}, infer_rule>{{.*}} : tensor<2x4xf32>
func.func @before_folding(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %n, %m, %i = mpc.layer_norm %h, %s, %s in #net
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  %a = mpc.add %n, %n in #net : tensor<2x4xf32>
  %y = mpc.matmul %a, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
