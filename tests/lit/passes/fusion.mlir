// RUN: mpc-opt %s --mpc-fusion | FileCheck %s
// RUN: mpc-opt %s --mpc-fusion > %t.once && mpc-opt %t.once --mpc-fusion | diff %t.once -
// RUN: mpc-opt %s --mpc-fusion=max-operations=2 | FileCheck %s --check-prefix=TWO
// RUN: mpc-opt %s --mpc-attach-target=name=cuda --mpc-fusion | FileCheck %s

// What is read outside is yielded; the rest stays inside. Operations keep types, attributes and so their rounding.
// CHECK-LABEL: func @chain
// CHECK-SAME: (%[[X:.*]]: tensor<8x16xbf16>, %[[B:.*]]: tensor<16xbf16>, %[[R:.*]]: tensor<8x16xbf16>)
// CHECK-NEXT: %[[F:.*]]:2 = mpc.fusion(%[[X]], %[[B]], %[[R]]) {
// CHECK-NEXT: ^bb0(%[[IX:.*]]: tensor<8x16xbf16>, %[[IB:.*]]: tensor<16xbf16>, %[[IR:.*]]: tensor<8x16xbf16>):
// CHECK-NEXT:   %[[S:.*]] = mpc.add %[[IX]], %[[IB]] as <bf16, infer_rule> in "net/block/0"
// CHECK-NEXT:   %[[T:.*]] = mpc.add %[[S]], %[[IR]]
// CHECK-NEXT:   %[[Y:.*]] = mpc.relu %[[T]]
// CHECK-NEXT:   mpc.yield %[[S]], %[[Y]] : tensor<8x16xbf16>, tensor<8x16xbf16>
// CHECK-NEXT: } {mpc.fusion_choice = {bytes_saved = 768 : i64, left_out = []}, mpc.scope = #mpc.scope<"net/block", network>}
// CHECK-SAME: : (tensor<8x16xbf16>, tensor<16xbf16>, tensor<8x16xbf16>) -> (tensor<8x16xbf16>, tensor<8x16xbf16>)
// CHECK-NEXT: return %[[F]]#1, %[[F]]#0
// TWO-LABEL: func @chain
// TWO: mpc.add
// TWO: mpc.fusion
// TWO: left_out = ["add in net/block/0: the region would have more than 2 operations"]
func.func @chain(%x: tensor<8x16xbf16>, %b: tensor<16xbf16>, %r: tensor<8x16xbf16>)
    -> (tensor<8x16xbf16>, tensor<8x16xbf16>) {
  %s = mpc.add %x, %b as <bf16, infer_rule> in "net/block/0"
      : (tensor<8x16xbf16>, tensor<16xbf16>) -> tensor<8x16xbf16>
  %t = mpc.add %s, %r in "net/block/1"
      : tensor<8x16xbf16>
  %y = mpc.relu %t in "net/block/1"
      : tensor<8x16xbf16>
  return %y, %s : tensor<8x16xbf16>, tensor<8x16xbf16>
}

// One way in, one way out: what stands between library operations. A cast for a library joins what it reads.
// CHECK-LABEL: func @between_products
// CHECK: %[[M:.*]] = mpc.matmul
// CHECK: %[[F:.*]] = mpc.fusion(%[[M]], %{{.*}}) {
// CHECK:   mpc.add
// CHECK:   mpc.relu
// CHECK:   %[[L:.*]] = mpc.cast
// CHECK:   mpc.yield %[[L]] : tensor<8x16xf16>
// CHECK: left_out = ["matmul in net/a: it is not computed element by element", "matmul: it is not computed element by element"]
// CHECK: mpc.matmul %[[F]]
func.func @between_products(%x: tensor<8x16xf16>, %w: tensor<16x16xf16>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
  %m = mpc.matmul %x, %w in <"net/a"> : (tensor<8x16xf16>, tensor<16x16xf16>) -> tensor<8x16xf16>
  %a = mpc.add %m, %b : (tensor<8x16xf16>, tensor<16xf32>) -> tensor<8x16xf32>
  %r = mpc.relu %a : tensor<8x16xf32>
  %l = mpc.cast %r : (tensor<8x16xf32>) -> tensor<8x16xf16>
  %y = mpc.matmul %l, %w : (tensor<8x16xf16>, tensor<16x16xf16>) -> tensor<8x16xf32>
  return %y : tensor<8x16xf32>
}

// A batch norm takes what follows it; the sums of its gradient take what comes before.
// CHECK-LABEL: func @batch_norm
// CHECK: mpc.fusion
// CHECK:   mpc.batch_norm_train
// CHECK:   mpc.add
// CHECK:   mpc.relu
// CHECK:   mpc.yield %{{.*}}, %{{.*}}, %{{.*}} : tensor<16xf32>, tensor<16xf32>, tensor<8x4x4x16xf32>
// CHECK: mpc.conv2d
// CHECK: mpc.fusion
// CHECK:   mpc.sum_n
// CHECK:   mpc.relu_grad
// CHECK:   mpc.batch_norm_train_grad
// CHECK:   mpc.yield %{{.*}}, %{{.*}}, %{{.*}} : tensor<8x4x4x16xf32>, tensor<16xf32>, tensor<16xf32>
func.func @batch_norm(%x: tensor<8x4x4x16xf32>, %r: tensor<8x4x4x16xf32>, %g: tensor<16xf32>, %b: tensor<16xf32>,
                      %d0: tensor<8x4x4x16xf32>, %w: tensor<16x16x1x1xf32>)
    -> (tensor<8x4x4x16xf32>, tensor<16xf32>, tensor<16xf32>) {
  %y, %mean, %variance, %inv_std = mpc.batch_norm_train %x, %g, %b {data_format = NHWC}
      : (tensor<8x4x4x16xf32>, tensor<16xf32>, tensor<16xf32>)
      -> (tensor<8x4x4x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>)
  %s = mpc.add %y, %r : tensor<8x4x4x16xf32>
  %z = mpc.relu %s : tensor<8x4x4x16xf32>
  %d1 = mpc.conv2d %z, %w {data_format = NHWC} : (tensor<8x4x4x16xf32>, tensor<16x16x1x1xf32>) -> tensor<8x4x4x16xf32>
  %d = mpc.sum_n %d0, %d1 : tensor<8x4x4x16xf32>
  %dz = mpc.relu_grad %d, %z : tensor<8x4x4x16xf32>
  %dx, %dg, %db = mpc.batch_norm_train_grad %dz, %x, %g, %mean, %inv_std {data_format = NHWC}
      : (tensor<8x4x4x16xf32>, tensor<8x4x4x16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<16xf32>)
      -> (tensor<8x4x4x16xf32>, tensor<16xf32>, tensor<16xf32>)
  return %dx, %dg, %db : tensor<8x4x4x16xf32>, tensor<16xf32>, tensor<16xf32>
}

// The residual sum is stored once and normalised on the way.
// CHECK-LABEL: func @residual_norm
// CHECK: mpc.fusion
// CHECK:   %[[S:.*]] = mpc.add
// CHECK:   %[[Y:.*]], %[[MEAN:.*]], %[[INV:.*]] = mpc.layer_norm %[[S]]
// CHECK:   mpc.yield %[[S]], %[[Y]]
func.func @residual_norm(%x: tensor<8x4x16xf32>, %r: tensor<8x4x16xf32>, %g: tensor<16xf32>, %b: tensor<16xf32>)
    -> (tensor<8x4x16xf32>, tensor<8x4x16xf32>) {
  %s = mpc.add %x, %r : tensor<8x4x16xf32>
  %y, %mean, %inv_std = mpc.layer_norm %s, %g, %b
      : (tensor<8x4x16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<8x4x16xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
  return %s, %y : tensor<8x4x16xf32>, tensor<8x4x16xf32>
}

// The gradient of gelu is stored for the products and summed for the bias in the same pass.
// CHECK-LABEL: func @gelu_gradients
// CHECK: mpc.fusion
// CHECK:   %[[D:.*]] = mpc.gelu_grad
// CHECK:   %[[B:.*]] = mpc.reduce_sum %[[D]]
// CHECK:   mpc.yield %[[D]], %[[B]]
func.func @gelu_gradients(%dy: tensor<32x16xf32>, %x: tensor<32x16xf32>, %w: tensor<16x16xf32>)
    -> (tensor<16xf32>, tensor<32x16xf32>) {
  %d = mpc.gelu_grad %dy, %x : tensor<32x16xf32>
  %b = mpc.reduce_sum %d {axes = [0]} : (tensor<32x16xf32>) -> tensor<16xf32>
  %dx = mpc.matmul %d, %w {transpose_b = true} : (tensor<32x16xf32>, tensor<16x16xf32>) -> tensor<32x16xf32>
  return %b, %dx : tensor<16xf32>, tensor<32x16xf32>
}

// The loss and its gradient read the logits together.
// CHECK-LABEL: func @cross_entropy
// CHECK: mpc.fusion
// CHECK:   mpc.softmax_cross_entropy
// CHECK:   mpc.softmax_cross_entropy_grad
// CHECK:   mpc.reduce_sum
func.func @cross_entropy(%x: tensor<32x10xf32>, %labels: tensor<32xi32>, %scale: tensor<f32>)
    -> (tensor<f32>, tensor<32x10xf32>, tensor<10xf32>) {
  %loss, %lse = mpc.softmax_cross_entropy %x, %labels : (tensor<32x10xf32>, tensor<32xi32>) -> (tensor<f32>, tensor<32xf32>)
  %d = mpc.softmax_cross_entropy_grad %scale, %x, %labels, %lse
      : (tensor<f32>, tensor<32x10xf32>, tensor<32xi32>, tensor<32xf32>) -> tensor<32x10xf32>
  %b = mpc.reduce_sum %d {axes = [0]} : (tensor<32x10xf32>) -> tensor<10xf32>
  return %loss, %d, %b : tensor<f32>, tensor<32x10xf32>, tensor<10xf32>
}

// A reshape between two operations goes inside; the caller's shape stays outside.
// CHECK-LABEL: func @shapes
// CHECK-NEXT: %[[I:.*]] = mpc.reshape %arg0
// CHECK-NEXT: %[[F:.*]] = mpc.fusion(%[[I]], %arg1) {
// CHECK:   %[[N:.*]] = mpc.neg
// CHECK:   %[[R:.*]] = mpc.reshape %[[N]]
// CHECK:   mpc.add %[[R]]
// CHECK: mpc.reshape %[[F]]
func.func @shapes(%x: tensor<8x16xf32>, %c: tensor<16xf32>) -> tensor<4x32xf32> {
  %0 = mpc.reshape %x {shape = [128]} : (tensor<8x16xf32>) -> tensor<128xf32>
  %1 = mpc.neg %0 : tensor<128xf32>
  %2 = mpc.reshape %1 {shape = [8, 16]} : (tensor<128xf32>) -> tensor<8x16xf32>
  %3 = mpc.add %2, %c : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  %4 = mpc.reshape %3 {shape = [4, 32]} : (tensor<8x16xf32>) -> tensor<4x32xf32>
  return %4 : tensor<4x32xf32>
}

// Updates of state, what prepares gradients for them, and predicates stay outside.
// CHECK-LABEL: func @update
// CHECK-NOT: mpc.fusion
func.func @update(%w: tensor<16xf32>, %v: tensor<16xf32>, %d: tensor<16xf16>, %scale: tensor<f32>, %rate: tensor<f32>,
                  %finite: tensor<i1>) -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) {
  %u = mpc.unscale %d, %scale : (tensor<16xf16>, tensor<f32>) -> tensor<16xf32>
  %n = mpc.neg %u : tensor<16xf32>
  %s = mpc.select %finite, %n, %w : (tensor<i1>, tensor<16xf32>, tensor<16xf32>) -> tensor<16xf32>
  %w1, %v1 = mpc.momentum %w, %v, %u, %rate, %finite
      : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i1>) -> (tensor<16xf32>, tensor<16xf32>)
  return %w1, %v1, %s : tensor<16xf32>, tensor<16xf32>, tensor<16xf32>
}

// A region reads a shadow before the optimizer writes it, though the region's last operation stood behind: the shadow is
// updated in place.
// CHECK-LABEL: func @shadow
// CHECK: mpc.fusion(%arg0, %arg3)
// CHECK: mpc.momentum
func.func @shadow(%x: tensor<8x16xf16>, %w: tensor<16xf32> {mpc.state = #mpc.state<parameter, "w">},
                  %v: tensor<16xf32> {mpc.state = #mpc.state<slot, "v">},
                  %low: tensor<16xf16> {mpc.state = #mpc.state<derived, "w.f16", of = "w">},
                  %d: tensor<16xf32>, %rate: tensor<f32>, %finite: tensor<i1>)
    -> (tensor<16xf32> {mpc.state = #mpc.state<parameter, "w">}, tensor<16xf32> {mpc.state = #mpc.state<slot, "v">},
        tensor<16xf16> {mpc.state = #mpc.state<derived, "w.f16">}, tensor<8x16xf16>) attributes {mpc.step} {
  %a = mpc.add %x, %low : (tensor<8x16xf16>, tensor<16xf16>) -> tensor<8x16xf16>
  %w1, %v1, %low1 = mpc.momentum %w, %v, %d, %rate, %finite {shadow = f16}
      : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>, tensor<f32>, tensor<i1>)
      -> (tensor<16xf32>, tensor<16xf32>, tensor<16xf16>)
  %y = mpc.relu %a : tensor<8x16xf16>
  return %w1, %v1, %low1, %y : tensor<16xf32>, tensor<16xf32>, tensor<16xf16>, tensor<8x16xf16>
}

// An operation alone keeps its own kernel where it has one, and a function without neighbours stays as it is.
// CHECK-LABEL: func @alone
// CHECK-NEXT: mpc.abs
// CHECK-NEXT: mpc.matmul
// CHECK-NEXT: mpc.relu
func.func @alone(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %0 = mpc.abs %x : tensor<8x16xf32>
  %1 = mpc.matmul %0, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %2 = mpc.relu %1 : tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}

// A mask waits for no backward operation: its operand, twice as large, would be kept in its place. What is widened for
// the backward pass alone is widened there: less is kept.
// CHECK-LABEL: func @keeps_no_more(
// CHECK: %[[F:.*]]:2 = mpc.fusion(
// CHECK: mpc.relu
// CHECK: %[[K:.*]] = mpc.greater
// CHECK: mpc.yield %{{.*}}, %[[K]] : tensor<8x16xf16>, tensor<8x16xi1>
// CHECK: left_out = [{{.*}}"where: 128 bytes more would be kept for the backward pass"
// CHECK: mpc.fusion(
// CHECK-NOT: mpc.yield
// CHECK: mpc.cast
// CHECK-NOT: mpc.yield
// CHECK: mpc.where
func.func @keeps_no_more(%x: tensor<8x4xf16>, %v: tensor<4x16xf16>, %b: tensor<8x16xf16>, %w: tensor<16x4xf16>, %zero: tensor<f32>)
    -> (tensor<8x4xf16>, tensor<8x16xf32>) {
  %a = mpc.matmul %x, %v : (tensor<8x4xf16>, tensor<4x16xf16>) -> tensor<8x16xf16>
  %y = mpc.relu %a : tensor<8x16xf16>
  %k = mpc.greater %y, %zero : (tensor<8x16xf16>, tensor<f32>) -> tensor<8x16xi1>
  %z = mpc.matmul %y, %w : (tensor<8x16xf16>, tensor<16x4xf16>) -> tensor<8x4xf16>
  %c = mpc.cast %b : (tensor<8x16xf16>) -> tensor<8x16xf32>
  %dy = mpc.matmul %z, %w {transpose_b = true} backward : (tensor<8x4xf16>, tensor<16x4xf16>) -> tensor<8x16xf16>
  %e = mpc.mul %dy, %c backward : (tensor<8x16xf16>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %dx = mpc.where %k, %e, %zero backward : (tensor<8x16xi1>, tensor<8x16xf32>, tensor<f32>) -> tensor<8x16xf32>
  return %z, %dx : tensor<8x4xf16>, tensor<8x16xf32>
}

// Generated code reads no f64.
// CHECK-LABEL: func @of_f64(
// CHECK-NEXT: %[[S:.*]] = mpc.cast
// CHECK-NEXT: mpc.fusion(%{{.*}}, %[[S]])
// CHECK: left_out = ["cast: it computes in f64"]
func.func @of_f64(%x: tensor<8x16xf32>, %n: tensor<f64>) -> tensor<8x16xf32> {
  %s = mpc.cast %n : (tensor<f64>) -> tensor<f32>
  %a = mpc.abs %x : tensor<8x16xf32>
  %b = mpc.mul %a, %s : (tensor<8x16xf32>, tensor<f32>) -> tensor<8x16xf32>
  return %b : tensor<8x16xf32>
}

// What processes exchange stands between regions.
// CHECK-LABEL: func @collective
// CHECK-NEXT: mpc.exp
// CHECK-NEXT: mpc.all_reduce
// CHECK-NEXT: mpc.add
func.func @collective(%x: tensor<8x16xf32>, %b: tensor<16xf32>) -> tensor<8x16xf32> {
  %0 = mpc.exp %x : tensor<8x16xf32>
  %1 = mpc.all_reduce %0 : tensor<8x16xf32>
  %2 = mpc.add %1, %b : (tensor<8x16xf32>, tensor<16xf32>) -> tensor<8x16xf32>
  return %2 : tensor<8x16xf32>
}
