// Operations that no other joins: on the CPU some have no kernel written by hand.
// RUN: mpc-opt %s --mpc-fusion | FileCheck %s --check-prefixes=CHECK,CPU,FUSED
// RUN: mpc-opt %s --mpc-fusion > %t.once && mpc-opt %t.once --mpc-fusion | diff %t.once -
// RUN: mpc-opt %s --mpc-fusion=max-operations=1 | FileCheck %s --check-prefixes=CHECK,CPU,ONE
// RUN: mpc-opt %s --mpc-fusion=max-operations=1 > %t.one && mpc-opt %t.one --mpc-fusion=max-operations=1 | diff %t.one -
// RUN: mpc-opt %s --mpc-attach-target=name=cuda --mpc-fusion | FileCheck %s --check-prefixes=CHECK,CUDA,GPU
// RUN: mpc-opt %s --mpc-attach-target=name=cuda --mpc-fusion=max-operations=1 | FileCheck %s --check-prefixes=CHECK,CUDA,UNFUSED

// Generated code is all that the CPU has for it; the region says where it comes from, as others do.
// CHECK-LABEL: func @without_kernel
// CPU-NEXT: %[[F:.*]] = mpc.fusion(%arg0) {
// CPU-NEXT: ^bb0(%[[X:.*]]: tensor<8x16xf32>):
// CPU-NEXT:   %[[S:.*]] = mpc.softmax %[[X]]
// CPU-NEXT:   mpc.yield %[[S]]
// CPU-NEXT: } {mpc.fusion_choice = {bytes_saved = 0 : i64, left_out = ["matmul: it is not computed element by element"]}, mpc.scope = #mpc.scope<"net/head">}
// CPU: mpc.matmul %[[F]]
// CUDA-NEXT: mpc.softmax
// CUDA-NEXT: mpc.matmul
func.func @without_kernel(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>) -> tensor<8x16xf32> {
  %0 = mpc.softmax %x in <"net/head"> : tensor<8x16xf32>
  %1 = mpc.matmul %0, %w : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  return %1 : tensor<8x16xf32>
}

// What has a kernel keeps it, if small; without fusion, each neighbour of a region, too.
// CHECK-LABEL: func @with_kernel
// FUSED: mpc.fusion
// FUSED:   mpc.add
// FUSED:   mpc.layer_norm
// FUSED:   mpc.relu
// ONE: mpc.add
// ONE: mpc.fusion
// ONE-NEXT: ^bb0
// ONE-NEXT:   mpc.layer_norm
// ONE-NEXT:   mpc.yield
// ONE: mpc.relu
// CUDA: mpc.layer_norm
func.func @with_kernel(%x: tensor<8x16xf32>, %r: tensor<8x16xf32>, %g: tensor<16xf32>) -> tensor<8x16xf32> {
  %s = mpc.add %x, %r : tensor<8x16xf32>
  %y, %mean, %inv_std = mpc.layer_norm %s, %g, %g
      : (tensor<8x16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>, tensor<8xf32>)
  %z = mpc.relu %y : tensor<8x16xf32>
  return %z : tensor<8x16xf32>
}

// Rows of a region are contiguous: another axis changes places with the last one, and back. A last axis behind which
// only extents of 1 follow stays.
// CHECK-LABEL: func @other_axis
// CPU-NEXT: %[[TX:.*]] = mpc.transpose %arg0 {permutation = [0, 3, 2, 1]} in <"net"> : (tensor<2x3x4x5xbf16>) -> tensor<2x5x4x3xbf16>
// CPU-NEXT: %[[F:.*]] = mpc.fusion(%[[TX]]) {
// CPU-NEXT: ^bb0
// CPU-NEXT:   mpc.log_softmax {{.*}}{axis = 3}{{.*}} : (tensor<2x5x4x3xbf16>) -> tensor<2x5x4x3xf32>
// CPU:      %[[Y:.*]] = mpc.transpose %[[F]] {permutation = [0, 3, 2, 1]} in <"net"> : (tensor<2x5x4x3xf32>) -> tensor<2x3x4x5xf32>
// CPU: %[[G:.*]] = mpc.fusion(%[[Y]], %arg1) {
// CPU: mpc.softmax_grad {{.*}}{axis = 3}
// CPU: return %[[G]]
// CUDA-NEXT: mpc.log_softmax {{.*}}{axis = 1}
func.func @other_axis(%x: tensor<2x3x4x5xbf16>, %p: tensor<2x3x4x5xf32>) -> tensor<2x3x4x5xf32> {
  %0 = mpc.log_softmax %x {axis = 1} in <"net"> : (tensor<2x3x4x5xbf16>) -> tensor<2x3x4x5xf32>
  %1 = mpc.softmax_grad %0, %p {axis = 3} : tensor<2x3x4x5xf32>
  return %1 : tensor<2x3x4x5xf32>
}

// A GPU's kernel for many elements of many instructions is generated, too, unless nothing is fused.
// CHECK-LABEL: func @expensive
// GPU: mpc.fusion
// GPU-NEXT: ^bb0
// GPU-NEXT:   mpc.gelu
// UNFUSED-NOT: = mpc.fusion(
// UNFUSED: mpc.gelu
// CUDA-NOT: = mpc.fusion(
// CUDA: mpc.relu
func.func @expensive(%x: tensor<1024x1024xbf16>, %w: tensor<1024x16xbf16>) -> (tensor<1024x16xbf16>, tensor<1024x16xbf16>) {
  %0 = mpc.gelu %x {approximate = tanh} : tensor<1024x1024xbf16>
  %1 = mpc.matmul %0, %w : (tensor<1024x1024xbf16>, tensor<1024x16xbf16>) -> tensor<1024x16xbf16>
  %2 = mpc.matmul %0, %w : (tensor<1024x1024xbf16>, tensor<1024x16xbf16>) -> tensor<1024x16xbf16>
  %3 = mpc.relu %2 : tensor<1024x16xbf16>
  return %1, %3 : tensor<1024x16xbf16>, tensor<1024x16xbf16>
}

// What computes in f64 is for the reference alone.
// CHECK-LABEL: func @in_f64
// CHECK-NEXT: mpc.softmax
func.func @in_f64(%x: tensor<8x16xf64>) -> tensor<8x16xf64> {
  %0 = mpc.softmax %x : tensor<8x16xf64>
  return %0 : tensor<8x16xf64>
}

// An operand that is read in two ways is an argument for each: a row and, for each column, its scale and shift.
// CHECK-LABEL: func @repeated
// CPU-NEXT: %[[C:.*]] = mpc.broadcast_to %arg0 {shape = [16]} in <"net"> : tensor<16xf32>
// CPU-NEXT: mpc.fusion(%arg0, %[[C]]) {
// CPU-NEXT: ^bb0(%[[X:.*]]: tensor<16xf32>, %[[S:.*]]: tensor<16xf32>):
// CPU-NEXT:   mpc.layer_norm %[[X]], %[[S]], %[[S]]
// CUDA-NEXT: mpc.layer_norm %arg0, %arg0, %arg0
func.func @repeated(%x: tensor<16xf32>) -> tensor<16xf32> {
  %y, %mean, %inv_std = mpc.layer_norm %x, %x, %x in <"net">
      : (tensor<16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<16xf32>, tensor<f32>, tensor<f32>)
  return %y : tensor<16xf32>
}

// A region is made for who reads it.
// CHECK-LABEL: func @unread
// CHECK-NOT: mpc.fusion
func.func @unread(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = mpc.softmax %x : tensor<8x16xf32>
  return %x : tensor<8x16xf32>
}
