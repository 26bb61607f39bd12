// RUN: mpc-opt %s --mpc-amp="level=O1" --mpc-verify-precision="level=O1" --verify-diagnostics | FileCheck %s
// RUN: mpc-opt %s --mpc-amp="level=auto" 2>/dev/null | FileCheck %s --check-prefix=AUTO
// RUN: mpc-opt %s --mpc-amp="level=O1 dtype=bf16" | FileCheck %s --check-prefix=BF16
// RUN: mpc-opt %s --mpc-amp="level=O1" > %t.once && mpc-opt %t.once --mpc-amp="level=O1" | diff %t.once -

#net = #mpc.scope<"net", network>

// AMP-34: an operation with a number that f16 cannot hold is f32, where the cut would have it low. bf16 holds it.
// CHECK-LABEL: func @masked_scores
// CHECK: %[[S:.*]] = mpc.matmul {{.*}} : tensor<4x4xf16>
// CHECK: %[[F:.*]] = mpc.cast %[[S]] : (tensor<4x4xf16>) -> tensor<4x4xf32>
// CHECK: mpc.where %{{.*}}, %[[F]], %{{.*}} as <f32, class "clear, constant -1e+09 is beyond f16">{{.*}} -> tensor<4x4xf32>
// CHECK: mpc.relu %{{.*}} as <f16, cut>
// AUTO-LABEL: func @masked_scores
// AUTO: mpc.where {{.*}} as <f32, class "clear, constant -1e+09 is beyond f16">
// BF16-LABEL: func @masked_scores
// BF16: mpc.where {{.*}} as <bf16, cut>
func.func @masked_scores(%x: tensor<4x4xf32>, %keep: tensor<4x4xi1>) -> tensor<4x4xf32> {
  %never = mpc.constant {value = dense<-1.0e9> : tensor<4x4xf32>} : () -> tensor<4x4xf32>
  %s = mpc.matmul %x, %x in #net : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %w = mpc.where %keep, %s, %never in #net : (tensor<4x4xi1>, tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %m = mpc.matmul %w, %x in #net : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %r = mpc.relu %m in #net : tensor<4x4xf32>
  %y = mpc.matmul %r, %x in #net : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// A term is lost beside zero, and a factor makes infinity of 1.
// CHECK-LABEL: func @scalars
// CHECK: mpc.add_scalar %{{.*}} as <f32, class "infer, constant 1e-08 is beyond f16">
// CHECK: mpc.mul_scalar %{{.*}} as <f32, class "infer, constant 100000 is beyond f16">
// CHECK: mpc.mul_scalar %{{.*}} as <f16, cut>
func.func @scalars(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %h = mpc.matmul %x, %x in #net : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %a = mpc.add_scalar %h {value = 1.0e-8} in #net : tensor<4x4xf32>
  %i = mpc.matmul %a, %x in #net : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %b = mpc.mul_scalar %i {value = 1.0e5} in #net : tensor<4x4xf32>
  %j = mpc.matmul %b, %x in #net : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = mpc.mul_scalar %j {value = 1.0e-8} in #net : tensor<4x4xf32>
  %y = mpc.matmul %c, %x in #net : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
