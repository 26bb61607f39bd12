// RUN: mpc-opt %s --mpc-sink-relu | FileCheck %s
// RUN: mpc-opt %s --mpc-sink-relu > %t.once && mpc-opt %t.once --mpc-sink-relu | diff %t.once -

// The operations keep their own scope; a quarter of the elements is left for relu and its derivative.
// CHECK-LABEL: func @sinks
// CHECK-SAME: %[[X:[a-z0-9]+]]:
// CHECK: %[[P:.*]], %[[I:.*]] = mpc.max_pool2d %[[X]]
// CHECK: %[[Y:.*]] = mpc.relu %[[P]] {mpc.scope = #mpc.scope<path = "net">} : (tensor<2x3x2x2xf16>) -> tensor<2x3x2x2xf16>
// CHECK: return %[[Y]]
func.func @sinks(%x: tensor<2x3x4x4xf16>) -> tensor<2x3x2x2xf16> {
  %r = mpc.relu %x {mpc.scope = #mpc.scope<path = "net">} : (tensor<2x3x4x4xf16>) -> tensor<2x3x4x4xf16>
  %p, %i = mpc.max_pool2d %r {kernel_size = array<i64: 2, 2>, strides = array<i64: 2, 2>}
      : (tensor<2x3x4x4xf16>) -> (tensor<2x3x2x2xf16>, tensor<2x3x2x2xi32>)
  return %p : tensor<2x3x2x2xf16>
}

// Another reader needs relu's result as it is.
// CHECK-LABEL: func @two_readers
// CHECK: mpc.relu
// CHECK: mpc.max_pool2d
// CHECK-NOT: mpc.relu
func.func @two_readers(%x: tensor<2x3x4x4xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x3x4x4xf32>) {
  %r = mpc.relu %x : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
  %p, %i = mpc.max_pool2d %r {kernel_size = array<i64: 2, 2>, strides = array<i64: 2, 2>}
      : (tensor<2x3x4x4xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x3x2x2xi32>)
  return %p, %r : tensor<2x3x2x2xf32>, tensor<2x3x4x4xf32>
}

// relu that rounds stays where it is.
// CHECK-LABEL: func @rounds
// CHECK: mpc.relu
// CHECK: mpc.max_pool2d
func.func @rounds(%x: tensor<2x3x4x4xf32>) -> tensor<2x3x2x2xf16> {
  %r = mpc.relu %x : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf16>
  %p, %i = mpc.max_pool2d %r {kernel_size = array<i64: 2, 2>, strides = array<i64: 2, 2>}
      : (tensor<2x3x4x4xf16>) -> (tensor<2x3x2x2xf16>, tensor<2x3x2x2xi32>)
  return %p : tensor<2x3x2x2xf16>
}
