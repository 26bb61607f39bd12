// RUN: mpc-opt %s --mpc-chunk-head=chunks=2 2>/dev/null | FileCheck %s
// RUN: mpc-opt %s --mpc-chunk-head=chunks=2 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: mpc-opt %s --mpc-chunk-head=chunks=5 2>&1 >/dev/null | FileCheck %s --check-prefix=EACH
// RUN: mpc-opt %s --mpc-chunk-head=chunks=1 > %t.whole && mpc-opt %s | diff %t.whole -
// RUN: mpc-opt %s --mpc-chunk-head=chunks=2 > %t.once && mpc-opt %t.once --mpc-chunk-head=chunks=2 | diff %t.once -
// RUN: mpc-opt %s --mpc-chunk-head=chunks=2 --mpc-fusion 2>/dev/null | FileCheck %s --check-prefix=FUSED

#head = #mpc.scope<"gpt", network>
#loss = #mpc.scope<"loss">

// REMARK: remark: chunk-head: gpt: 5 rows of logits are made in 2 chunks: 192 of 320 bytes live at a time
// EACH: remark: chunk-head: gpt: 5 rows of logits are made in 5 chunks: 64 of 320 bytes live at a time
// Tied weights, f32: the larger chunk first. The divisor of the mean is the whole batch's.
// CHECK-LABEL: func @tied
// CHECK-SAME: mpc.head_chunks = array<i64: 2, 320>
// CHECK: %[[N:.*]] = mpc.constant {value = dense<5.000000e+00> : tensor<f32>}
// CHECK: %[[G:.*]] = mpc.div %{{.*}}, %[[N]] backward
// CHECK: %[[H0:.*]] = mpc.slice %[[H:.*]] {sizes = [3, 4], starts = [0, 0]} in "gpt"
// CHECK: %[[Z0:.*]] = mpc.matmul %[[H0]], %[[W:.*]] {transpose_b = true} in "gpt" : (tensor<3x4xf32>, tensor<16x4xf32>) -> tensor<3x16xf32>
// CHECK: %[[L0:.*]] = mpc.slice %{{.*}} {sizes = [3], starts = [0]} in <"loss"> : (tensor<5xi32>) -> tensor<3xi32>
// CHECK: %[[LOSS0:.*]], %[[LSE0:.*]] = mpc.softmax_cross_entropy %[[Z0]], %[[L0]] {reduction = none} in <"loss">
// CHECK: %[[D0:.*]] = mpc.softmax_cross_entropy_grad %[[G]], %[[Z0]], %[[L0]], %[[LSE0]] {reduction = sum} backward in <"loss">
// CHECK: %[[DH0:.*]] = mpc.matmul %[[D0]], %[[W]] backward
// CHECK: %[[R0:.*]] = mpc.slice %[[H]] {sizes = [3, 4], starts = [0, 0]} backward
// CHECK: %[[DW0:.*]] = mpc.matmul %[[R0]], %[[D0]] {transpose_a = true} backward in "gpt" : (tensor<3x4xf32>, tensor<3x16xf32>) -> tensor<4x16xf32>
// CHECK: mpc.slice %[[H]] {sizes = [2, 4], starts = [3, 0]} in "gpt"
// CHECK: %[[LOSS1:.*]], %{{.*}} = mpc.softmax_cross_entropy
// CHECK: %[[DH1:.*]] = mpc.matmul {{.*}} -> tensor<2x4xf32>
// CHECK: %[[SUM:.*]] = mpc.matmul %{{.*}}, %{{.*}}, %[[DW0]] {{.*}} -> tensor<4x16xf32>
// CHECK: %[[ALL:.*]] = mpc.concat %[[LOSS0]], %[[LOSS1]]
// CHECK: %[[LOSS:.*]] = mpc.reduce_mean %[[ALL]]
// CHECK: %[[DH:.*]] = mpc.concat %[[DH0]], %[[DH1]] backward
// CHECK: %[[DW:.*]] = mpc.transpose %[[SUM]] {permutation = [1, 0]} backward in "gpt" : (tensor<4x16xf32>) -> tensor<16x4xf32>
// What used the loss before the gradient's factors were there comes behind the chunks.
// CHECK: %[[TWICE:.*]] = mpc.add %[[LOSS]], %[[LOSS]]
// CHECK: return %[[TWICE]], %[[DH]], %[[DW]]
// FUSED-LABEL: func @tied
// FUSED: mpc.fusion
// FUSED: mpc.softmax_cross_entropy
// FUSED: mpc.softmax_cross_entropy_grad
// FUSED: mpc.matmul
// FUSED: mpc.fusion
// FUSED: mpc.softmax_cross_entropy
// FUSED: mpc.softmax_cross_entropy_grad
// FUSED: mpc.matmul
func.func @tied(%h: tensor<5x4xf32>, %w: tensor<16x4xf32>, %labels: tensor<5xi32>, %scale: tensor<f32>)
    -> (tensor<f32>, tensor<5x4xf32>, tensor<16x4xf32>) {
  %z = mpc.matmul %h, %w {transpose_b = true} in #head
      : (tensor<5x4xf32>, tensor<16x4xf32>) -> tensor<5x16xf32>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels in #loss
      : (tensor<5x16xf32>, tensor<5xi32>) -> (tensor<f32>, tensor<5xf32>)
  %twice = mpc.add %loss, %loss : tensor<f32>
  %seed = mpc.add %scale, %scale backward : tensor<f32>
  %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse backward in #loss
      : (tensor<f32>, tensor<5x16xf32>, tensor<5xi32>, tensor<5xf32>) -> tensor<5x16xf32>
  %dh = mpc.matmul %dz, %w backward in #head
      : (tensor<5x16xf32>, tensor<16x4xf32>) -> tensor<5x4xf32>
  %dw = mpc.matmul %dz, %h {transpose_a = true} backward in #head
      : (tensor<5x16xf32>, tensor<5x4xf32>) -> tensor<16x4xf32>
  return %twice, %dh, %dw : tensor<f32>, tensor<5x4xf32>, tensor<16x4xf32>
}

// Low, with casts around the loss, a bias, dense labels and a loss a row (as masks need it). The parts of what is summed
// over rows are f32, the sum is rounded once.
// CHECK-LABEL: func @low
// CHECK: mpc.matmul {{.*}} : (tensor<2x4xbf16>, tensor<4x16xbf16>, tensor<16xbf16>) -> tensor<2x16xbf16>
// CHECK: mpc.cast {{.*}} : (tensor<2x16xbf16>) -> tensor<2x16xf32>
// CHECK: mpc.slice {{.*}} : (tensor<4x16xf32>) -> tensor<2x16xf32>
// CHECK: mpc.softmax_cross_entropy {{.*}} {reduction = none} : (tensor<2x16xf32>, tensor<2x16xf32>) -> (tensor<2xf32>, tensor<2xf32>)
// CHECK: %[[C0:.*]] = mpc.slice {{.*}} {sizes = [2], starts = [0]} backward : (tensor<4xf32>) -> tensor<2xf32>
// CHECK: mpc.softmax_cross_entropy_grad %[[C0]], {{.*}} {reduction = none} backward :
// CHECK: %[[D0:.*]] = mpc.cast {{.*}} backward : (tensor<2x16xf32>) -> tensor<2x16xbf16>
// CHECK: %[[DW0:.*]] = mpc.matmul %{{.*}}, %[[D0]] {transpose_a = true} backward : (tensor<2x4xbf16>, tensor<2x16xbf16>) -> tensor<4x16xf32>
// CHECK: %[[DB0:.*]] = mpc.reduce_sum %[[D0]] {axes = [0]} backward : (tensor<2x16xbf16>) -> tensor<16xf32>
// CHECK: %[[DW:.*]] = mpc.matmul %{{.*}}, %{{.*}}, %[[DW0]] {transpose_a = true} backward : (tensor<2x4xbf16>, tensor<2x16xbf16>, tensor<4x16xf32>) -> tensor<4x16xf32>
// CHECK: %[[DB:.*]] = mpc.add %[[DB0]], %{{.*}} {mpc.chain} backward : tensor<16xf32>
// CHECK: %[[LOSS:.*]] = mpc.concat
// CHECK: %[[W:.*]] = mpc.cast %[[DW]] backward : (tensor<4x16xf32>) -> tensor<4x16xbf16>
// CHECK: %[[B:.*]] = mpc.cast %[[DB]] backward : (tensor<16xf32>) -> tensor<16xbf16>
// CHECK: return %[[LOSS]], %{{.*}}, %[[W]], %[[B]]
func.func @low(%h: tensor<4x4xbf16>, %w: tensor<4x16xbf16>, %b: tensor<16xbf16>, %labels: tensor<4x16xf32>,
               %mask: tensor<4xf32>) -> (tensor<4xf32>, tensor<4x4xbf16>, tensor<4x16xbf16>, tensor<16xbf16>) {
  %z = mpc.matmul %h, %w, %b : (tensor<4x4xbf16>, tensor<4x16xbf16>, tensor<16xbf16>) -> tensor<4x16xbf16>
  %wide = mpc.cast %z : (tensor<4x16xbf16>) -> tensor<4x16xf32>
  %loss, %lse = mpc.softmax_cross_entropy %wide, %labels {reduction = none}
      : (tensor<4x16xf32>, tensor<4x16xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  %dz = mpc.softmax_cross_entropy_grad %mask, %wide, %labels, %lse {reduction = none} backward
      : (tensor<4xf32>, tensor<4x16xf32>, tensor<4x16xf32>, tensor<4xf32>) -> tensor<4x16xf32>
  %low = mpc.cast %dz backward : (tensor<4x16xf32>) -> tensor<4x16xbf16>
  %dh = mpc.matmul %low, %w {transpose_b = true} backward
      : (tensor<4x16xbf16>, tensor<4x16xbf16>) -> tensor<4x4xbf16>
  %dw = mpc.matmul %h, %low {transpose_a = true} backward
      : (tensor<4x4xbf16>, tensor<4x16xbf16>) -> tensor<4x16xbf16>
  %db = mpc.reduce_sum %low {axes = [0]} backward : (tensor<4x16xbf16>) -> tensor<16xbf16>
  return %loss, %dh, %dw, %db : tensor<4xf32>, tensor<4x4xbf16>, tensor<4x16xbf16>, tensor<16xbf16>
}

// REMARK: remark: chunk-head: gpt: 4 rows of logits are made in 2 chunks: 128 of 256 bytes live at a time
// REMARK: remark: chunk-head: translation: 6 rows of logits are made in 2 chunks: 144 of 288 bytes live at a time
// Two heads in one step, one with the sum of the losses of i64 labels, one with their mean. The cotangent of a sum is
// every row's: nothing divides it. The attribute has the bytes of both.
// CHECK-LABEL: func @two_heads
// CHECK-SAME: mpc.head_chunks = array<i64: 2, 544>
// CHECK: mpc.slice {{.*}} : (tensor<4xi64>) -> tensor<2xi64>
// CHECK: mpc.softmax_cross_entropy {{.*}} {reduction = none} : (tensor<2x16xf32>, tensor<2xi64>) -> (tensor<2xf32>, tensor<2xf32>)
// CHECK: mpc.softmax_cross_entropy_grad %arg6, {{.*}} {reduction = sum} backward :
// CHECK: mpc.softmax_cross_entropy_grad %arg6, {{.*}} {reduction = sum} backward :
// CHECK: mpc.reduce_sum %{{.*}} {axes = [0]} : (tensor<4xf32>) -> tensor<f32>
// CHECK: %[[SIX:.*]] = mpc.constant {value = dense<6.000000e+00> : tensor<f32>}
// CHECK: %[[SHARE:.*]] = mpc.div %arg6, %[[SIX]]
// CHECK: mpc.slice {{.*}} : (tensor<6xi32>) -> tensor<3xi32>
// CHECK: mpc.softmax_cross_entropy_grad %[[SHARE]], {{.*}} {reduction = sum} backward :
// CHECK: mpc.softmax_cross_entropy_grad %[[SHARE]], {{.*}} {reduction = sum} backward :
// CHECK: mpc.reduce_mean %{{.*}} {axes = [0]} : (tensor<6xf32>) -> tensor<f32>
// CHECK-NOT: mpc.softmax_cross_entropy
// CHECK: return
func.func @two_heads(%h: tensor<4x4xf32>, %w: tensor<4x16xf32>, %labels: tensor<4xi64>, %g: tensor<6x4xf32>,
                     %v: tensor<4x12xf32>, %others: tensor<6xi32>, %seed: tensor<f32>)
    -> (tensor<f32>, tensor<f32>, tensor<4x4xf32>, tensor<4x16xf32>, tensor<6x4xf32>, tensor<4x12xf32>) {
  %z = mpc.matmul %h, %w in #head : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %y = mpc.matmul %g, %v in "translation"
      : (tensor<6x4xf32>, tensor<4x12xf32>) -> tensor<6x12xf32>
  %loss, %lse = mpc.softmax_cross_entropy %z, %labels {reduction = sum}
      : (tensor<4x16xf32>, tensor<4xi64>) -> (tensor<f32>, tensor<4xf32>)
  %other, %lsf = mpc.softmax_cross_entropy %y, %others
      : (tensor<6x12xf32>, tensor<6xi32>) -> (tensor<f32>, tensor<6xf32>)
  %dz = mpc.softmax_cross_entropy_grad %seed, %z, %labels, %lse {reduction = sum} backward
      : (tensor<f32>, tensor<4x16xf32>, tensor<4xi64>, tensor<4xf32>) -> tensor<4x16xf32>
  %dy = mpc.softmax_cross_entropy_grad %seed, %y, %others, %lsf backward
      : (tensor<f32>, tensor<6x12xf32>, tensor<6xi32>, tensor<6xf32>) -> tensor<6x12xf32>
  %dh = mpc.matmul %dz, %w {transpose_b = true} backward
      : (tensor<4x16xf32>, tensor<4x16xf32>) -> tensor<4x4xf32>
  %dw = mpc.matmul %h, %dz {transpose_a = true} backward
      : (tensor<4x4xf32>, tensor<4x16xf32>) -> tensor<4x16xf32>
  %dg = mpc.matmul %dy, %v {transpose_b = true} backward
      : (tensor<6x12xf32>, tensor<4x12xf32>) -> tensor<6x4xf32>
  %dv = mpc.matmul %g, %dy {transpose_a = true} backward
      : (tensor<6x4xf32>, tensor<6x12xf32>) -> tensor<4x12xf32>
  return %loss, %other, %dh, %dw, %dg, %dv
      : tensor<f32>, tensor<f32>, tensor<4x4xf32>, tensor<4x16xf32>, tensor<6x4xf32>, tensor<4x12xf32>
}
