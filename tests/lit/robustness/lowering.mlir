// What verifies but no Program can hold is an error of lowering.
// RUN: mpc-opt %s --split-input-file --verify-diagnostics --pass-pipeline='builtin.module(mpc-check-program)'

// expected-error @+1 {{@index: argument 0 is index; a Program holds tensors of a static shape, of at least one and at most 2^47 elements, of f32, f16, bf16, f64, i32, i64, i1, i8, f8E4M3FN or f8E5M2}}
func.func @index(%x: index) {
  return
}

// -----

// expected-error @+1 {{@dynamic: argument 0 is tensor<?x4xf32>; a Program holds}}
func.func @dynamic(%x: tensor<?x4xf32>) {
  return
}

// -----

// expected-error @+1 {{@short: argument 1 is tensor<4xi7>; a Program holds}}
func.func @short(%x: tensor<4xf32>, %y: tensor<4xi7>) {
  return
}

// -----

// expected-error @+1 {{@large: argument 0 is tensor<4611686018427387904x4xf32>; a Program holds}}
func.func @large(%x: tensor<4611686018427387904x4xf32>) {
  return
}

// -----

// expected-error @+1 {{@unused: argument 1 is tensor<2x0xf32>; a Program holds}}
func.func @unused(%x: tensor<4xf32>, %y: tensor<2x0xf32>) {
  return
}

// -----

// expected-error @+1 {{@empty: argument 0 is tensor<4611686018427387904x0xf32>; a Program holds}}
func.func @empty(%x: tensor<4611686018427387904x0xf32>) {
  return
}

// -----

func.func private @callee(tensor<4xf32>) -> f32

// expected-error @+1 {{@call: a result of func.call is f32; a Program holds}}
func.func @call(%x: tensor<4xf32>) {
  %0 = func.call @callee(%x) : (tensor<4xf32>) -> f32
  return
}

// -----

// expected-error @+1 {{mpc.batch_matmul: none of its results is read; dead operations are removed before lowering}}
func.func @dead(%x: tensor<3x3x4xf32>, %y: tensor<3x3x4xf32>) {
  %dead = mpc.batch_matmul %x, %y {transpose_a = true} : (tensor<3x3x4xf32>, tensor<3x3x4xf32>) -> tensor<3x4x4xf32>
  return
}

// -----

// A type that nothing but casts takes: no device casts it yet.
// expected-error @+1 {{mpc.cast has no CPU kernel for}}
func.func @stored(%x: tensor<4xf32>) -> tensor<4xf8E5M2> {
  %y = mpc.cast %x : (tensor<4xf32>) -> tensor<4xf8E5M2>
  return %y : tensor<4xf8E5M2>
}

// -----

// Each value is one that a tensor may be.
// expected-error @+1 {{@memory needs 281474976710660 bytes for one value; a Program has at most 2^48 bytes (256 TiB) for it}}
func.func @memory(%x: tensor<70368744177665xf32>) -> tensor<70368744177665xf32> {
  %y = mpc.relu %x : tensor<70368744177665xf32>
  return %y : tensor<70368744177665xf32>
}

// -----

// expected-error @+1 {{@temporaries needs 562949953421312 bytes for temporaries; a Program has at most 2^48 bytes (256 TiB) for it}}
func.func @temporaries(%x: tensor<70368744177664xf32>) -> tensor<70368744177664xf32> {
  %y = mpc.relu %x : tensor<70368744177664xf32>
  return %y : tensor<70368744177664xf32>
}

// -----

func.func private @negate(tensor<4xf32>) -> tensor<4xf32>

// expected-error @+1 {{@inlined: func.call is not lowered: inline it first}}
func.func @inlined(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = func.call @negate(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}
