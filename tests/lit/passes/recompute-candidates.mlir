// RUN: mpc-opt %s --mpc-recompute=candidates=1 2>/dev/null | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: mpc-opt %s --mpc-recompute=candidates=2 2>/dev/null | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: mpc-opt %s --mpc-recompute=candidates=2 2>&1 >/dev/null | FileCheck %s --check-prefix=REMARK
// RUN: mpc-opt %s --mpc-recompute=candidates=1 > %t.once && mpc-opt %t.once --mpc-recompute=candidates=1 | diff %t.once -

#a = #mpc.scope<"net/a">
#b = #mpc.scope<"net/b">

// Without matrix work: relu moves the fewest bytes for each that it saves, gelu takes longer. The result of the
// convolution is where both begin. Then comes the Cell with the product.
// REMARK: remark: recompute for the memory budget: 2 operations run again in the backward pass, 65536 bytes less are kept for it: net/a
// CHECK-LABEL: func @step
// CHECK-SAME: mpc.recompute_candidates = array<i64: 2, 1>
// CHECK: %[[H:.*]] = mpc.matmul
// ONE-NOT: mpc.gelu {{.*}}mpc.recomputed
// ONE: mpc.relu %[[H]] {mpc.recomputed} backward
// ONE-NOT: mpc.gelu {{.*}}mpc.recomputed
// TWO-DAG: mpc.gelu %[[H]] {mpc.recomputed} backward
// TWO-DAG: mpc.relu %[[H]] {mpc.recomputed} backward
func.func @step(%x: tensor<64x64xf32>, %w: tensor<64x128xf32>, %v: tensor<128x64xf32>, %d: tensor<64x128xf32>)
    -> (tensor<64x64xf32>, tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32>) {
  %h = mpc.matmul %x, %w in #a : (tensor<64x64xf32>, tensor<64x128xf32>) -> tensor<64x128xf32>
  %g = mpc.gelu %h in #a : tensor<64x128xf32>
  %r = mpc.relu %h in #a : tensor<64x128xf32>
  %s = mpc.add %g, %r in #a : tensor<64x128xf32>
  %z = mpc.matmul %s, %v in #b : (tensor<64x128xf32>, tensor<128x64xf32>) -> tensor<64x64xf32>
  %dg = mpc.mul %g, %d backward : tensor<64x128xf32>
  %dr = mpc.mul %r, %d backward : tensor<64x128xf32>
  %dh = mpc.mul %h, %d backward : tensor<64x128xf32>
  return %z, %dg, %dr, %dh : tensor<64x64xf32>, tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x128xf32>
}
