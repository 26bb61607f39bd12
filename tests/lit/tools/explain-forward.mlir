// What follows a stop_gradient is forward, whatever its name says.
// RUN: mpc-opt %s --explain=relu | FileCheck %s

// CHECK: #2 relu: reads f32, writes f32
// CHECK-NOT: backward
func.func @forward(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mpc.stop_gradient %x : tensor<4xf32>
  %1 = mpc.relu %0 : tensor<4xf32>
  return %1 : tensor<4xf32>
}
