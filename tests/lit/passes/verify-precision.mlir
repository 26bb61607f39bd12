// RUN: mpc-opt %s --mpc-verify-precision | FileCheck %s

// A target that a network computes is no label; a user may round labels.
// CHECK-LABEL: func @targets
func.func @targets(%x: tensor<2x4xf32>, %w: tensor<4x4xf16>, %t: tensor<2x4xf32>) -> (tensor<f32>, tensor<f32>) {
  %xl = mpc.cast %x : (tensor<2x4xf32>) -> tensor<2x4xf16>
  %h = mpc.matmul %xl, %w : (tensor<2x4xf16>, tensor<4x4xf16>) -> tensor<2x4xf16>
  %hf = mpc.cast %h : (tensor<2x4xf16>) -> tensor<2x4xf32>
  %a = mpc.mse %x, %hf : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<f32>
  %u = mpc.cast %t {user = true} : (tensor<2x4xf32>) -> tensor<2x4xf16>
  %uf = mpc.cast %u : (tensor<2x4xf16>) -> tensor<2x4xf32>
  %b = mpc.mse %x, %uf : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<f32>
  return %a, %b : tensor<f32>, tensor<f32>
}
