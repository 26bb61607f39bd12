// RUN: mpc-opt %s --mpc-sink-relu | FileCheck %s
// RUN: mpc-opt %s --mpc-sink-relu > %t.once && mpc-opt %t.once --mpc-sink-relu | diff %t.once -

// The operations keep their own scope; a quarter of the elements is left for relu and its derivative.
// CHECK-LABEL: func @sinks
// CHECK-SAME: %[[X:[a-z0-9]+]]:
// CHECK: %[[P:.*]], %[[I:.*]] = mpc.max_pool2d %[[X]]
// CHECK: %[[Y:.*]] = mpc.relu %[[P]] in <"net"> : tensor<2x3x2x2xf16>
// CHECK: return %[[Y]]
func.func @sinks(%x: tensor<2x3x4x4xf16>) -> tensor<2x3x2x2xf16> {
  %r = mpc.relu %x in <"net"> : tensor<2x3x4x4xf16>
  %p, %i = mpc.max_pool2d %r {kernel_size = [2, 2], strides = [2, 2]}
      : (tensor<2x3x4x4xf16>) -> (tensor<2x3x2x2xf16>, tensor<2x3x2x2xi8>)
  return %p : tensor<2x3x2x2xf16>
}

// Another reader needs relu's result as it is.
// CHECK-LABEL: func @two_readers
// CHECK: mpc.relu
// CHECK: mpc.max_pool2d
// CHECK-NOT: mpc.relu
func.func @two_readers(%x: tensor<2x3x4x4xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x3x4x4xf32>) {
  %r = mpc.relu %x : tensor<2x3x4x4xf32>
  %p, %i = mpc.max_pool2d %r {kernel_size = [2, 2], strides = [2, 2]}
      : (tensor<2x3x4x4xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x3x2x2xi8>)
  return %p, %r : tensor<2x3x2x2xf32>, tensor<2x3x4x4xf32>
}

// relu that rounds stays where it is.
// CHECK-LABEL: func @rounds
// CHECK: mpc.relu
// CHECK: mpc.max_pool2d
func.func @rounds(%x: tensor<2x3x4x4xf32>) -> tensor<2x3x2x2xf16> {
  %r = mpc.relu %x : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf16>
  %p, %i = mpc.max_pool2d %r {kernel_size = [2, 2], strides = [2, 2]}
      : (tensor<2x3x4x4xf16>) -> (tensor<2x3x2x2xf16>, tensor<2x3x2x2xi8>)
  return %p : tensor<2x3x2x2xf16>
}

// Dropout keeps signs: what it hands on is what the derivative asks.
// CHECK-LABEL: func @dropout(
// CHECK-SAME: %[[X:[a-z0-9]+]]:
// CHECK: %[[D:.*]] = mpc.dropout %[[X]], %{{.*}} {call_site = 1, p = 2.500000e-01} in <"net/drop">
// CHECK-NEXT: %[[Y:.*]] = mpc.relu %[[D]] in <"net/relu"> : tensor<4x8xbf16>
// CHECK-NEXT: return %[[Y]]
func.func @dropout(%x: tensor<4x8xbf16>, %seed: tensor<i64>, %step: tensor<i32>) -> tensor<4x8xbf16> {
  %r = mpc.relu %x in <"net/relu"> : tensor<4x8xbf16>
  %d = mpc.dropout %r, %seed, %step {call_site = 1, p = 0.25} in <"net/drop">
      : (tensor<4x8xbf16>, tensor<i64>, tensor<i32>) -> tensor<4x8xbf16>
  return %d : tensor<4x8xbf16>
}

// Behind both, through a reshape.
// CHECK-LABEL: func @pooling_and_dropout(
// CHECK: mpc.max_pool2d
// CHECK-NEXT: mpc.reshape
// CHECK-NEXT: mpc.dropout
// CHECK-NEXT: mpc.relu %{{.*}} : tensor<2x12xf32>
// CHECK-NEXT: return
func.func @pooling_and_dropout(%x: tensor<2x3x4x4xf32>, %seed: tensor<i64>, %step: tensor<i32>) -> tensor<2x12xf32> {
  %r = mpc.relu %x : tensor<2x3x4x4xf32>
  %p, %i = mpc.max_pool2d %r {kernel_size = [2, 2], strides = [2, 2]}
      : (tensor<2x3x4x4xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x3x2x2xi8>)
  %f = mpc.reshape %p {shape = [2, 12]} : (tensor<2x3x2x2xf32>) -> tensor<2x12xf32>
  %d = mpc.dropout %f, %seed, %step {p = 0.5} : (tensor<2x12xf32>, tensor<i64>, tensor<i32>) -> tensor<2x12xf32>
  return %d : tensor<2x12xf32>
}

// A reshape alone is not worth it. Dropout that rounds could make a zero of what is above it.
// CHECK-LABEL: func @stays(
// CHECK: mpc.relu
// CHECK-NEXT: mpc.reshape
// CHECK-NEXT: mpc.relu
// CHECK-NEXT: mpc.dropout
func.func @stays(%x: tensor<4x8xf32>, %seed: tensor<i64>, %step: tensor<i32>) -> (tensor<32xf32>, tensor<4x8xf16>) {
  %r = mpc.relu %x : tensor<4x8xf32>
  %f = mpc.reshape %r {shape = [32]} : (tensor<4x8xf32>) -> tensor<32xf32>
  %q = mpc.relu %x : tensor<4x8xf32>
  %d = mpc.dropout %q, %seed, %step {p = 0.5} : (tensor<4x8xf32>, tensor<i64>, tensor<i32>) -> tensor<4x8xf16>
  return %f, %d : tensor<32xf32>, tensor<4x8xf16>
}
