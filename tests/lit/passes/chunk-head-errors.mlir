// RUN: mpc-opt %s --mpc-chunk-head=chunks=3 --verify-diagnostics --split-input-file
// RUN: not mpc-opt %s --mpc-chunk-head=chunks=0 2>&1 | FileCheck %s --check-prefix=NONE
// RUN: not mpc-opt %s --mpc-chunk-head=chunks=-3 2>&1 | FileCheck %s --check-prefix=NEGATIVE
// RUN: not mpc-opt %s --mpc-chunk-head=chunks=4097 2>&1 | FileCheck %s --check-prefix=MANY

// NONE: error: chunks of mpc-chunk-head must be from 1 (the head stays whole) to 4096, got 0
// NEGATIVE: error: chunks of mpc-chunk-head must be from 1 (the head stays whole) to 4096, got -3
// MANY: error: chunks of mpc-chunk-head must be from 1 (the head stays whole) to 4096, got 4097

// expected-remark @+1 {{chunk-head: net/loss: the head stays whole: func.return reads the logits, too}}
func.func @returned(%h: tensor<4x4xf32>, %w: tensor<4x16xf32>, %labels: tensor<4xi32>, %seed: tensor<f32>)
    -> (tensor<f32>, tensor<4x16xf32>, tensor<4x4xf32>) {
  %z = mpc.matmul %h, %w : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels in <"net/loss">
      : (tensor<4x16xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse
      : (tensor<f32>, tensor<4x16xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4x16xf32>
  %dh = mpc.matmul %dz, %w {transpose_b = true} : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x4xf32>
  return %loss, %z, %dh : tensor<f32>, tensor<4x16xf32>, tensor<4x4xf32>
}

// -----

// A metric, through a cast.
// expected-remark @+1 {{chunk-head: (no Cell): the head stays whole: mpc.argmax in accuracy reads the logits, too}}
func.func @metric(%h: tensor<4x4xbf16>, %w: tensor<4x16xbf16>, %labels: tensor<4xi32>, %seed: tensor<f32>)
    -> (tensor<f32>, tensor<4xi32>, tensor<4x16xf32>) {
  %z = mpc.matmul %h, %w : (tensor<4x4xbf16>, tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %wide = mpc.cast %z : (tensor<4x16xbf16>) -> tensor<4x16xf32>
  %best = mpc.argmax %wide in <"accuracy"> : (tensor<4x16xf32>) -> tensor<4xi32>
  %loss, %lse = mpc.softmax_cross_entropy %wide, %labels
      : (tensor<4x16xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  %dz = mpc.softmax_cross_entropy_grad %seed, %wide, %labels, %lse
      : (tensor<f32>, tensor<4x16xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4x16xf32>
  return %loss, %best, %dz : tensor<f32>, tensor<4xi32>, tensor<4x16xf32>
}

// -----

// expected-remark @+1 {{the head stays whole: mpc.abs reads the gradient of the logits, too}}
func.func @gradient_read(%h: tensor<4x4xf32>, %w: tensor<4x16xf32>, %labels: tensor<4xi32>, %seed: tensor<f32>)
    -> (tensor<f32>, tensor<4x16xf32>) {
  %z = mpc.matmul %h, %w : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels
      : (tensor<4x16xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse
      : (tensor<f32>, tensor<4x16xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4x16xf32>
  %size = mpc.abs %dz : tensor<4x16xf32>
  return %loss, %size : tensor<f32>, tensor<4x16xf32>
}

// -----

// The square of the loss.
// expected-remark @+1 {{the head stays whole: its gradient needs the loss first, through mpc.add}}
func.func @squared(%h: tensor<4x4xf32>, %w: tensor<4x16xf32>, %labels: tensor<4xi32>)
    -> (tensor<f32>, tensor<4x4xf32>) {
  %z = mpc.matmul %h, %w : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels
      : (tensor<4x16xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  %seed = mpc.add %loss, %loss : tensor<f32>
  %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse
      : (tensor<f32>, tensor<4x16xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<4x16xf32>
  %dh = mpc.matmul %dz, %w {transpose_b = true} : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x4xf32>
  return %loss, %dh : tensor<f32>, tensor<4x4xf32>
}

// -----

// expected-remark @+1 {{the head stays whole: it has 2 rows for 3 chunks}}
func.func @few_rows(%h: tensor<2x4xf32>, %w: tensor<4x16xf32>, %labels: tensor<2xi32>, %seed: tensor<f32>)
    -> (tensor<f32>, tensor<2x4xf32>) {
  %z = mpc.matmul %h, %w : (tensor<2x4xf32>, tensor<4x16xf32>) -> tensor<2x16xf32>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels
      : (tensor<2x16xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>)
  %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse
      : (tensor<f32>, tensor<2x16xf32>, tensor<2xi32>, tensor<2xf32>) -> tensor<2x16xf32>
  %dh = mpc.matmul %dz, %w {transpose_b = true} : (tensor<2x16xf32>, tensor<4x16xf32>) -> tensor<2x4xf32>
  return %loss, %dh : tensor<f32>, tensor<2x4xf32>
}

// -----

// expected-remark @+1 {{the head stays whole: its logits are not the result of mpc.matmul}}
func.func @no_product(%z: tensor<4x16xf32>, %labels: tensor<4xi32>) -> tensor<f32> {
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels
      : (tensor<4x16xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}

// -----

// expected-remark @+1 {{the head stays whole: its logits are a product with a bias for each element}}
func.func @whole_bias(%h: tensor<4x4xf32>, %w: tensor<4x16xf32>, %b: tensor<4x16xf32>, %labels: tensor<4xi32>)
    -> tensor<f32> {
  %z = mpc.matmul %h, %w, %b : (tensor<4x4xf32>, tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels
      : (tensor<4x16xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}

// -----

// expected-remark @+1 {{the head stays whole: nothing needs the gradient of its logits}}
func.func @evaluation(%h: tensor<4x4xf32>, %w: tensor<4x16xf32>, %labels: tensor<4xi32>) -> tensor<f32> {
  %z = mpc.matmul %h, %w : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels
      : (tensor<4x16xf32>, tensor<4xi32>) -> (tensor<f32>, tensor<4xf32>)
  return %loss : tensor<f32>
}
