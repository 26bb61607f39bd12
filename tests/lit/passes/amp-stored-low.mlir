// RUN: mpc-opt %s --mpc-amp="level=O1" | FileCheck %s
// RUN: mpc-opt %s --mpc-amp="level=O1" > %t.once && mpc-opt %t.once --mpc-amp="level=O1" | diff %t.once -

#net = #mpc.scope<"net", network>

// The infer rule ends at an operation that is stored low: what reads it is open, and joins the matmul behind it.
// CHECK-LABEL: func @predict
// CHECK: %[[E:.*]] = mpc.exp {{.*}}, class "deny">{{.*}} : tensor<2x4xf32>
// CHECK: %[[L:.*]] = mpc.cast %[[E]] : (tensor<2x4xf32>) -> tensor<2x4xf16>
// CHECK: %[[R:.*]] = mpc.relu %[[L]] {{.*}}, stored_assignment>{{.*}} : tensor<2x4xf16>
// CHECK: mpc.add %[[R]], %[[R]] {{.*}}, cut>{{.*}} : tensor<2x4xf16>
module attributes {mpc.assignment = {"net#relu.0" = "f16"}} {
  func.func @predict(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
    %e = mpc.exp %x in #net : tensor<2x4xf32>
    %r = mpc.relu %e in #net : tensor<2x4xf32>
    %q = mpc.add %r, %r in #net : tensor<2x4xf32>
    %y = mpc.matmul %q, %w in #net : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
    return %y : tensor<2x4xf32>
  }
}
