// RUN: not mpc-opt %s --mpc-attach-target=name=tpu 2>&1 | FileCheck %s --check-prefix=NAME
// RUN: not mpc-opt %s --mpc-attach-target=name= 2>&1 | FileCheck %s --check-prefix=EMPTY
// RUN: not mpc-opt %s --mpc-attach-target="name=cpu arch=sm_90" 2>&1 | FileCheck %s --check-prefix=ARCH

// ARCH: error: {{.*}}sm_90
// NAME: error: unknown target 'tpu'; choose cpu or cuda
// EMPTY: error: a target has no name
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
