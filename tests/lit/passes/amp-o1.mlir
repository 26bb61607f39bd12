// RUN: mpc-opt %s --mpc-amp="level=O1" --mpc-verify-precision="level=O1" | FileCheck %s
// RUN: mpc-opt %s --mpc-amp="level=O1 dtype=bf16" | FileCheck %s --check-prefix=BF16
// RUN: mpc-opt %s --mpc-amp="level=O1" > %t.once && mpc-opt %t.once --mpc-amp="level=O1" | diff %t.once -

#net = #mpc.scope<"net", network>
#loss = #mpc.scope<"loss">

// The assignment is kept with the module, a norm's x and y as slots of their own.
// CHECK: module attributes {mpc.assignment = {
// CHECK-SAME: "net#batch_norm.0.x" = "f16"
// CHECK-SAME: "net#batch_norm.0.y" = "f16"
// CHECK-SAME: "net#layer_norm.0.x" = "f32"
// CHECK-SAME: "net#layer_norm.0.y" = "f16"
// CHECK-SAME: "net#matmul.0" = "f16"
// CHECK-SAME: "net#softmax.0" = "f32"
// BF16: module attributes {mpc.assignment = {
// BF16-SAME: "net#matmul.0" = "bf16"

// AMP-1: matrix work is low for f32 and for low operands.
// CHECK-LABEL: func @allow
// CHECK-SAME: (%[[X:[a-z0-9]+]]: tensor<2x4xf32>, %[[W:[a-z0-9]+]]: tensor<4x4xf32>)
// CHECK-DAG: %[[XL:.*]] = mpc.cast %[[X]] : (tensor<2x4xf32>) -> tensor<2x4xf16>
// CHECK-DAG: %[[WL:.*]] = mpc.cast %[[W]] : (tensor<4x4xf32>) -> tensor<4x4xf16>
// CHECK: %[[A:.*]] = mpc.matmul %[[XL]], %[[WL]] as <f16, class "allow">{{.*}} -> tensor<2x4xf16>
// CHECK: %[[B:.*]] = mpc.matmul %[[A]], %[[WL]] {{.*}} (tensor<2x4xf16>, tensor<4x4xf16>) -> tensor<2x4xf16>
// CHECK: %[[BF:.*]] = mpc.cast %[[B]] : (tensor<2x4xf16>) -> tensor<2x4xf32>
// CHECK: return %[[BF]]
func.func @allow(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %a = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %b = mpc.matmul %a, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %b : tensor<2x4xf32>
}

// AMP-2: Deny operations read and write f32; what they feed stays f32 up to the next matrix work (the infer rule).
// CHECK-LABEL: func @deny
// CHECK: %[[H:.*]] = mpc.matmul
// CHECK-NEXT: %[[HF:.*]] = mpc.cast %[[H]] : (tensor<2x4xf16>) -> tensor<2x4xf32>
// CHECK-NEXT: %[[S:.*]] = mpc.softmax %[[HF]] as <f32, class "deny">{{.*}} : tensor<2x4xf32>
// CHECK-NEXT: %[[D:.*]] = mpc.mul_scalar %[[S]] {value = 5.000000e-01} as <f32, infer_rule>{{.*}} : tensor<2x4xf32>
// CHECK-NEXT: %[[DL:.*]] = mpc.cast %[[D]] : (tensor<2x4xf32>) -> tensor<2x4xf16>
// CHECK-NEXT: mpc.matmul %[[DL]]
func.func @deny(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %s = mpc.softmax %h in #net : tensor<2x4xf32>
  %d = mpc.mul_scalar %s {value = 0.5} in #net : tensor<2x4xf32>
  %y = mpc.matmul %d, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// The infer rule passes through Clear operations; those themselves are the cut's.
// CHECK-LABEL: func @clear_fed
// CHECK: mpc.exp {{.*}}, class "deny">
// CHECK-NEXT: mpc.relu {{.*}}, cut>{{.*}} : tensor<2x4xf32>
// CHECK-NEXT: mpc.sigmoid {{.*}}, infer_rule>{{.*}} : tensor<2x4xf32>
// CHECK-NEXT: mpc.cast
// CHECK-NEXT: mpc.relu {{.*}}, cut>{{.*}} : tensor<2x4xf16>
// CHECK-NEXT: mpc.matmul
// CHECK-NEXT: mpc.sigmoid {{.*}}, cut>{{.*}} : tensor<2x4xf16>
func.func @clear_fed(%x: tensor<2x4xf32>, %w: tensor<4x4xf16>) -> tensor<2x4xf32> {
  %e = mpc.exp %x in #net : tensor<2x4xf32>
  %r = mpc.relu %e in #net : tensor<2x4xf32>
  %s = mpc.sigmoid %r in #net : tensor<2x4xf32>
  %t = mpc.relu %s in #net : tensor<2x4xf32>
  %m = mpc.matmul %t, %w in #net : (tensor<2x4xf32>, tensor<4x4xf16>) -> tensor<2x4xf32>
  %y = mpc.sigmoid %m in #net : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// AMP-3: relu keeps its operand's type, whatever it is.
// CHECK-LABEL: func @relu
// CHECK: mpc.relu %{{.*}} as <f16, cut>{{.*}} : tensor<2x4xf16>
// CHECK: mpc.relu %{{.*}} as <f32, cut>{{.*}} : tensor<2x4xf32>
func.func @relu(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %a = mpc.relu %h in #net : tensor<2x4xf32>
  %b = mpc.relu %x in #net : tensor<2x4xf32>
  return %a, %b : tensor<2x4xf32>, tensor<2x4xf32>
}

// AMP-4: a batch norm's y has the type of its x in training and inference; parameters and statistics are f32.
// CHECK-LABEL: func @batch_norm
// CHECK: mpc.batch_norm_train %{{.*}} {{.*}}, cut>{{.*}} : (tensor<2x4xf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
// CHECK: mpc.batch_norm_infer %{{.*}} {{.*}} : (tensor<2x4xf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf16>
// CHECK: mpc.batch_norm_infer %{{.*}} {{.*}} : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
func.func @batch_norm(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %s: tensor<4xf32>)
    -> (tensor<2x4xf32>, tensor<4xf32>, tensor<2x4xf32>) {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %a, %mean, %variance, %inverse = mpc.batch_norm_train %h, %s, %s in #net
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %b = mpc.batch_norm_infer %a, %s, %s, %s, %s in #net
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %o = mpc.matmul %b, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %c = mpc.batch_norm_infer %x, %s, %s, %s, %s in #net
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %o, %mean, %c : tensor<2x4xf32>, tensor<4xf32>, tensor<2x4xf32>
}

// A layer norm is f32 for the cut, and then folded: it reads what is stored and writes what its users take. So it costs
// no cast, and what its f32 result would pin elsewhere stays pinned.
// CHECK-LABEL: func @layer_norm
// CHECK: %[[E:.*]] = mpc.exp
// CHECK-NEXT: %[[R:.*]] = mpc.add %[[E]], {{.*}}, infer_rule>{{.*}} : tensor<2x4xf32>
// CHECK-NEXT: %[[N:.*]], %{{.*}}, %{{.*}} = mpc.layer_norm %[[R]], {{.*}}, class "norm", folded>{{.*}} (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf16>, tensor<2xf32>, tensor<2xf32>)
// CHECK: %[[M:.*]] = mpc.matmul %[[N]]
// CHECK-NEXT: %[[P:.*]], %{{.*}}, %{{.*}} = mpc.layer_norm %[[M]], {{.*}}, class "norm", folded>{{.*}} (tensor<2x4xf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
// CHECK-NEXT: mpc.add %[[R]], %[[P]] as <f32, infer_rule>{{.*}} : tensor<2x4xf32>
func.func @layer_norm(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
  %e = mpc.exp %x in #net : tensor<2x4xf32>
  %r = mpc.add %e, %e in #net : tensor<2x4xf32>
  %n, %m0, %i0 = mpc.layer_norm %r, %s, %s in #net
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  %m = mpc.matmul %n, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %p, %m1, %i1 = mpc.layer_norm %m, %s, %s in #net
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2xf32>, tensor<2xf32>)
  %y = mpc.add %r, %p in #net : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// AMP-5: where one operand of a sum is f32 and one low, the smaller one is cast: here the bias, once.
// CHECK-LABEL: func @bias
// CHECK-DAG: mpc.cast %{{.*}} : (tensor<4xf32>) -> tensor<4xf16>
// CHECK: mpc.add {{.*}}, cut>{{.*}} (tensor<2x4xf16>, tensor<4xf16>) -> tensor<2x4xf16>
// CHECK: mpc.concat {{.*}}, cut>{{.*}} (tensor<2x4xf16>, tensor<2x4xf16>) -> tensor<2x8xf16>
func.func @bias(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %b: tensor<4xf32>, %v: tensor<8x4xf32>) -> tensor<2x4xf32> {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %a = mpc.add %h, %b in #net : (tensor<2x4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %c = mpc.concat %a, %h {axis = 1} in #net : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x8xf32>
  %y = mpc.matmul %c, %v in #net : (tensor<2x8xf32>, tensor<8x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// AMP-6: the gates of a recurrent cell are low, its state is f32.
// CHECK-LABEL: func @lstm
// CHECK-SAME: %[[C:[a-z0-9]+]]: tensor<2x1xf32>
// CHECK: %[[G:.*]] = mpc.matmul {{.*}} -> tensor<2x4xf16>
// CHECK: mpc.lstm_cell %[[G]], %[[C]] as <f16, class "allow">{{.*}} : (tensor<2x4xf16>, tensor<2x1xf32>) -> (tensor<2x1xf16>, tensor<2x1xf32>, tensor<2x4xf32>)
func.func @lstm(%c: tensor<2x1xf32>, %x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>) {
  %g = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %h, %c2, %a = mpc.lstm_cell %g, %c in #net
      : (tensor<2x4xf32>, tensor<2x1xf32>) -> (tensor<2x1xf32>, tensor<2x1xf32>, tensor<2x4xf32>)
  return %h, %c2 : tensor<2x1xf32>, tensor<2x1xf32>
}

// Integers, indices and comparisons are never touched: argmax reads what is stored.
// CHECK-LABEL: func @integers
// CHECK: mpc.argmax {{.*}} (tensor<2x4xf16>) -> tensor<2xi32>
// CHECK-NEXT: mpc.equal {{.*}} (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
// CHECK-NEXT: mpc.one_hot {{.*}} -> tensor<2x4xf32>
func.func @integers(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %l: tensor<2xi32>) -> (tensor<2xi1>, tensor<2x4xf32>) {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %i = mpc.argmax %h in #net : (tensor<2x4xf32>) -> tensor<2xi32>
  %e = mpc.equal %i, %l in #net : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
  %o = mpc.one_hot %l {depth = 4} in #net : (tensor<2xi32>) -> tensor<2x4xf32>
  return %e, %o : tensor<2xi1>, tensor<2x4xf32>
}

// The cut widens at the pooled value, a quarter of the convolution's.
// CHECK-LABEL: func @widen_late
// CHECK: mpc.relu {{.*}} : tensor<1x2x4x4xf16>
// CHECK: %[[P:.*]], %{{.*}} = mpc.max_pool2d {{.*}} -> (tensor<1x2x2x2xf16>, tensor<1x2x2x2xi8>)
// CHECK: mpc.cast %[[P]]
// CHECK: mpc.exp
func.func @widen_late(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) -> tensor<1x2x2x2xf32> {
  %c = mpc.conv2d %x, %w in #net : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %r = mpc.relu %c in #net : tensor<1x2x4x4xf32>
  %p, %i = mpc.max_pool2d %r {kernel_size = [2, 2], strides = [2, 2]} in #net
      : (tensor<1x2x4x4xf32>) -> (tensor<1x2x2x2xf32>, tensor<1x2x2x2xi8>)
  %e = mpc.exp %p in #net : tensor<1x2x2x2xf32>
  return %e : tensor<1x2x2x2xf32>
}

// A user's widening keeps Clear and Infer operations in f32 until the next matrix work.
// CHECK-LABEL: func @user_widening
// CHECK: mpc.cast {{.*}} {user = true} as <{{.*}}, user_cast, user>{{.*}} : (tensor<2x4xf16>) -> tensor<2x4xf32>
// CHECK-NEXT: mpc.relu {{.*}}, user_cast, user>{{.*}} : tensor<2x4xf32>
// CHECK-NEXT: mpc.add {{.*}}, user_cast, user>{{.*}} : tensor<2x4xf32>
// CHECK-NEXT: mpc.cast
// CHECK-NEXT: mpc.matmul {{.*}} -> tensor<2x4xf16>
func.func @user_widening(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %u = mpc.cast %h {user = true} in #net : tensor<2x4xf32>
  %r = mpc.relu %u in #net : tensor<2x4xf32>
  %a = mpc.add %r, %r in #net : tensor<2x4xf32>
  %y = mpc.matmul %a, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// AMP-32: a loss written by hand is f32 at O1 too.
// CHECK-LABEL: func @hand_written
// CHECK: mpc.mul {{.*}}, differentiated_value>{{.*}} : tensor<2x4xf32>
// CHECK: mpc.reduce_mean {{.*}}, differentiated_value>{{.*}} -> tensor<f32>
func.func @hand_written(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<f32> {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %s = mpc.mul %h, %h in #net : tensor<2x4xf32>
  %m = mpc.reduce_mean %s {axes = []} in #net : (tensor<2x4xf32>) -> tensor<f32>
  return %m : tensor<f32>
}

func.func @step(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> (tensor<f32>, tensor<4x4xf32>) {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dw = mpc.value_and_grad @hand_written(%x, %w) seed(%one) {wrt = array<i64: 1>}
      : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4x4xf32>)
  return %loss, %dw : tensor<f32>, tensor<4x4xf32>
}

// A value that the user differentiates by keeps its type, so that its uses still lead to the loss.
// CHECK-LABEL: func @by_activation
// CHECK: %[[H:.*]] = mpc.matmul {{.*}}, differentiated_by>{{.*}} -> tensor<2x4xf32>
// CHECK: mpc.matmul %{{.*}} {{.*}}, class "allow">
// CHECK: mpc.backward %{{.*}} wrt(%[[H]]) seed
func.func @by_activation(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %y = mpc.matmul %h, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %m = mpc.reduce_mean %y {axes = []} in #loss : (tensor<2x4xf32>) -> tensor<f32>
  %g = mpc.backward %m wrt(%h) seed(%one) : (tensor<f32>, tensor<2x4xf32>, tensor<f32>) -> tensor<2x4xf32>
  return %g : tensor<2x4xf32>
}
