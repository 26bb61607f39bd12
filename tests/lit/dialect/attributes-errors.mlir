// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @scope(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.scope' must be a #mpc.scope, got "conv1"}}
  %y = mpc.relu %x {mpc.scope = "conv1"} : (tensor<f32>) -> tensor<f32>
  return
}

// -----


func.func @amp_reason(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.amp_reason' must be a string, got 1 : i64}}
  %y = mpc.relu %x {mpc.amp_reason = 1} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @unknown(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.chian' is unknown; operations may have mpc.step, mpc.scope, mpc.amp_reason, mpc.backward, mpc.recompute, mpc.recomputed, mpc.recompute_candidates, mpc.head_chunks, mpc.chain, mpc.fusion_choice, mpc.gradients, mpc.assignment}}
  %y = mpc.relu %x {mpc.chian} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @backward(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.backward' must be a unit attribute, got true}}
  %y = mpc.relu %x {mpc.backward = true} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @recompute(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.recompute' must be an integer, got "net"}}
  %y = mpc.relu %x {mpc.recompute = "net"} : (tensor<f32>) -> tensor<f32>
  return
}

// -----

// expected-error @+1 {{'func.func' op attribute 'mpc.head_chunks' must be an array of two i64, got array<i64: 4>}}
func.func @head_chunks() attributes {mpc.head_chunks = array<i64: 4>} {
  return
}

// -----

// expected-error @+1 {{'func.func' op attribute 'mpc.recompute_candidates' must be an array of two i64, got [1, 2]}}
func.func @candidates() attributes {mpc.recompute_candidates = [1, 2]} {
  return
}

// -----

// expected-error @+1 {{'func.func' op attribute 'mpc.gradients' must be a dictionary of arrays of strings, got {finite = [1]}}}
func.func @gradients() attributes {mpc.gradients = {finite = [1]}} {
  return
}

// -----

// expected-error @+1 {{'builtin.module' op attribute 'mpc.assignment' must be a dictionary, got "f16"}}
module attributes {mpc.assignment = "f16"} {
}

// -----

// expected-error @+1 {{'builtin.module' op is no function and cannot be 'mpc.step'}}
module attributes {mpc.step} {
}
