// RUN: mpc-opt %s --mpc-attach-target=name=cuda --mpc-pack-attention | FileCheck %s
// RUN: mpc-opt %s --mpc-attach-target=name=cuda --mpc-pack-attention > %t.once && mpc-opt %t.once --mpc-pack-attention | diff %t.once -
// RUN: mpc-opt %s > %t.before && mpc-opt %s --mpc-pack-attention | diff %t.before -
// RUN: mpc-opt %s --pass-pipeline='builtin.module(mpc-step-pipeline{device=cuda})' | FileCheck %s --check-prefix=PIPELINE
// RUN: mpc-opt %s --pass-pipeline='builtin.module(mpc-step-pipeline)' | FileCheck %s --check-prefix=CPU

// PIPELINE: mpc.packed_attention
// CPU-NOT: mpc.packed_attention

// What MultiHeadAttention makes, forward: scopes and precision stay.
// CHECK-LABEL: func @forward(
// CHECK-NEXT: %[[QKV:.*]] = mpc.reshape %arg0 {shape = [2, 4, 48]} as <f16, level "O2"> in "net/attention" : (tensor<8x48xf16>) -> tensor<2x4x48xf16>
// CHECK-NEXT: %[[Y:.*]], %{{.*}} = mpc.packed_attention %[[QKV]] {causal = true, heads = 2, scale = 2.500000e-01} as <f16, level "O2"> in "net/attention" : (tensor<2x4x48xf16>) -> (tensor<2x4x16xf16>, tensor<2x2x4xf32>)
// CHECK-NEXT: %[[Z:.*]] = mpc.reshape %[[Y]] {shape = [8, 16]}
// CHECK-NEXT: return %[[Z]]
func.func @forward(%x: tensor<8x48xf16>) -> tensor<8x16xf16> {
  %p = mpc.reshape %x {shape = [2, 4, 3, 2, 8]} : (tensor<8x48xf16>) -> tensor<2x4x3x2x8xf16>
  %h = mpc.transpose %p {permutation = [2, 0, 3, 1, 4]} : (tensor<2x4x3x2x8xf16>) -> tensor<3x2x2x4x8xf16>
  %s:3 = mpc.split %h {sizes = [1, 1, 1]} : (tensor<3x2x2x4x8xf16>) -> (tensor<1x2x2x4x8xf16>, tensor<1x2x2x4x8xf16>, tensor<1x2x2x4x8xf16>)
  %q = mpc.reshape %s#0 {shape = [2, 2, 4, 8]} : (tensor<1x2x2x4x8xf16>) -> tensor<2x2x4x8xf16>
  %k = mpc.reshape %s#1 {shape = [2, 2, 4, 8]} : (tensor<1x2x2x4x8xf16>) -> tensor<2x2x4x8xf16>
  %v = mpc.reshape %s#2 {shape = [2, 2, 4, 8]} : (tensor<1x2x2x4x8xf16>) -> tensor<2x2x4x8xf16>
  %y, %l = mpc.attention %q, %k, %v {causal = true, scale = 0.25} as <f16, level "O2"> in <"net/attention", network> : (tensor<2x2x4x8xf16>, tensor<2x2x4x8xf16>, tensor<2x2x4x8xf16>) -> (tensor<2x2x4x8xf16>, tensor<2x2x4xf32>)
  %t = mpc.transpose %y {permutation = [0, 2, 1, 3]} : (tensor<2x2x4x8xf16>) -> tensor<2x4x2x8xf16>
  %z = mpc.reshape %t {shape = [8, 16]} : (tensor<2x4x2x8xf16>) -> tensor<8x16xf16>
  return %z : tensor<8x16xf16>
}

// The gradient gets y, and one tensor takes the three derivatives.
// CHECK-LABEL: func @training(
// CHECK: %[[QKV:.*]] = mpc.reshape %arg0 {shape = [2, 4, 48]}
// CHECK-NEXT: %[[Y:.*]], %[[L:.*]] = mpc.packed_attention %[[QKV]] {heads = 2, scale = 2.500000e-01}
// CHECK-NEXT: %[[Z:.*]] = mpc.reshape %[[Y]] {shape = [8, 16]}
// CHECK-NEXT: %[[DY:.*]] = mpc.reshape %arg1 {shape = [2, 4, 16]} backward
// CHECK-NEXT: %[[D:.*]] = mpc.packed_attention_grad %[[DY]], %[[QKV]], %[[Y]], %[[L]] {heads = 2, scale = 2.500000e-01} backward in <"net/attention"> : (tensor<2x4x16xf16>, tensor<2x4x48xf16>, tensor<2x4x16xf16>, tensor<2x2x4xf32>) -> tensor<2x4x48xf16>
// CHECK-NEXT: %[[DX:.*]] = mpc.reshape %[[D]] {shape = [8, 48]}
// CHECK-NEXT: return %[[Z]], %[[DX]]
func.func @training(%x: tensor<8x48xf16>, %dz: tensor<8x16xf16>) -> (tensor<8x16xf16>, tensor<8x48xf16>) {
  %p = mpc.reshape %x {shape = [2, 4, 3, 2, 8]} : (tensor<8x48xf16>) -> tensor<2x4x3x2x8xf16>
  %h = mpc.transpose %p {permutation = [2, 0, 3, 1, 4]} : (tensor<2x4x3x2x8xf16>) -> tensor<3x2x2x4x8xf16>
  %s:3 = mpc.split %h {sizes = [1, 1, 1]} : (tensor<3x2x2x4x8xf16>) -> (tensor<1x2x2x4x8xf16>, tensor<1x2x2x4x8xf16>, tensor<1x2x2x4x8xf16>)
  %q = mpc.reshape %s#0 {shape = [2, 2, 4, 8]} : (tensor<1x2x2x4x8xf16>) -> tensor<2x2x4x8xf16>
  %k = mpc.reshape %s#1 {shape = [2, 2, 4, 8]} : (tensor<1x2x2x4x8xf16>) -> tensor<2x2x4x8xf16>
  %v = mpc.reshape %s#2 {shape = [2, 2, 4, 8]} : (tensor<1x2x2x4x8xf16>) -> tensor<2x2x4x8xf16>
  %y, %l = mpc.attention %q, %k, %v {scale = 0.25} in <"net/attention"> : (tensor<2x2x4x8xf16>, tensor<2x2x4x8xf16>, tensor<2x2x4x8xf16>) -> (tensor<2x2x4x8xf16>, tensor<2x2x4xf32>)
  %t = mpc.transpose %y {permutation = [0, 2, 1, 3]} : (tensor<2x2x4x8xf16>) -> tensor<2x4x2x8xf16>
  %z = mpc.reshape %t {shape = [8, 16]} : (tensor<2x4x2x8xf16>) -> tensor<8x16xf16>
  %dt = mpc.reshape %dz {shape = [2, 4, 2, 8]} backward : (tensor<8x16xf16>) -> tensor<2x4x2x8xf16>
  %dy = mpc.transpose %dt {permutation = [0, 2, 1, 3]} backward : (tensor<2x4x2x8xf16>) -> tensor<2x2x4x8xf16>
  %dq, %dk, %dv = mpc.attention_grad %dy, %q, %k, %v, %l {scale = 0.25} backward in <"net/attention"> : (tensor<2x2x4x8xf16>, tensor<2x2x4x8xf16>, tensor<2x2x4x8xf16>, tensor<2x2x4x8xf16>, tensor<2x2x4xf32>) -> (tensor<2x2x4x8xf16>, tensor<2x2x4x8xf16>, tensor<2x2x4x8xf16>)
  %ds0 = mpc.reshape %dq {shape = [1, 2, 2, 4, 8]} backward : (tensor<2x2x4x8xf16>) -> tensor<1x2x2x4x8xf16>
  %ds1 = mpc.reshape %dk {shape = [1, 2, 2, 4, 8]} backward : (tensor<2x2x4x8xf16>) -> tensor<1x2x2x4x8xf16>
  %ds2 = mpc.reshape %dv {shape = [1, 2, 2, 4, 8]} backward : (tensor<2x2x4x8xf16>) -> tensor<1x2x2x4x8xf16>
  %dh = mpc.concat %ds0, %ds1, %ds2 backward : (tensor<1x2x2x4x8xf16>, tensor<1x2x2x4x8xf16>, tensor<1x2x2x4x8xf16>) -> tensor<3x2x2x4x8xf16>
  %dp = mpc.transpose %dh {permutation = [1, 3, 0, 2, 4]} backward : (tensor<3x2x2x4x8xf16>) -> tensor<2x4x3x2x8xf16>
  %dx = mpc.reshape %dp {shape = [8, 48]} backward : (tensor<2x4x3x2x8xf16>) -> tensor<8x48xf16>
  return %z, %dx : tensor<8x16xf16>, tensor<8x48xf16>
}

// The other usual order: parts first, then heads. A mask stays an operand.
// CHECK-LABEL: func @split_first(
// CHECK: %[[Y:.*]], %[[L:.*]] = mpc.packed_attention %arg0, %arg1 {heads = 2, scale = 1.000000e+00}
// CHECK: mpc.packed_attention_grad %arg2, %arg0, %[[Y]], %[[L]], %arg1 {heads = 2, scale = 1.000000e+00}
// CHECK-NOT: mpc.transpose
func.func @split_first(%x: tensor<2x4x48xf32>, %m: tensor<4x4xi1>, %dz: tensor<2x4x16xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x48xf32>) {
  %s:3 = mpc.split %x {axis = -1 : i64, sizes = [16, 16, 16]} : (tensor<2x4x48xf32>) -> (tensor<2x4x16xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32>)
  %q0 = mpc.reshape %s#0 {shape = [2, 4, 2, 8]} : (tensor<2x4x16xf32>) -> tensor<2x4x2x8xf32>
  %k0 = mpc.reshape %s#1 {shape = [2, 4, 2, 8]} : (tensor<2x4x16xf32>) -> tensor<2x4x2x8xf32>
  %v0 = mpc.reshape %s#2 {shape = [2, 4, 2, 8]} : (tensor<2x4x16xf32>) -> tensor<2x4x2x8xf32>
  %q = mpc.transpose %q0 {permutation = [0, 2, 1, 3]} : (tensor<2x4x2x8xf32>) -> tensor<2x2x4x8xf32>
  %k = mpc.transpose %k0 {permutation = [0, 2, 1, 3]} : (tensor<2x4x2x8xf32>) -> tensor<2x2x4x8xf32>
  %v = mpc.transpose %v0 {permutation = [0, 2, 1, 3]} : (tensor<2x4x2x8xf32>) -> tensor<2x2x4x8xf32>
  %y, %l = mpc.attention %q, %k, %v, %m {scale = 1.0} : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<4x4xi1>) -> (tensor<2x2x4x8xf32>, tensor<2x2x4xf32>)
  %t = mpc.transpose %y {permutation = [0, 2, 1, 3]} : (tensor<2x2x4x8xf32>) -> tensor<2x4x2x8xf32>
  %z = mpc.reshape %t {shape = [2, 4, 16]} : (tensor<2x4x2x8xf32>) -> tensor<2x4x16xf32>
  %dt = mpc.reshape %dz {shape = [2, 4, 2, 8]} : (tensor<2x4x16xf32>) -> tensor<2x4x2x8xf32>
  %dy = mpc.transpose %dt {permutation = [0, 2, 1, 3]} : (tensor<2x4x2x8xf32>) -> tensor<2x2x4x8xf32>
  %dq, %dk, %dv = mpc.attention_grad %dy, %q, %k, %v, %l, %m {scale = 1.0} : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4xf32>, tensor<4x4xi1>) -> (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>)
  %dq0 = mpc.transpose %dq {permutation = [0, 2, 1, 3]} : (tensor<2x2x4x8xf32>) -> tensor<2x4x2x8xf32>
  %dk0 = mpc.transpose %dk {permutation = [0, 2, 1, 3]} : (tensor<2x2x4x8xf32>) -> tensor<2x4x2x8xf32>
  %dv0 = mpc.transpose %dv {permutation = [0, 2, 1, 3]} : (tensor<2x2x4x8xf32>) -> tensor<2x4x2x8xf32>
  %ds0 = mpc.reshape %dq0 {shape = [2, 4, 16]} : (tensor<2x4x2x8xf32>) -> tensor<2x4x16xf32>
  %ds1 = mpc.reshape %dk0 {shape = [2, 4, 16]} : (tensor<2x4x2x8xf32>) -> tensor<2x4x16xf32>
  %ds2 = mpc.reshape %dv0 {shape = [2, 4, 16]} : (tensor<2x4x2x8xf32>) -> tensor<2x4x16xf32>
  %dx = mpc.concat %ds0, %ds1, %ds2 {axis = 2 : i64} : (tensor<2x4x16xf32>, tensor<2x4x16xf32>, tensor<2x4x16xf32>) -> tensor<2x4x48xf32>
  return %z, %dx : tensor<2x4x16xf32>, tensor<2x4x48xf32>
}

// One head, cut out by slices. What reads the heads of y finds them transposed back.
// CHECK-LABEL: func @one_head(
// CHECK-NEXT: %[[Y:.*]], %[[L:.*]] = mpc.packed_attention %arg0 {heads = 1, scale = 1.000000e+00}
// CHECK-NEXT: %[[R:.*]] = mpc.reshape %[[Y]] {shape = [2, 4, 1, 8]}
// CHECK-NEXT: %[[T:.*]] = mpc.transpose %[[R]] {permutation = [0, 2, 1, 3]}
// CHECK-NEXT: return %[[T]], %[[L]]
func.func @one_head(%x: tensor<2x4x24xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4xf32>) {
  %q0 = mpc.slice %x {sizes = [2, 4, 8], starts = [0, 0, 0]} : (tensor<2x4x24xf32>) -> tensor<2x4x8xf32>
  %k0 = mpc.slice %x {sizes = [2, 4, 8], starts = [0, 0, 8]} : (tensor<2x4x24xf32>) -> tensor<2x4x8xf32>
  %v0 = mpc.slice %x {sizes = [2, 4, 8], starts = [0, 0, 16]} : (tensor<2x4x24xf32>) -> tensor<2x4x8xf32>
  %q = mpc.reshape %q0 {shape = [2, 1, 4, 8]} : (tensor<2x4x8xf32>) -> tensor<2x1x4x8xf32>
  %k = mpc.reshape %k0 {shape = [2, 1, 4, 8]} : (tensor<2x4x8xf32>) -> tensor<2x1x4x8xf32>
  %v = mpc.reshape %v0 {shape = [2, 1, 4, 8]} : (tensor<2x4x8xf32>) -> tensor<2x1x4x8xf32>
  %y, %l = mpc.attention %q, %k, %v {scale = 1.0} : (tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4xf32>)
  return %y, %l : tensor<2x1x4x8xf32>, tensor<2x1x4xf32>
}

// Not taken: keys in front of queries.
// CHECK-LABEL: func @keys_first(
// CHECK: mpc.attention %
func.func @keys_first(%x: tensor<2x4x24xf32>) -> tensor<2x1x4x8xf32> {
  %s:3 = mpc.split %x {axis = 2 : i64, sizes = [8, 8, 8]} : (tensor<2x4x24xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>)
  %k = mpc.reshape %s#0 {shape = [2, 1, 4, 8]} : (tensor<2x4x8xf32>) -> tensor<2x1x4x8xf32>
  %q = mpc.reshape %s#1 {shape = [2, 1, 4, 8]} : (tensor<2x4x8xf32>) -> tensor<2x1x4x8xf32>
  %v = mpc.reshape %s#2 {shape = [2, 1, 4, 8]} : (tensor<2x4x8xf32>) -> tensor<2x1x4x8xf32>
  %y, %l = mpc.attention %q, %k, %v {scale = 1.0} : (tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4xf32>)
  return %y : tensor<2x1x4x8xf32>
}

// Not taken: each head has its query, key and value beside each other.
// CHECK-LABEL: func @by_head(
// CHECK: mpc.attention %
func.func @by_head(%x: tensor<2x4x48xf32>) -> tensor<2x2x4x8xf32> {
  %p = mpc.reshape %x {shape = [2, 4, 2, 3, 8]} : (tensor<2x4x48xf32>) -> tensor<2x4x2x3x8xf32>
  %h = mpc.transpose %p {permutation = [3, 0, 2, 1, 4]} : (tensor<2x4x2x3x8xf32>) -> tensor<3x2x2x4x8xf32>
  %s:3 = mpc.split %h {sizes = [1, 1, 1]} : (tensor<3x2x2x4x8xf32>) -> (tensor<1x2x2x4x8xf32>, tensor<1x2x2x4x8xf32>, tensor<1x2x2x4x8xf32>)
  %q = mpc.reshape %s#0 {shape = [2, 2, 4, 8]} : (tensor<1x2x2x4x8xf32>) -> tensor<2x2x4x8xf32>
  %k = mpc.reshape %s#1 {shape = [2, 2, 4, 8]} : (tensor<1x2x2x4x8xf32>) -> tensor<2x2x4x8xf32>
  %v = mpc.reshape %s#2 {shape = [2, 2, 4, 8]} : (tensor<1x2x2x4x8xf32>) -> tensor<2x2x4x8xf32>
  %y, %l = mpc.attention %q, %k, %v {scale = 1.0} : (tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>, tensor<2x2x4x8xf32>) -> (tensor<2x2x4x8xf32>, tensor<2x2x4xf32>)
  return %y : tensor<2x2x4x8xf32>
}

// Not taken: values of another product.
// CHECK-LABEL: func @two_products(
// CHECK: mpc.attention %
func.func @two_products(%x: tensor<2x4x24xf32>, %w: tensor<2x4x24xf32>) -> tensor<2x1x4x8xf32> {
  %s:3 = mpc.split %x {axis = 2 : i64, sizes = [8, 8, 8]} : (tensor<2x4x24xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>)
  %o:3 = mpc.split %w {axis = 2 : i64, sizes = [8, 8, 8]} : (tensor<2x4x24xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>)
  %q = mpc.reshape %s#0 {shape = [2, 1, 4, 8]} : (tensor<2x4x8xf32>) -> tensor<2x1x4x8xf32>
  %k = mpc.reshape %s#1 {shape = [2, 1, 4, 8]} : (tensor<2x4x8xf32>) -> tensor<2x1x4x8xf32>
  %v = mpc.reshape %o#2 {shape = [2, 1, 4, 8]} : (tensor<2x4x8xf32>) -> tensor<2x1x4x8xf32>
  %y, %l = mpc.attention %q, %k, %v {scale = 1.0} : (tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4xf32>)
  return %y : tensor<2x1x4x8xf32>
}

// Not taken: the gradient of the queries goes elsewhere too, so both forms would be computed.
// CHECK-LABEL: func @query_gradient(
// CHECK: mpc.attention %
// CHECK: mpc.attention_grad %
func.func @query_gradient(%x: tensor<2x4x24xf32>, %dy: tensor<2x1x4x8xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x4x24xf32>) {
  %s:3 = mpc.split %x {axis = 2 : i64, sizes = [8, 8, 8]} : (tensor<2x4x24xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>)
  %q = mpc.reshape %s#0 {shape = [2, 1, 4, 8]} : (tensor<2x4x8xf32>) -> tensor<2x1x4x8xf32>
  %k = mpc.reshape %s#1 {shape = [2, 1, 4, 8]} : (tensor<2x4x8xf32>) -> tensor<2x1x4x8xf32>
  %v = mpc.reshape %s#2 {shape = [2, 1, 4, 8]} : (tensor<2x4x8xf32>) -> tensor<2x1x4x8xf32>
  %y, %l = mpc.attention %q, %k, %v {scale = 1.0} : (tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4xf32>)
  %dq, %dk, %dv = mpc.attention_grad %dy, %q, %k, %v, %l {scale = 1.0} : (tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4xf32>) -> (tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>, tensor<2x1x4x8xf32>)
  %ds0 = mpc.reshape %dq {shape = [2, 4, 8]} : (tensor<2x1x4x8xf32>) -> tensor<2x4x8xf32>
  %ds1 = mpc.reshape %dk {shape = [2, 4, 8]} : (tensor<2x1x4x8xf32>) -> tensor<2x4x8xf32>
  %ds2 = mpc.reshape %dv {shape = [2, 4, 8]} : (tensor<2x1x4x8xf32>) -> tensor<2x4x8xf32>
  %dx = mpc.concat %ds0, %ds1, %ds2 {axis = 2 : i64} : (tensor<2x4x8xf32>, tensor<2x4x8xf32>, tensor<2x4x8xf32>) -> tensor<2x4x24xf32>
  return %dq, %dx : tensor<2x1x4x8xf32>, tensor<2x4x24xf32>
}
