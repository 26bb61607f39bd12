// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @operands(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'mpc.fusion' op has 1 operands, its body takes 2; the counts must agree}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %s = mpc.add %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    mpc.yield %s : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @operand_type(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'mpc.fusion' op operand 0 is 'tensor<4xf32>', its body takes 'tensor<4xf16>'}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf16>):
    %s = mpc.neg %a : (tensor<4xf16>) -> tensor<4xf32>
    mpc.yield %s : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @results(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'mpc.fusion' op has 1 results, its body yields 2; the counts must agree}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf32>):
    %s = mpc.neg %a : (tensor<4xf32>) -> tensor<4xf32>
    mpc.yield %s, %a : tensor<4xf32>, tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @result_type(%x: tensor<4xf32>) -> tensor<4xf16> {
  // expected-error @+1 {{'mpc.fusion' op result 0 is 'tensor<4xf16>', its body yields 'tensor<4xf32>'}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf32>):
    %s = mpc.neg %a : (tensor<4xf32>) -> tensor<4xf32>
    mpc.yield %s : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

func.func @library(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{'mpc.fusion' op may hold only operations of FusibleOpInterface and mpc.reshape}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<4x4xf32>):
    // expected-note @+1 {{'mpc.matmul' is neither}}
    %s = mpc.matmul %a, %a : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    mpc.yield %s : tensor<4x4xf32>
  } : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}

// -----

func.func @isolated(%x: tensor<4xf32>, %z: tensor<4xf32>) -> tensor<4xf32> {
  // expected-note @+1 {{required by region isolation constraints}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf32>):
    // expected-error @+1 {{using value defined outside the region}}
    %s = mpc.add %a, %z : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
    mpc.yield %s : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @outside(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'mpc.yield' op expects parent op to be one of 'mpc.fusion, mpc.guarded_update'}}
  mpc.yield %x : tensor<4xf32>
}
