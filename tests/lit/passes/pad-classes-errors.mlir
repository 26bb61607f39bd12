// RUN: mpc-opt %s --mpc-pad-classes=everywhere=true --verify-diagnostics --split-input-file

module attributes {mpc.target = #mpc.target<"cuda", arch = "sm_90">} {
// expected-remark @+1 {{pad-classes: net: 13 classes stay as they are: func.return reads the logits, too}}
func.func @returned(%h: tensor<5x8xbf16>, %w: tensor<13x8xbf16>, %labels: tensor<5xi32>, %seed: tensor<f32>)
    -> (tensor<f32>, tensor<5x13xbf16>, tensor<5x8xbf16>) {
  %z = mpc.matmul %h, %w {transpose_b = true} in "net" : (tensor<5x8xbf16>, tensor<13x8xbf16>) -> tensor<5x13xbf16>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels : (tensor<5x13xbf16>, tensor<5xi32>) -> (tensor<f32>, tensor<5xf32>)
  %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse
      : (tensor<f32>, tensor<5x13xbf16>, tensor<5xi32>, tensor<5xf32>) -> tensor<5x13xbf16>
  %dh = mpc.matmul %dz, %w : (tensor<5x13xbf16>, tensor<13x8xbf16>) -> tensor<5x8xbf16>
  return %loss, %z, %dh : tensor<f32>, tensor<5x13xbf16>, tensor<5x8xbf16>
}
}

// -----

module attributes {mpc.target = #mpc.target<"cuda", arch = "sm_90">} {
// expected-remark @+1 {{pad-classes: (no Cell): 13 classes stay as they are: mpc.abs reads the gradient of the logits, too}}
func.func @gradient_read(%h: tensor<5x8xbf16>, %w: tensor<13x8xbf16>, %labels: tensor<5xi32>, %seed: tensor<f32>)
    -> (tensor<f32>, tensor<5x13xbf16>) {
  %z = mpc.matmul %h, %w {transpose_b = true} : (tensor<5x8xbf16>, tensor<13x8xbf16>) -> tensor<5x13xbf16>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels : (tensor<5x13xbf16>, tensor<5xi32>) -> (tensor<f32>, tensor<5xf32>)
  %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse
      : (tensor<f32>, tensor<5x13xbf16>, tensor<5xi32>, tensor<5xf32>) -> tensor<5x13xbf16>
  %size = mpc.abs %dz : tensor<5x13xbf16>
  return %loss, %size : tensor<f32>, tensor<5x13xbf16>
}
}

// -----

module attributes {mpc.target = #mpc.target<"tpu">} {
// expected-error @+1 {{unknown target 'tpu'; choose cpu or cuda}}
func.func @target(%x: tensor<f32>) -> tensor<f32> {
  return %x : tensor<f32>
}
}
