// RUN: mpc-opt %s --mpc-pad-classes=everywhere=true 2>/dev/null | FileCheck %s
// RUN: mpc-opt %s --mpc-pad-classes=everywhere=true 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: mpc-opt %s --mpc-pad-classes=everywhere=true > %t.once && mpc-opt %t.once --mpc-pad-classes=everywhere=true | diff %t.once -
// Small heads gain nothing, and other targets want no multiple.
// RUN: mpc-opt %s > %t.before && mpc-opt %s --mpc-pad-classes | diff %t.before -
// RUN: sed 's/"cuda", arch = "sm_90"/"cpu"/' %s > %t.cpu.mlir && mpc-opt %t.cpu.mlir > %t.cpu && mpc-opt %t.cpu.mlir --mpc-pad-classes=everywhere=true | diff %t.cpu -
// RUN: mpc-opt %s --mpc-pad-classes=everywhere=true --mpc-chunk-head=chunks=2 2>/dev/null | FileCheck %s --check-prefix=CHUNKS
// RUN: mpc-opt %s --mpc-pad-classes=everywhere=true --mpc-fusion 2>/dev/null | FileCheck %s --check-prefix=FUSED

#head = #mpc.scope<"gpt", network>
#loss = #mpc.scope<"loss">

module attributes {mpc.target = #mpc.target<"cuda", arch = "sm_90">} {

// Tied weights: one padded copy for both products. What lies behind the classes is read by none but the loss.
// REMARK: remark: pad-classes: gpt: 13 classes are padded to 16 in 3 products
// CHECK-LABEL: func @tied
// CHECK: %[[P:.*]] = mpc.pad %[[W:.*]] {high = [3, 0], low = [0, 0]} as <bf16, level "O2"> in "gpt" : (tensor<13x8xbf16>) -> tensor<16x8xbf16>
// CHECK-NEXT: %[[Z:.*]] = mpc.matmul %[[H:.*]], %[[P]] {mpc.padded = array<i64: 13, 16>, transpose_b = true} as <bf16, level "O2"> in "gpt" : (tensor<5x8xbf16>, tensor<16x8xbf16>) -> tensor<5x16xbf16>
// CHECK-NEXT: %[[Z32:.*]] = mpc.cast %[[Z]] : (tensor<5x16xbf16>) -> tensor<5x16xf32>
// CHECK-NEXT: %{{.*}}, %[[LSE:.*]] = mpc.softmax_cross_entropy %[[Z32]], %[[L:.*]] {classes = 13} in <"loss"> : (tensor<5x16xf32>, tensor<5xi32>)
// CHECK-NEXT: %[[DZ32:.*]] = mpc.softmax_cross_entropy_grad %{{.*}}, %[[Z32]], %[[L]], %[[LSE]] {classes = 13} backward in <"loss"> : {{.*}} -> tensor<5x16xf32>
// CHECK-NEXT: %[[DZ:.*]] = mpc.cast %[[DZ32]] backward : (tensor<5x16xf32>) -> tensor<5x16xbf16>
// CHECK-NEXT: %[[DH:.*]] = mpc.matmul %[[DZ]], %[[P]] {mpc.padded = array<i64: 13, 16>} backward in "gpt" : (tensor<5x16xbf16>, tensor<16x8xbf16>) -> tensor<5x8xbf16>
// CHECK-NEXT: %[[D:.*]] = mpc.matmul %[[DZ]], %[[H]] {mpc.padded = array<i64: 13, 16>, transpose_a = true} backward in "gpt" : {{.*}} -> tensor<16x8xbf16>
// CHECK-NEXT: %[[DW:.*]] = mpc.slice %[[D]] {sizes = [13, 8], starts = [0, 0]} backward in "gpt" : (tensor<16x8xbf16>) -> tensor<13x8xbf16>
// CHECK-NEXT: return %{{.*}}, %[[DH]], %[[DW]]
// The head in chunks is cut from the padded one.
// CHUNKS-LABEL: func @tied
// CHUNKS: mpc.pad
// CHUNKS-NOT: mpc.pad
// CHUNKS: mpc.matmul {{.*}} -> tensor<3x16xbf16>
// CHUNKS: mpc.softmax_cross_entropy {{.*}}classes = 13
// CHUNKS: mpc.matmul {{.*}} -> tensor<2x16xbf16>
// CHUNKS: mpc.transpose {{.*}} -> tensor<16x8xbf16>
// CHUNKS: mpc.slice {{.*}} -> tensor<13x8xbf16>
// The loss and both casts are one region, as they are without padding.
// FUSED-LABEL: func @tied
// FUSED: mpc.pad
// FUSED: mpc.matmul
// FUSED-NEXT: mpc.fusion
// FUSED: mpc.yield %{{.*}}, %{{.*}} : tensor<f32>, tensor<5x16xbf16>
// FUSED: mpc.matmul
// FUSED-NEXT: mpc.matmul
// FUSED-NEXT: mpc.slice
func.func @tied(%h: tensor<5x8xbf16>, %w: tensor<13x8xbf16>, %labels: tensor<5xi32>, %seed: tensor<f32>)
    -> (tensor<f32>, tensor<5x8xbf16>, tensor<13x8xbf16>) {
  %z = mpc.matmul %h, %w {transpose_b = true} as <bf16, level "O2"> in #head
      : (tensor<5x8xbf16>, tensor<13x8xbf16>) -> tensor<5x13xbf16>
  %wide = mpc.cast %z : (tensor<5x13xbf16>) -> tensor<5x13xf32>
  %loss, %lse = mpc.softmax_cross_entropy %wide, %labels in #loss
      : (tensor<5x13xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<5xf32>)
  %dwide = mpc.softmax_cross_entropy_grad %seed, %wide, %labels, %lse backward in #loss
      : (tensor<f32>, tensor<5x13xf32>, tensor<5xi32>, tensor<5xf32>) -> tensor<5x13xf32>
  %dz = mpc.cast %dwide backward : (tensor<5x13xf32>) -> tensor<5x13xbf16>
  %dh = mpc.matmul %dz, %w backward in #head : (tensor<5x13xbf16>, tensor<13x8xbf16>) -> tensor<5x8xbf16>
  %dw = mpc.matmul %dz, %h {transpose_a = true} backward in #head
      : (tensor<5x13xbf16>, tensor<5x8xbf16>) -> tensor<13x8xbf16>
  return %loss, %dh, %dw : tensor<f32>, tensor<5x8xbf16>, tensor<13x8xbf16>
}

// A bias, and a weight whose columns are the classes. The sum of the bias's gradient is padded with the products.
// REMARK: remark: pad-classes: (no Cell): 9 classes are padded to 16 in 3 products
// CHECK-LABEL: func @bias
// CHECK: %[[W:.*]] = mpc.pad %{{.*}} {high = [0, 7], low = [0, 0]} : (tensor<8x9xf16>) -> tensor<8x16xf16>
// CHECK-NEXT: %[[B:.*]] = mpc.pad %{{.*}} {high = [7], low = [0]} : (tensor<9xf16>) -> tensor<16xf16>
// CHECK-NEXT: mpc.matmul %{{.*}}, %[[W]], %[[B]] {mpc.padded = array<i64: 9, 16>}
// CHECK: %[[DB:.*]] = mpc.reduce_sum %[[DZ:.*]] {axes = [0], mpc.padded = array<i64: 9, 16>} backward : (tensor<5x16xf16>) -> tensor<16xf16>
// CHECK-NEXT: mpc.slice %[[DB]] {sizes = [9], starts = [0]} backward : (tensor<16xf16>) -> tensor<9xf16>
// CHECK: mpc.matmul %[[DZ]], %[[W]] {mpc.padded = array<i64: 9, 16>, transpose_b = true}
// CHECK: %[[DW:.*]] = mpc.matmul %{{.*}}, %[[DZ]] {mpc.padded = array<i64: 9, 16>, transpose_a = true} backward : {{.*}} -> tensor<8x16xf16>
// CHECK-NEXT: mpc.slice %[[DW]] {sizes = [8, 9], starts = [0, 0]} backward : (tensor<8x16xf16>) -> tensor<8x9xf16>
func.func @bias(%h: tensor<5x8xf16>, %w: tensor<8x9xf16>, %b: tensor<9xf16>, %labels: tensor<5xi32>,
                %seed: tensor<f32>) -> (tensor<f32>, tensor<9xf16>, tensor<5x8xf16>, tensor<8x9xf16>) {
  %z = mpc.matmul %h, %w, %b : (tensor<5x8xf16>, tensor<8x9xf16>, tensor<9xf16>) -> tensor<5x9xf16>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels
      : (tensor<5x9xf16>, tensor<5xi32>) -> (tensor<f32>, tensor<5xf32>)
  %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse backward
      : (tensor<f32>, tensor<5x9xf16>, tensor<5xi32>, tensor<5xf32>) -> tensor<5x9xf16>
  %db = mpc.reduce_sum %dz {axes = [0]} backward : (tensor<5x9xf16>) -> tensor<9xf16>
  %dh = mpc.matmul %dz, %w {transpose_b = true} backward : (tensor<5x9xf16>, tensor<8x9xf16>) -> tensor<5x8xf16>
  %dw = mpc.matmul %h, %dz {transpose_a = true} backward : (tensor<5x8xf16>, tensor<5x9xf16>) -> tensor<8x9xf16>
  return %loss, %db, %dh, %dw : tensor<f32>, tensor<9xf16>, tensor<5x8xf16>, tensor<8x9xf16>
}

// Nothing to pad: multiples, f32, dense labels, nothing trained.
// REMARK-NOT: remark
// CHECK-LABEL: func @multiple
// CHECK-NOT: mpc.pad
func.func @multiple(%h: tensor<5x8xbf16>, %w: tensor<16x8xbf16>, %labels: tensor<5xi32>, %seed: tensor<f32>)
    -> (tensor<f32>, tensor<5x8xbf16>) {
  %z = mpc.matmul %h, %w {transpose_b = true} : (tensor<5x8xbf16>, tensor<16x8xbf16>) -> tensor<5x16xbf16>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels : (tensor<5x16xbf16>, tensor<5xi32>) -> (tensor<f32>, tensor<5xf32>)
  %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse
      : (tensor<f32>, tensor<5x16xbf16>, tensor<5xi32>, tensor<5xf32>) -> tensor<5x16xbf16>
  %dh = mpc.matmul %dz, %w : (tensor<5x16xbf16>, tensor<16x8xbf16>) -> tensor<5x8xbf16>
  return %loss, %dh : tensor<f32>, tensor<5x8xbf16>
}

func.func @f32(%h: tensor<5x8xf32>, %w: tensor<13x8xf32>, %labels: tensor<5xi32>, %seed: tensor<f32>)
    -> (tensor<f32>, tensor<5x8xf32>) {
  %z = mpc.matmul %h, %w {transpose_b = true} : (tensor<5x8xf32>, tensor<13x8xf32>) -> tensor<5x13xf32>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels : (tensor<5x13xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<5xf32>)
  %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse
      : (tensor<f32>, tensor<5x13xf32>, tensor<5xi32>, tensor<5xf32>) -> tensor<5x13xf32>
  %dh = mpc.matmul %dz, %w : (tensor<5x13xf32>, tensor<13x8xf32>) -> tensor<5x8xf32>
  return %loss, %dh : tensor<f32>, tensor<5x8xf32>
}

func.func @dense(%h: tensor<5x8xbf16>, %w: tensor<13x8xbf16>, %labels: tensor<5x13xf32>, %seed: tensor<f32>)
    -> (tensor<f32>, tensor<5x8xbf16>) {
  %z = mpc.matmul %h, %w {transpose_b = true} : (tensor<5x8xbf16>, tensor<13x8xbf16>) -> tensor<5x13xbf16>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels
      : (tensor<5x13xbf16>, tensor<5x13xf32>) -> (tensor<f32>, tensor<5xf32>)
  %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse
      : (tensor<f32>, tensor<5x13xbf16>, tensor<5x13xf32>, tensor<5xf32>) -> tensor<5x13xbf16>
  %dh = mpc.matmul %dz, %w : (tensor<5x13xbf16>, tensor<13x8xbf16>) -> tensor<5x8xbf16>
  return %loss, %dh : tensor<f32>, tensor<5x8xbf16>
}

func.func @evaluation(%h: tensor<5x8xbf16>, %w: tensor<13x8xbf16>, %labels: tensor<5xi32>) -> tensor<f32> {
  %z = mpc.matmul %h, %w {transpose_b = true} : (tensor<5x8xbf16>, tensor<13x8xbf16>) -> tensor<5x13xbf16>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels : (tensor<5x13xbf16>, tensor<5xi32>) -> (tensor<f32>, tensor<5xf32>)
  return %loss : tensor<f32>
}
}
