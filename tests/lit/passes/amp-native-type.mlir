// The low type of the target: a GPU multiplies bf16.
// RUN: mpc-opt %s --mpc-attach-target="name=cuda arch=sm_90" --mpc-amp="level=O2 dtype=auto" | FileCheck %s
// RUN: mpc-opt %s --mpc-attach-target="name=cuda arch=sm_90" --mpc-amp="level=O2 dtype=bf16" > %t.named
// RUN: mpc-opt %s --mpc-attach-target="name=cuda arch=sm_90" --mpc-amp="level=O2 dtype=auto" | diff %t.named -

// CHECK-LABEL: func @f
// CHECK: mpc.matmul {{.*}} : tensor<4x4xbf16>
func.func @f(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %y = mpc.matmul %x, %x in <"net", network> : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
