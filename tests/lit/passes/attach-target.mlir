// RUN: mpc-opt %s --mpc-attach-target | FileCheck %s --check-prefix=CPU
// RUN: mpc-opt %s --mpc-attach-target="name=cuda arch=sm_90" | FileCheck %s --check-prefix=CUDA
// RUN: mpc-opt %s --mpc-attach-target=name=cuda > %t.once && mpc-opt %t.once --mpc-attach-target=name=cuda | diff %t.once -
// RUN: mpc-opt %s --mpc-attach-target=name=cuda --mpc-attach-target | FileCheck %s --check-prefix=CPU
// RUN: mpc-opt %s --mpc-step-pipeline=device=cuda | FileCheck %s --check-prefix=PIPELINE

// CPU: module attributes {mpc.target = #mpc.target<"cpu">}
// CUDA: module attributes {mpc.target = #mpc.target<"cuda", arch = "sm_90">}
// PIPELINE: module attributes {mpc.target = #mpc.target<"cuda">}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
