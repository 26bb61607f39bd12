// RUN: mpc-opt %s --mpc-amp | FileCheck %s
// RUN: mpc-opt %s --mpc-amp > %t.once && mpc-opt %t.once --mpc-amp | diff %t.once -
// RUN: mpc-opt %s --mpc-amp="level=O2" | FileCheck %s --check-prefix=O2

// amp::AutoCast: the innermost scope's level and low type beat those of the module, inside and outside a network.
#plain = #mpc.scope<"net">
#net = #mpc.scope<"net", network>
#o1 = #mpc.scope<"net", level = "O1", low = f16>
#o1_bf16 = #mpc.scope<"net", network, level = "O1", low = bf16>
#o2 = #mpc.scope<"net", network, level = "O2", low = f16>
#o3 = #mpc.scope<"net", network, level = "O3", low = f16>
#off = #mpc.scope<"net", network, level = "O0">

// CHECK-LABEL: func @outside_a_network
// CHECK: mpc.matmul {{.*}}, class "allow">{{.*}} -> tensor<2x4xf16>
// CHECK: mpc.relu {{.*}}, cut>{{.*}} : tensor<2x4xf16>
// CHECK: mpc.cast
// CHECK: mpc.softmax {{.*}}, class "deny">{{.*}} : tensor<2x4xf32>
// CHECK: mpc.matmul {{.*}} -> tensor<2x4xf32>
// O2-LABEL: func @outside_a_network
// O2: mpc.matmul {{.*}}, class "allow">{{.*}} -> tensor<2x4xf16>
// O2: mpc.matmul %{{[a-z0-9]+}}, %{{[a-z0-9]+}} in <"net"> :
func.func @outside_a_network(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %h = mpc.matmul %x, %w in #o1 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %r = mpc.relu %h in #o1 : tensor<2x4xf32>
  %s = mpc.softmax %r in #o1 : tensor<2x4xf32>
  %y = mpc.matmul %s, %w in #plain : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// CHECK-LABEL: func @inside_a_network
// CHECK: mpc.matmul {{.*}}, level "O0">{{.*}} -> tensor<2x4xf32>
// CHECK: mpc.matmul {{.*}}, class "allow">{{.*}} -> tensor<2x4xbf16>
// CHECK: mpc.softmax {{.*}}, level "O2">{{.*}} : tensor<2x4xf16>
// CHECK: mpc.exp {{.*}}, level "O0">{{.*}} : tensor<2x4xf32>
// O2-LABEL: func @inside_a_network
// O2: mpc.matmul {{.*}}, level "O2">{{.*}} -> tensor<2x4xf16>
// O2: mpc.matmul {{.*}}, class "allow">{{.*}} -> tensor<2x4xbf16>
// O2: mpc.softmax {{.*}}, level "O2">{{.*}} : tensor<2x4xf16>
// O2: mpc.exp {{.*}}, level "O0">{{.*}} : tensor<2x4xf32>
func.func @inside_a_network(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %a = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %b = mpc.matmul %a, %w in #o1_bf16 : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %c = mpc.softmax %b in #o2 : tensor<2x4xf32>
  %d = mpc.exp %c in #off : tensor<2x4xf32>
  return %d : tensor<2x4xf32>
}

// Norms are kept at a scope's O2 and low at its O3.
// CHECK-LABEL: func @norms
// CHECK: mpc.batch_norm_infer {{.*}}, norm_kept_f32>{{.*}} -> tensor<2x4xf32>
// CHECK: mpc.batch_norm_infer {{.*}}, level "O3">{{.*}} -> tensor<2x4xf16>
func.func @norms(%x: tensor<2x4xf32>, %s: tensor<4xf32>) -> (tensor<2x4xf32>, tensor<2x4xf32>) {
  %a = mpc.batch_norm_infer %x, %s, %s, %s, %s in #o2
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  %b = mpc.batch_norm_infer %x, %s, %s, %s, %s in #o3
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
  return %a, %b : tensor<2x4xf32>, tensor<2x4xf32>
}
