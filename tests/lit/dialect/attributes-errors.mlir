// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @scope(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.scope' must be a #mpc.scope, got "conv1"}}
  %y = mpc.relu %x {mpc.scope = "conv1"} : tensor<f32>
  return
}

// -----

func.func @precision(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.precision' must be a #mpc.precision, got "f16"}}
  %y = mpc.relu %x {mpc.precision = "f16"} : tensor<f32>
  return
}

// -----

func.func @unknown(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.chian' is unknown; operations may have mpc.step, mpc.sequence, mpc.scope, mpc.precision, mpc.backward, mpc.differentiated, mpc.recompute, mpc.recomputed, mpc.recompute_candidates, mpc.head_chunks, mpc.padded, mpc.chain, mpc.flat_group, mpc.bucket, mpc.fusion_choice, mpc.gradients, mpc.assignment, mpc.processes, mpc.target}}
  %y = mpc.relu %x {mpc.chian} : tensor<f32>
  return
}

// -----

func.func @backward(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.backward' must be a unit attribute, got true}}
  %y = mpc.relu %x {mpc.backward = true} : tensor<f32>
  return
}

// -----

func.func @recompute(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.recompute' must be an i64, got "net"}}
  %y = mpc.relu %x {mpc.recompute = "net"} : tensor<f32>
  return
}

// -----

func.func @padded(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.padded' stands on products and sums alone}}
  %y = mpc.relu %x {mpc.padded = array<i64: 5, 8>} : tensor<f32>
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

// expected-error @+1 {{'builtin.module' op attribute 'mpc.assignment' must be a dictionary of strings, got "f16"}}
module attributes {mpc.assignment = "f16"} {
}

// -----

// expected-error @+1 {{'builtin.module' op attribute 'mpc.step' stands on functions alone}}
module attributes {mpc.step} {
}

// -----

func.func @integer_precision(%x: tensor<f32>) {
  // expected-error @+1 {{a precision is a floating type, got 'i32'}}
  %y = mpc.relu %x as <i32, cut> : tensor<f32>
  return
}

// -----

func.func @unknown_rule(%x: tensor<f32>) {
  // expected-error @+1 {{the rule 'cost' is unknown; there are user_cast, to_float, list_entry, loss, label, differentiated_by, differentiated_value, level, norm_kept_f32, class, stored_assignment, infer_rule, cut, low_pays, low_does_not_pay}}
  %y = mpc.relu %x as <f32, cost> : tensor<f32>
  return
}

// -----

func.func @reason_twice(%x: tensor<f32>) {
  // expected-error @+1 {{a precision has the reason #mpc.precision_reason<level "O2"> twice}}
  %y = mpc.relu %x as <f32, level "O2" | cut | level "O2"> : tensor<f32>
  return
}

// -----

func.func @unknown_mark(%x: tensor<f32>) {
  // expected-error @+1 {{a precision may be marked user and folded, once each; got 'fold'}}
  %y = mpc.relu %x as <f32, cut, user, fold> : tensor<f32>
  return
}

// -----

func.func @mark_twice(%x: tensor<f32>) {
  // expected-error @+1 {{a precision may be marked user and folded, once each; got 'user'}}
  %y = mpc.relu %x as <f32, cut, user, user> : tensor<f32>
  return
}

// -----

func.func @small_recompute(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.recompute' must be an i64, got 1 : i8}}
  %y = mpc.relu %x {mpc.recompute = 1 : i8} : tensor<f32>
  return
}

// -----

func.func @misplaced(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.fusion_choice' stands on regions alone}}
  %y = mpc.relu %x {mpc.fusion_choice = {}} : tensor<f32>
  return
}

// -----

// expected-error @+1 {{'func.func' op attribute 'mpc.assignment' stands on modules alone}}
func.func @assignment() attributes {mpc.assignment = {}} {
  return
}

// -----

func.func @fusion_choice(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{'mpc.fusion' op attribute 'mpc.fusion_choice' must be a dictionary of i64 and arrays of strings, got {bytes_saved = 4 : i8}}}
  %y = mpc.fusion(%x) {
  ^bb0(%a: tensor<4xf32>):
    %0 = mpc.relu %a : tensor<4xf32>
    mpc.yield %0 : tensor<4xf32>
  } {mpc.fusion_choice = {bytes_saved = 4 : i8}} : (tensor<4xf32>) -> tensor<4xf32>
  return %y : tensor<4xf32>
}

// -----

// expected-error @+1 {{a target has no name}}
module attributes {mpc.target = #mpc.target<"">} {
}

// -----

// expected-error @+1 {{'func.func' op attribute 'mpc.processes' must be an i64, got "two"}}
func.func @processes() attributes {mpc.processes = "two"} {
  return
}

// -----

// expected-error @+1 {{'func.func' op attribute 'mpc.target' stands on modules alone}}
func.func @target() attributes {mpc.target = #mpc.target<"cpu">} {
  return
}

// -----

// expected-error @+1 {{'builtin.module' op attribute 'mpc.target' must be a #mpc.target, got "cpu"}}
module attributes {mpc.target = "cpu"} {
}

// -----

func.func @flat_group(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.flat_group' stands on optimizers alone}}
  %y = mpc.relu %x {mpc.flat_group = 0 : i64} : tensor<f32>
  return
}

// -----

func.func @bucket(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.relu' op attribute 'mpc.bucket' stands on collectives alone}}
  %y = mpc.relu %x {mpc.bucket = 0 : i64} : tensor<f32>
  return
}

// -----

func.func @bucket_number(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.all_reduce' op attribute 'mpc.bucket' must be an i64, got "first"}}
  %y = mpc.all_reduce %x {mpc.bucket = "first", processes = 2 : i64} : tensor<f32>
  return
}
