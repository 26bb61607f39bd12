// RUN: mpc-opt %s --mpc-amp | FileCheck %s --check-prefix=O0
// RUN: mpc-opt %s --mpc-amp="level=O2" | FileCheck %s --check-prefix=O2
// RUN: mpc-opt %s --mpc-amp="level=O3" | FileCheck %s --check-prefix=O3
// RUN: mpc-opt %s --mpc-amp="level=O2 dtype=bf16" | FileCheck %s --check-prefix=BF16
// RUN: mpc-opt %s --mpc-amp="level=O2" > %t.once && mpc-opt %t.once --mpc-amp="level=O2" | diff %t.once -
// RUN: mpc-opt %s --mpc-amp="level=O2 keep-batchnorm-fp32=false" > %t.o2
// RUN: mpc-opt %s --mpc-amp="level=O3" | sed -e 's/level "O3"/level "O2"/' | diff %t.o2 -
// RUN: mpc-opt %s --mpc-amp="level=O3 keep-batchnorm-fp32=true" > %t.o3
// RUN: mpc-opt %s --mpc-amp="level=O2" | sed -e 's/level "O2"/level "O3"/' | diff %t.o3 -

// AMP-35: O2 without kept norms has the casts of O3, O3 with kept norms those of O2 (the last four lines above).

#network = #mpc.scope<"net", network>
#loss = #mpc.scope<"loss">

// Every signature keeps its types; every value is cast once, right after it exists.

// O0-LABEL: func @loss_fn
// O0-NOT: mpc.cast
// O0: mpc.matmul {{.*}} as <f32, level "O0">
// O0: mpc.softmax_cross_entropy {{.*}} as <f32, loss>

// O2-LABEL: func @loss_fn
// O2-SAME: (%[[W:[a-z0-9]+]]: tensor<4x4xf32>, %[[G:[a-z0-9]+]]: tensor<4xf32>, %[[B:[a-z0-9]+]]: tensor<4xf32>, %[[X:[a-z0-9]+]]: tensor<2x4xf32>, %[[L:[a-z0-9]+]]: tensor<2x4xf32>)
// O2-SAME: -> (tensor<f32>, tensor<4xf32>)
// O2-DAG: %[[XL:.*]] = mpc.cast %[[X]] : (tensor<2x4xf32>) -> tensor<2x4xf16>
// O2-DAG: %[[WL:.*]] = mpc.cast %[[W]] : (tensor<4x4xf32>) -> tensor<4x4xf16>
// O2: %[[H:.*]] = mpc.matmul %[[XL]], %[[WL]] {{.*}}, level "O2">{{.*}} -> tensor<2x4xf16>
// O2: %[[N:.*]], %[[M:.*]], %{{.*}}, %{{.*}} = mpc.batch_norm_train %[[H]], %[[G]], %[[B]] {{.*}}, norm_kept_f32, folded>
// O2-SAME: (tensor<2x4xf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
// O2: %[[R:.*]] = mpc.relu %[[N]] {{.*}} : tensor<2x4xf16>
// O2: %[[O:.*]] = mpc.matmul %[[R]], %[[WL]] {{.*}} -> tensor<2x4xf16>
// O2: %[[OF:.*]] = mpc.cast %[[O]] : (tensor<2x4xf16>) -> tensor<2x4xf32>
// O2: mpc.softmax_cross_entropy %[[OF]], %[[L]] {{.*}}, loss>{{.*}} : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<f32>, tensor<2xf32>)
// O2-NOT: mpc.cast
// O2: return

// O3-LABEL: func @loss_fn
// O3: mpc.batch_norm_train {{.*}}, level "O3">{{.*}} (tensor<2x4xf16>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf16>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)

// BF16-LABEL: func @loss_fn
// BF16: mpc.matmul {{.*}} (tensor<2x4xbf16>, tensor<4x4xbf16>) -> tensor<2x4xbf16>
func.func @loss_fn(%w: tensor<4x4xf32>, %gamma: tensor<4xf32>, %beta: tensor<4xf32>, %x: tensor<2x4xf32>,
                   %labels: tensor<2x4xf32>) -> (tensor<f32>, tensor<4xf32>) {
  %h = mpc.matmul %x, %w in #network : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %n, %mean, %variance, %inv = mpc.batch_norm_train %h, %gamma, %beta in #network
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %r = mpc.relu %n in #network : tensor<2x4xf32>
  %o = mpc.matmul %r, %w in #network : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %loss, %lse = mpc.softmax_cross_entropy %o, %labels in #loss
      : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<f32>, tensor<2xf32>)
  return %loss, %mean : tensor<f32>, tensor<4xf32>
}

// The step itself is outside every network.
// O2-LABEL: func @train_step
// O2-NOT: mpc.cast
// O2: return
func.func @train_step(%w: tensor<4x4xf32>, %gamma: tensor<4xf32>, %beta: tensor<4xf32>, %x: tensor<2x4xf32>,
                      %labels: tensor<2x4xf32>, %v: tensor<4x4xf32>, %lr: tensor<f32>)
    -> (tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>) {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %mean, %dw = mpc.value_and_grad @loss_fn(%w, %gamma, %beta, %x, %labels) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x4xf32>, tensor<2x4xf32>, tensor<f32>)
      -> (tensor<f32>, tensor<4xf32>, tensor<4x4xf32>)
  %w2, %v2 = mpc.momentum %w, %v, %dw, %lr
      : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>, tensor<f32>) -> (tensor<4x4xf32>, tensor<4x4xf32>)
  return %loss, %w2, %v2 : tensor<f32>, tensor<4x4xf32>, tensor<4x4xf32>
}

// A norm whose result leaves the network, or that a loss reads, is written in f32.
// O2-LABEL: func @norm_to_output
// O2: mpc.batch_norm_infer {{.*}}, norm_kept_f32, folded>{{.*}} : (tensor<2x4xf16>, {{.*}}) -> tensor<2x4xf32>
// O2-NOT: mpc.cast
// O2: return
func.func @norm_to_output(%w: tensor<4x4xf32>, %s: tensor<4xf32>, %x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %h = mpc.matmul %x, %w in #network : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %y = mpc.batch_norm_infer %h, %s, %s, %s, %s in #network
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// A norm reads what is stored, so that one in front of it may store low.
// O2-LABEL: func @norms
// O2: %[[FIRST:.*]] = mpc.batch_norm_infer {{.*}}, norm_kept_f32, folded>{{.*}} -> tensor<2x4xf16>
// O2-NEXT: mpc.batch_norm_infer %[[FIRST]], {{.*}} -> tensor<2x4xf32>
func.func @norms(%w: tensor<4x4xf32>, %s: tensor<4xf32>, %x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %h = mpc.matmul %x, %w in #network : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %n = mpc.batch_norm_infer %h, %s, %s, %s, %s in #network
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %y = mpc.batch_norm_infer %n, %s, %s, %s, %s in #network
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// Reductions and softmax are inside the network: low storage, f32 arithmetic. Integers are never touched.
// O2-LABEL: func @deny
// O2: mpc.softmax {{.*}} : tensor<2x4xf16>
// O2: mpc.argmax {{.*}} (tensor<2x4xf16>) -> tensor<2xi32>
// O2: mpc.equal {{.*}} (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
func.func @deny(%w: tensor<4x4xf32>, %x: tensor<2x4xf32>, %labels: tensor<2xi32>) -> tensor<2xi1> {
  %h = mpc.matmul %x, %w in #network : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %p = mpc.softmax %h in #network : tensor<2x4xf32>
  %i = mpc.argmax %p in #network : (tensor<2x4xf32>) -> tensor<2xi32>
  %e = mpc.equal %i, %labels in #network : (tensor<2xi32>, tensor<2xi32>) -> tensor<2xi1>
  return %e : tensor<2xi1>
}
