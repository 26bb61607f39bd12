// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @operands(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'mpc.fusion' op has 1 operands, its body takes 2; the counts must agree}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    %s = mpc.add %a, %b : tensor<4xf32>
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
    %s = mpc.neg %a : tensor<4xf32>
    mpc.yield %s, %a : tensor<4xf32>, tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @result_type(%x: tensor<4xf32>) -> tensor<4xf16> {
  // expected-error @+1 {{'mpc.fusion' op result 0 is 'tensor<4xf16>', its body yields 'tensor<4xf32>'}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf32>):
    %s = mpc.neg %a : tensor<4xf32>
    mpc.yield %s : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf16>
  return %y : tensor<4xf16>
}

// -----

func.func @library(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{'mpc.fusion' op may hold only operations of FusibleOpInterface and views}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<4x4xf32>):
    // expected-note @+1 {{'mpc.matmul' is neither}}
    %s = mpc.matmul %a, %a : tensor<4x4xf32>
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
    %s = mpc.add %a, %z : tensor<4xf32>
    mpc.yield %s : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @outside(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'mpc.yield' op expects parent op to be one of 'mpc.fusion, mpc.guarded_update'}}
  mpc.yield %x : tensor<4xf32>
}

// -----

func.func @yields_operand(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  // expected-error @+1 {{'mpc.fusion' op yields its operand 0; a region stores what its operations compute}}
  %y:2 = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf32>):
    %s = mpc.neg %a : tensor<4xf32>
    mpc.yield %s, %a : tensor<4xf32>, tensor<4xf32>
  } : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %y#0, %y#1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @f64(%x: tensor<4xf64>) -> tensor<4xf64> {
  // expected-error @+1 {{'mpc.fusion' op computes in f32 and takes no f64, which is for the reference alone}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf64>):
    %s = mpc.neg %a : tensor<4xf64>
    mpc.yield %s : tensor<4xf64>
  } : (tensor<4xf64>) -> tensor<4xf64>
  return %y : tensor<4xf64>
}

// -----

func.func @f64_inside(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'mpc.fusion' op computes in f32 and takes no f64}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf32>):
    %s = mpc.cast %a : (tensor<4xf32>) -> tensor<4xf64>
    %t = mpc.cast %s : (tensor<4xf64>) -> tensor<4xf32>
    mpc.yield %t : tensor<4xf32>
  } : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

func.func @no_common_space(%x: tensor<4x6xf32>, %z: tensor<5xf32>) -> (tensor<4x6xf32>, tensor<5xf32>) {
  // expected-error @+1 {{'mpc.fusion' op holds operations that one kernel cannot compute: mpc.neg: it has 5 elements, the region 1 rows of 24}}
  %y:2 = mpc.fusion(%x, %z) {
  ^bb0(%a: tensor<4x6xf32>, %b: tensor<5xf32>):
    %s = mpc.neg %a : tensor<4x6xf32>
    %t = mpc.neg %b : tensor<5xf32>
    mpc.yield %s, %t : tensor<4x6xf32>, tensor<5xf32>
  } : (tensor<4x6xf32>, tensor<5xf32>) -> (tensor<4x6xf32>, tensor<5xf32>)
  return %y#0, %y#1 : tensor<4x6xf32>, tensor<5xf32>
}

// -----

func.func @rows_after_columns(%x: tensor<8x8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'mpc.fusion' op holds operations that one kernel cannot compute: mpc.reduce_sum: it reduces rows of what a reduction of columns gives}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<8x8xf32>):
    %s = mpc.reduce_sum %a {axes = [0]} : (tensor<8x8xf32>) -> tensor<8xf32>
    %t = mpc.mul %a, %s : (tensor<8x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
    %u = mpc.reduce_sum %t {axes = [1]} : (tensor<8x8xf32>) -> tensor<8xf32>
    mpc.yield %u : tensor<8xf32>
  } : (tensor<8x8xf32>) -> tensor<8xf32>
  return %y : tensor<8xf32>
}

// -----

func.func @nothing(%x: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.fusion' op has no result; a region computes what others read}}
  mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf32>):
    %0 = mpc.neg %a : tensor<4xf32>
    mpc.yield
  } : (tensor<4xf32>) -> ()
  return
}

// -----

func.func @no_yield(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'mpc.fusion' op must end with 'mpc.yield', got 'mpc.relu'}}
  %y = "mpc.fusion"(%x) ({
  ^bb0(%a: tensor<4xf32>):
    %r = "mpc.relu"(%a) : (tensor<4xf32>) -> tensor<4xf32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
