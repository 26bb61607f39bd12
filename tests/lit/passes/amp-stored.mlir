// RUN: mpc-opt %s --mpc-amp="level=O1" | FileCheck %s
// RUN: mpc-opt %s --mpc-amp="level=O1" > %t.once && mpc-opt %t.once --mpc-amp="level=O1" | diff %t.once -
// RUN: mpc-opt %s --mpc-amp="level=O2" | FileCheck %s --check-prefix=O2

// A stored assignment is used where it names a slot, whatever the cut would choose; the rest is solved around it and
// joins it. Other levels ignore it.
#net = #mpc.scope<"net", network>
#bn = #mpc.scope<"net/bn", network>

// CHECK: module attributes {mpc.assignment = {
// CHECK-SAME: "net#matmul.0" = "f16"
// CHECK-SAME: "net#relu.0" = "f32"
// CHECK-SAME: "net#relu.1" = "f16"
// CHECK-SAME: "net/bn#batch_norm.0.y" = "f32"
// CHECK-LABEL: func @predict
// CHECK: mpc.matmul {{.*}}, class "allow">
// CHECK-NEXT: mpc.batch_norm_infer {{.*}}, stored_assignment>{{.*}} : (tensor<2x4xf16>, {{.*}} -> tensor<2x4xf32>
// CHECK-NEXT: mpc.relu {{.*}}, stored_assignment>{{.*}} : tensor<2x4xf32>
// CHECK-NEXT: mpc.cast
// CHECK-NEXT: mpc.relu {{.*}}, cut>{{.*}} : tensor<2x4xf16>
// CHECK: mpc.matmul
// O2: mpc.relu {{.*}}, level "O2">{{.*}} : tensor<2x4xf16>
module attributes {mpc.assignment = {"net#relu.0" = "f32", "net/bn#batch_norm.0.x" = "f16", "net/bn#batch_norm.0.y" = "f32", "net#exp.0" = "f32"}} {
  func.func @predict(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %v: tensor<4x1xf32>, %s: tensor<4xf32>) -> tensor<2x1xf32> {
    %h = mpc.matmul %x, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    %n = mpc.batch_norm_infer %h, %s, %s, %s, %s in #bn
        : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x4xf32>
    %r = mpc.relu %n in #net : tensor<2x4xf32>
    %q = mpc.relu %r in #net : tensor<2x4xf32>
    %y = mpc.matmul %q, %v in #net : (tensor<2x4xf32>, tensor<4x1xf32>) -> tensor<2x1xf32>
    return %y : tensor<2x1xf32>
  }
}
