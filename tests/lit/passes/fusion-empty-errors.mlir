// RUN: mpc-opt %s --split-input-file --verify-diagnostics --mpc-fusion
// RUN: mpc-opt %s --split-input-file --verify-diagnostics --mpc-fusion=max-operations=1
// RUN: mpc-opt %s --split-input-file --mpc-fusion=device=cuda | FileCheck %s

// Generated code has rows of at least one element.
// CHECK-LABEL: func @no_rows
// CHECK-NEXT: mpc.softmax
func.func @no_rows(%x: tensor<0x16xf32>) -> tensor<0x16xf32> {
  // expected-error @below {{'mpc.softmax' op got 'tensor<0x16xf32>', which has no elements; generated code, all that the CPU has for it, needs at least one: leave the operation out where there is nothing to compute}}
  %0 = mpc.softmax %x : (tensor<0x16xf32>) -> tensor<0x16xf32>
  return %0 : tensor<0x16xf32>
}

// -----

func.func @no_columns(%x: tensor<16x0xbf16>) -> tensor<16x0xbf16> {
  // expected-error @below {{'mpc.log_softmax' op got 'tensor<16x0xbf16>', which has no elements}}
  %0 = mpc.log_softmax %x : (tensor<16x0xbf16>) -> tensor<16x0xbf16>
  return %0 : tensor<16x0xbf16>
}

// -----

func.func @no_normalized_rows(%x: tensor<0x16xf32>, %g: tensor<16xf32>) -> tensor<0x16xf32> {
  // expected-error @below {{'mpc.layer_norm' op got 'tensor<0x16xf32>', which has no elements}}
  %y, %mean, %inv_std = mpc.layer_norm %x, %g, %g
      : (tensor<0x16xf32>, tensor<16xf32>, tensor<16xf32>) -> (tensor<0x16xf32>, tensor<0xf32>, tensor<0xf32>)
  return %y : tensor<0x16xf32>
}

// -----

// Loops over elements have kernels, which do nothing here.
// CHECK-LABEL: func @elements
// CHECK-NEXT: mpc.add
// CHECK-NEXT: mpc.relu
func.func @elements(%x: tensor<0x16xf32>) -> tensor<0x16xf32> {
  %0 = mpc.add %x, %x : (tensor<0x16xf32>, tensor<0x16xf32>) -> tensor<0x16xf32>
  %1 = mpc.relu %0 : (tensor<0x16xf32>) -> tensor<0x16xf32>
  return %1 : tensor<0x16xf32>
}
