// RUN: mpc-opt %s --mpc-recompute=candidates=1 2>/dev/null | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: mpc-opt %s --mpc-recompute=candidates=2 2>/dev/null | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: mpc-opt %s --mpc-recompute=candidates=2 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: mpc-opt %s --mpc-recompute=candidates=1 > %t.once && mpc-opt %t.once --mpc-recompute=candidates=1 | diff %t.once -

#a = #mpc.scope<path = "net/a">
#b = #mpc.scope<path = "net/b">

// Without matrix work: relu moves the fewest bytes for each that it saves, gelu takes longer. The result of the
// convolution is where both begin. Then comes the Cell with the product.
// REMARK: remark: recompute for the memory budget: 2 operations run again in the backward pass, 65536 bytes less are kept for it: net/a
// CHECK-LABEL: func @step
// CHECK-SAME: mpc.recompute_candidates = array<i64: 2, 1>
// CHECK: %[[H:.*]] = mpc.matmul
// ONE-NOT: mpc.gelu {{.*}}mpc.recomputed
// ONE: mpc.relu %[[H]] {mpc.backward, mpc.recomputed
// ONE-NOT: mpc.gelu {{.*}}mpc.recomputed
// TWO-DAG: mpc.gelu %[[H]] {mpc.backward, mpc.recomputed
// TWO-DAG: mpc.relu %[[H]] {mpc.backward, mpc.recomputed
func.func @step(%x: tensor<64x64xf32>, %w: tensor<64x128xf32>, %v: tensor<128x64xf32>, %d: tensor<64x128xf32>)
    -> (tensor<64x64xf32>, tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32>) {
  %h = mpc.matmul %x, %w {mpc.scope = #a} : (tensor<64x64xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
  %g = mpc.gelu %h {mpc.scope = #a} : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %r = mpc.relu %h {mpc.scope = #a} : (tensor<64x128xf32>) -> tensor<64x128xf32>
  %s = mpc.add %g, %r {mpc.scope = #a} : (tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
  %z = mpc.matmul %s, %v {mpc.scope = #b} : (tensor<64x128xf32>, tensor<128x64xf32>) -> tensor<64x64xf32>
  %dg = mpc.mul %g, %d {mpc.backward} : (tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
  %dr = mpc.mul %r, %d {mpc.backward} : (tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
  %dh = mpc.mul %h, %d {mpc.backward} : (tensor<64x128xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
  return %z, %dg, %dr, %dh : tensor<64x64xf32>, tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32>
}
