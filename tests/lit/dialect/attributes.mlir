// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s

// What was decided about a precision: with one reason or several, with and without a detail, a type and marks.
// CHECK-LABEL: func @precision
// CHECK: mpc.relu %{{.*}} as <f16, level "O2"> :
// CHECK: mpc.relu %{{.*}} as <f32, class "norm", folded> :
// CHECK: mpc.relu %{{.*}} as <bf16, to_float "bf16", user> :
// CHECK: mpc.relu %{{.*}} as <f32, cut | list_entry "'relu' (infer)" | infer_rule, user, folded> :
// CHECK: mpc.argmax %{{.*}} {axis = 1} as <class "clear"> :
func.func @precision(%x: tensor<4x2xf32>) {
  %0 = mpc.relu %x as <f16, level "O2"> : tensor<4x2xf32>
  %1 = mpc.relu %x as <f32, class "norm", folded> : tensor<4x2xf32>
  %2 = mpc.relu %x as <bf16, to_float "bf16", user> : tensor<4x2xf32>
  %3 = mpc.relu %x as <f32, cut | list_entry "'relu' (infer)" | infer_rule, folded, user>
      : tensor<4x2xf32>
  %4 = mpc.argmax %x {axis = 1} as <class "clear"> : (tensor<4x2xf32>) -> tensor<4xi32>
  return
}

// One reason alone.
// CHECK-LABEL: func @reason
// CHECK-SAME: reasons = [#mpc.precision_reason<cut>, #mpc.precision_reason<level "O2">]
func.func @reason() attributes {reasons = [#mpc.precision_reason<cut>, #mpc.precision_reason<level "O2">]} {
  return
}

// Attributes of functions and operations.
// CHECK-LABEL: func @step
// CHECK-SAME: attributes {mpc.gradients = {first_bad = ["w", "b"]}, mpc.head_chunks = array<i64: 4, 1024>, mpc.recompute_candidates = array<i64: 3, 1>, mpc.step}
// CHECK: mpc.relu %{{.*}} {mpc.chain, mpc.recompute = 2 : i64, mpc.recomputed} backward :
func.func @step(%x: tensor<4xf32>)
    attributes {mpc.step, mpc.gradients = {first_bad = ["w", "b"]}, mpc.head_chunks = array<i64: 4, 1024>,
                mpc.recompute_candidates = array<i64: 3, 1>} {
  %0 = mpc.relu %x {mpc.chain, mpc.recompute = 2 : i64, mpc.recomputed} backward : tensor<4xf32>
  return
}

// CHECK: module @target attributes {mpc.target = #mpc.target<"cpu", winograd = true>}
module @target attributes {mpc.target = #mpc.target<"cpu", winograd = true>} {
}

// CHECK: module @other attributes {mpc.target = #mpc.target<"cuda", arch = "sm_90", tf32 = true>}
module @other attributes {mpc.target = #mpc.target<"cuda", arch = "sm_90", tf32 = true>} {
}
