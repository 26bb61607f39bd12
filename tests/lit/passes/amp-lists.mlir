// RUN: mpc-opt %s --mpc-amp="level=O1 allow=softmax,net/head/out deny=net/head,conv infer=net/odd clear=sigmoid" --mpc-verify-precision="level=O1 allow=softmax,net/head/out" | FileCheck %s
// RUN: mpc-opt %s --mpc-amp="level=O2 allow=batch_norm deny=softmax infer=net/odd" | FileCheck %s --check-prefix=O2
// RUN: mpc-opt %s --mpc-amp="level=O0 allow=softmax deny=conv" | FileCheck %s --check-prefix=O0
// RUN: mpc-opt %s --mpc-amp="level=O1 allow=softmax" > %t.once && mpc-opt %t.once --mpc-amp="level=O1 allow=softmax" | diff %t.once -
// RUN: mpc-opt %s --mpc-amp="level=O1 deny=net/haed,relu" 2>&1 | FileCheck %s --check-prefix=UNKNOWN
// RUN: not mpc-opt %s --mpc-amp="level=O1 allow=softmax deny=softmax" 2>&1 | FileCheck %s --check-prefix=TWICE
// RUN: not mpc-opt %s --mpc-amp="level=O1 infer=net/head clear=relu,net/head" 2>&1 | FileCheck %s --check-prefix=PATH
// RUN: not mpc-opt %s --mpc-amp="level=O1 allow=softmax" --mpc-verify-precision="level=O1" 2>&1 | FileCheck %s --check-prefix=VERIFY

// UNKNOWN: remark: list entry 'net/haed' is no operation and matches no Cell path
// UNKNOWN-NOT: 'relu'
// TWICE: error: 'softmax' is in two lists, allow and deny; keep one
// PATH: error: 'net/head' is in two lists, infer and clear; keep one
// VERIFY: error: 'mpc.softmax' op has a value of type 'tensor<2x4xf16>' in 'net'; its class computes, reads and writes f32 at O1 and auto

#net = #mpc.scope<"net", network>
#head = #mpc.scope<"net/head", network>
#inner = #mpc.scope<"net/head/fc", network>
#out = #mpc.scope<"net/head/out", network>
#header = #mpc.scope<"net/header", network>
#odd = #mpc.scope<"net/odd", network>
#pinned = #mpc.scope<"net/head/pinned", network, pin = f16>

// An operation by name; a user's entry lets a Deny operation compute low.
// CHECK-LABEL: func @names
// CHECK: mpc.softmax {{.*}}, list_entry "'softmax' (allow)", user>{{.*}} : tensor<2x4xf16>
// CHECK: mpc.exp {{.*}}, class "deny">{{.*}} : tensor<2x4xf32>
// CHECK: mpc.sigmoid {{.*}}, cut "list entry 'sigmoid' (clear)", user>
// O2-LABEL: func @names
// O2: mpc.softmax {{.*}}, list_entry "'softmax' (deny)", user>{{.*}} : tensor<2x4xf32>
// O2: mpc.batch_norm_infer {{.*}}, list_entry "'batch_norm' (allow)", user>{{.*}} -> tensor<2x4xf16>
// O0-LABEL: func @names
// O0: mpc.softmax {{.*}}, level "O0">
func.func @names(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %s: tensor<4xf32>) -> tensor<2x4xf32> {
  %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %p = mpc.softmax %h in #net : tensor<2x4xf32>
  %e = mpc.exp %p in #net : tensor<2x4xf32>
  %g = mpc.sigmoid %e in #net : tensor<2x4xf32>
  %n = mpc.batch_norm_infer %g, %s, %s, %s, %s in #net
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %n : tensor<2x4xf32>
}

// A Cell path covers what is inside and nothing that merely begins like it; the innermost entry wins, a path beats a
// name, and ToFloat beats both.
// CHECK-LABEL: func @paths
// CHECK: mpc.matmul {{.*}}, list_entry "'net/head' (deny)", user>{{.*}} -> tensor<2x4xf32>
// CHECK: mpc.matmul {{.*}}, list_entry "'net/head' (deny)", user>{{.*}} -> tensor<2x4xf32>
// CHECK: mpc.softmax {{.*}}, list_entry "'net/head' (deny)", user>{{.*}} : tensor<2x4xf32>
// CHECK: mpc.matmul {{.*}}, list_entry "'net/head/out' (allow)", user>{{.*}} -> tensor<2x4xf16>
// CHECK: mpc.matmul {{.*}}, class "allow">{{.*}} -> tensor<2x4xf16>
// CHECK: mpc.matmul {{.*}}, to_float "f16", user>{{.*}} -> tensor<2x4xf16>
// CHECK: mpc.matmul {{.*}}, cut "list entry 'net/odd' (infer)", user>
func.func @paths(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %a = mpc.matmul %x, %w in #head : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %b = mpc.matmul %a, %w in #inner : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %p = mpc.softmax %b in #inner : tensor<2x4xf32>
  %c = mpc.matmul %p, %w in #out : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %d = mpc.matmul %c, %w in #header : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %e = mpc.matmul %d, %w in #pinned : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %f = mpc.matmul %e, %w in #odd : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %f : tensor<2x4xf32>
}

// A family's name stands for its operations.
// CHECK-LABEL: func @families
// CHECK: mpc.conv2d {{.*}}, list_entry "'conv' (deny)", user>{{.*}} -> tensor<1x1x2x2xf32>
func.func @families(%x: tensor<1x1x2x2xf32>, %w: tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32> {
  %c = mpc.conv2d %x, %w in #net : (tensor<1x1x2x2xf32>, tensor<1x1x1x1xf32>) -> tensor<1x1x2x2xf32>
  return %c : tensor<1x1x2x2xf32>
}
