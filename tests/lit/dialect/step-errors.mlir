// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @unscale(%0: tensor<4xf16>, %1: tensor<1xf32>) {
  // expected-error @+1 {{'mpc.unscale' op unscale expects scalars (rank 0), got tensor<1xf32>}}
  %r0 = mpc.unscale %0, %1 : (tensor<4xf16>, tensor<1xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @unscale(%0: tensor<4xf16>, %1: tensor<f32>) {
  // expected-error @+1 {{'mpc.unscale' op result 0 is 'tensor<2xf32>', its shape must be 4}}
  %r0 = mpc.unscale %0, %1 : (tensor<4xf16>, tensor<f32>) -> tensor<2xf32>
  return
}

// -----

func.func @unscale(%0: tensor<4xf16>, %1: tensor<f32>) {
  // expected-error @+1 {{'mpc.unscale' op result #0 must be statically shaped tensor of 32-bit float or 64-bit float values}}
  %r0 = mpc.unscale %0, %1 : (tensor<4xf16>, tensor<f32>) -> tensor<4xf16>
  return
}

// -----

func.func @repeat(%0: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.repeat' op calls 'f', which is not a function of this module}}
  %r0 = mpc.repeat @f(%0) {count = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
func.func @repeat(%0: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.repeat' op calls 'f', which has no mpc.sequence}}
  %r0 = mpc.repeat @f(%0) {count = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @f(tensor<4xf32>) -> tensor<4xf32> attributes {mpc.sequence}
func.func @repeat(%0: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.repeat' op calls 'f', which has no body}}
  %r0 = mpc.repeat @f(%0) {count = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {mpc.sequence} {
  return %x : tensor<4xf32>
}
func.func @repeat(%0: tensor<4xf16>) {
  // expected-error @+1 {{'mpc.repeat' op maps ('tensor<4xf16>') to ('tensor<4xf16>'), but 'f' is '(tensor<4xf32>) -> tensor<4xf32>'}}
  %r0 = mpc.repeat @f(%0) {count = 1 : i64} : (tensor<4xf16>) -> tensor<4xf16>
  return
}

// -----

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {mpc.sequence} {
  return %x : tensor<4xf32>
}
func.func @repeat(%0: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.repeat' op calls its function 0 times; 1 is the least, 1048576 the most}}
  %r0 = mpc.repeat @f(%0) {count = 0 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {mpc.sequence} {
  return %x : tensor<4xf32>
}
func.func @repeat(%0: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.repeat' op calls its function -1 times; 1 is the least, 1048576 the most}}
  %r0 = mpc.repeat @f(%0) {count = -1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func private @f() attributes {mpc.sequence} {
  return
}
func.func @repeat(%0: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.repeat' op has no results, so that it computes nothing}}
  mpc.repeat @f() {count = 1 : i64} : () -> ()
  return
}

// -----

func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {mpc.sequence} {
  %r0 = mpc.repeat @g(%x) {count = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %r0 : tensor<4xf32>
}
func.func private @g(%x: tensor<4xf32>) -> tensor<4xf32> attributes {mpc.sequence} {
  // expected-error @+1 {{'mpc.repeat' op calls 'f', which calls 'g' again}}
  %r0 = mpc.repeat @f(%x) {count = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %r0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{'func.func' op has 'mpc.sequence' and is public; a sequence is a private function that a step calls}}
func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {mpc.sequence} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{'func.func' op has 'mpc.sequence' and is a step; a sequence is a private function that a step calls}}
func.func private @f(%x: tensor<4xf32>) -> tensor<4xf32> attributes {mpc.sequence, mpc.step} {
  return %x : tensor<4xf32>
}

// -----

// expected-error @+1 {{'func.func' op result 0 of the sequence is 'tensor<4xf32>' and the new value of argument 0, which is tensor<4xf16>}}
func.func private @f(%x: tensor<4xf16>, %y: tensor<4xf32>) -> tensor<4xf32> attributes {mpc.sequence} {
  return %y : tensor<4xf32>
}

// -----

// expected-error @+1 {{'func.func' op result 1 of the sequence is 'tensor<4xf32>' and the new value of argument 1, which it does not have}}
func.func private @f(%x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) attributes {mpc.sequence} {
  return %x, %x : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @all_finite(%0: tensor<1xf32>, %1: tensor<f32>) {
  // expected-error @+1 {{'mpc.all_finite' op all_finite expects scalars (rank 0), got tensor<1xf32>}}
  %r0, %r1 = mpc.all_finite %0, %1 : (tensor<1xf32>, tensor<f32>) -> (tensor<i1>, tensor<i32>)
  return
}

// -----

func.func @update_loss_scale(%0: tensor<i32>, %1: tensor<f32>, %2: tensor<i32>, %3: tensor<i32>, %4: tensor<i32>, %5: tensor<i32>, %6: tensor<1xf32>, %7: tensor<f32>, %8: tensor<f32>, %9: tensor<f32>, %10: tensor<i32>, %11: tensor<i32>, %12: tensor<i32>, %13: tensor<i32>) {
  // expected-error @+1 {{'mpc.update_loss_scale' op update_loss_scale expects scalars (rank 0), got tensor<1xf32>}}
  %r0, %r1, %r2, %r3, %r4 = mpc.update_loss_scale %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13 : (tensor<i32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<1xf32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>)
  return
}

// -----

func.func @increment(%0: tensor<1xi32>) {
  // expected-error @+1 {{'mpc.increment' op increment expects scalars (rank 0), got tensor<1xi32>}}
  %r0 = mpc.increment %0 : tensor<1xi32>
  return
}

// -----

func.func @batch_norm_running_update(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<3xf32>, %3: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.batch_norm_running_update' op batch_norm_running_update expects every statistic of shape 4, got tensor<3xf32>}}
  %r0, %r1 = mpc.batch_norm_running_update %0, %1, %2, %3 {count = 2} : (tensor<4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @batch_norm_running_update(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.batch_norm_running_update' op requires attribute 'count'}}
  %r0, %r1 = mpc.batch_norm_running_update %0, %1, %2, %3 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @sgd(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<3xf32>, %3: tensor<f32>, %4: tensor<i32>) {
  // expected-error @+1 {{'mpc.sgd' op sgd expects gradient of shape 4, got tensor<3xf32>}}
  %r0, %r1 = mpc.sgd %0, %1, %2, %3, %4 : (tensor<4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @sgd(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<1xf32>, %4: tensor<i32>) {
  // expected-error @+1 {{'mpc.sgd' op sgd expects scalars (rank 0), got tensor<1xf32>}}
  %r0, %r1 = mpc.sgd %0, %1, %2, %3, %4 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<1xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @momentum(%0: tensor<4xf32>, %1: tensor<3xf32>, %2: tensor<4xf32>, %3: tensor<f32>) {
  // expected-error @+1 {{'mpc.momentum' op momentum expects velocity of shape 4, got tensor<3xf32>}}
  %r0, %r1 = mpc.momentum %0, %1, %2, %3 : (tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<3xf32>)
  return
}

// -----

func.func @momentum(%0: tensor<4xf16>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<f32>) {
  // expected-error @+1 {{'mpc.momentum' op result 0 must have the type of state operand 0}}
  %r0, %r1 = mpc.momentum %0, %1, %2, %3 : (tensor<4xf16>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @adam(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<3xf32>, %3: tensor<4xf32>, %4: tensor<f32>, %5: tensor<i32>) {
  // expected-error @+1 {{'mpc.adam' op adam expects moment2 of shape 4, got tensor<3xf32>}}
  %r0, %r1, %r2 = mpc.adam %0, %1, %2, %3, %4, %5 : (tensor<4xf32>, tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<3xf32>)
  return
}

// -----

func.func @adam(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>, %4: tensor<f32>, %5: tensor<1xi32>) {
  // expected-error @+1 {{'mpc.adam' op adam expects scalars (rank 0), got tensor<1xi32>}}
  %r0, %r1, %r2 = mpc.adam %0, %1, %2, %3, %4, %5 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<1xi32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// -----

func.func @adam_weight_decay(%0: tensor<4xf32>, %1: tensor<3xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>, %4: tensor<f32>) {
  // expected-error @+1 {{'mpc.adam_weight_decay' op adam_weight_decay expects moment1 of shape 4, got tensor<3xf32>}}
  %r0, %r1, %r2 = mpc.adam_weight_decay %0, %1, %2, %3, %4 : (tensor<4xf32>, tensor<3xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<3xf32>, tensor<4xf32>)
  return
}

// -----

func.func @adam_weight_decay(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>, %4: tensor<f32>) {
  // expected-error @+1 {{'mpc.adam_weight_decay' op result #2 must be statically shaped tensor of 32-bit float or 64-bit float values}}
  %r0, %r1, %r2 = mpc.adam_weight_decay %0, %1, %2, %3, %4 : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
  return
}
// -----

func.func @train_step(%w: tensor<4xf32>, %seed: tensor<f32>) {
  // expected-error @+1 {{'mpc.value_and_grad' op calls 'loss', which is not a function of this module}}
  %l, %d = mpc.value_and_grad @loss(%w) seed(%seed) {wrt = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return
}
// -----

func.func private @loss(%w: tensor<4xf32>) -> tensor<f32> {
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

func.func @train_step(%w: tensor<4xf32>, %seed: tensor<f32>) {
  // expected-error @+1 {{'mpc.value_and_grad' op passes operands ('tensor<4xf32>', 'tensor<4xf32>') to 'loss', which takes ('tensor<4xf32>')}}
  %l, %d = mpc.value_and_grad @loss(%w, %w) seed(%seed) {wrt = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return
}
// -----

func.func private @nothing(tensor<4xf32>)

func.func @train_step(%w: tensor<4xf32>, %seed: tensor<f32>) {
  // expected-error @+1 {{'mpc.value_and_grad' op needs a function that returns a loss; 'nothing' returns nothing}}
  %d = mpc.value_and_grad @nothing(%w) seed(%seed) {wrt = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return
}
// -----

func.func private @loss(%w: tensor<4xf32>) -> tensor<f32> {
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

func.func @train_step(%w: tensor<4xf32>, %seed: tensor<f32>) {
  // expected-error @+1 {{'mpc.value_and_grad' op has 1 results, expected 1 of 'loss' and 1 gradients}}
  %l = mpc.value_and_grad @loss(%w) seed(%seed) {wrt = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<f32>
  return
}
// -----

func.func private @loss(%w: tensor<4xf32>) -> tensor<f32> {
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

func.func @train_step(%w: tensor<4xf32>, %seed: tensor<f32>) {
  // expected-error @+1 {{'mpc.value_and_grad' op result 0 is 'tensor<4xf32>', 'loss' returns 'tensor<f32>'}}
  %l, %d = mpc.value_and_grad @loss(%w) seed(%seed) {wrt = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return
}
// -----

func.func private @loss(%w: tensor<4xf32>) -> tensor<f32> {
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

func.func @train_step(%w: tensor<4xf32>, %seed: tensor<f32>) {
  // expected-error @+1 {{'mpc.value_and_grad' op gradient 0 is 'tensor<4xf16>', operand 0 is 'tensor<4xf32>'}}
  %l, %d = mpc.value_and_grad @loss(%w) seed(%seed) {wrt = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf16>)
  return
}
// -----

func.func private @loss(%w: tensor<4xf32>) -> tensor<f32> {
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

func.func @train_step(%w: tensor<4xf32>, %seed: tensor<f32>) {
  // expected-error @+1 {{'mpc.value_and_grad' op wrt names operand 1 of 1}}
  %l, %d = mpc.value_and_grad @loss(%w) seed(%seed) {wrt = array<i64: 1>} : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return
}
// -----

func.func private @integer(tensor<4xi32>) -> tensor<f32>

func.func @train_step(%w: tensor<4xi32>, %seed: tensor<f32>) {
  // expected-error @+1 {{'mpc.value_and_grad' op wrt names operand 0 of type 'tensor<4xi32>'; only floating operands have gradients}}
  %l, %d = mpc.value_and_grad @integer(%w) seed(%seed) {wrt = array<i64: 0>} : (tensor<4xi32>, tensor<f32>) -> (tensor<f32>, tensor<4xi32>)
  return
}
// -----

func.func private @nothing(tensor<4xf32>)

func.func @train_step(%w: tensor<4xf32>, %seed: tensor<f32>) {
  // expected-error @+1 {{'mpc.value_and_grad' op has no loss}}
  mpc.value_and_grad @nothing(%w) seed(%seed) {wrt = array<i64>} : (tensor<4xf32>, tensor<f32>) -> ()
  return
}
// -----

func.func private @count(tensor<4xf32>) -> tensor<i32>

func.func @train_step(%w: tensor<4xf32>, %seed: tensor<f32>) {
  // expected-error @+1 {{'mpc.value_and_grad' op differentiates the first result, which must be floating, got 'tensor<i32>'}}
  %l, %d = mpc.value_and_grad @count(%w) seed(%seed) {wrt = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> (tensor<i32>, tensor<4xf32>)
  return
}
// -----

func.func private @loss(%w: tensor<4xf32>) -> tensor<f32> {
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}

func.func @train_step(%w: tensor<4xf32>, %seed: tensor<f32>) {
  // expected-error @+1 {{'mpc.value_and_grad' op seed is 'tensor<4xf32>'; it must be a scalar or have the loss's shape scalar}}
  %l, %d = mpc.value_and_grad @loss(%w) seed(%w) {wrt = array<i64: 0>} : (tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>)
  return
}
// -----

func.func @guarded_update(%finite: tensor<2xi1>, %step: tensor<i32>) {
  // expected-error @+1 {{'mpc.guarded_update' op condition must be a scalar, got 'tensor<2xi1>'}}
  %new = mpc.guarded_update %finite else(%step) {
    mpc.yield %step : tensor<i32>
  } : (tensor<2xi1>, tensor<i32>) -> tensor<i32>
  return
}
// -----

func.func @guarded_update(%finite: tensor<i1>, %step: tensor<i32>) {
  // expected-error @+1 {{'mpc.guarded_update' op has 1 results, 2 yielded values and 1 old values; the counts must agree}}
  %new = mpc.guarded_update %finite else(%step) {
    mpc.yield %step, %step : tensor<i32>, tensor<i32>
  } : (tensor<i1>, tensor<i32>) -> tensor<i32>
  return
}
// -----

func.func @guarded_update(%finite: tensor<i1>, %step: tensor<i32>, %x: tensor<f32>) {
  // expected-error @+1 {{'mpc.guarded_update' op result 0 is 'tensor<i32>', yielded 'tensor<f32>', old 'tensor<i32>'}}
  %new = mpc.guarded_update %finite else(%step) {
    mpc.yield %x : tensor<f32>
  } : (tensor<i1>, tensor<i32>) -> tensor<i32>
  return
}
// -----

func.func @guarded_update(%finite: tensor<i1>, %x: tensor<f32>) {
  // expected-error @+1 {{'mpc.guarded_update' op may hold only updates of state, unscale, clip_by_norm, casts and constants}}
  %new = mpc.guarded_update %finite else(%x) {
    // expected-note @+1 {{'mpc.relu' is none of these}}
    %y = mpc.relu %x : tensor<f32>
    mpc.yield %y : tensor<f32>
  } : (tensor<i1>, tensor<f32>) -> tensor<f32>
  return
}

// -----

func.func @yield(%x: tensor<f32>) {
  // expected-error @+1 {{'mpc.yield' op expects parent op to be one of 'mpc.fusion, mpc.guarded_update'}}
  mpc.yield %x : tensor<f32>
}

// -----

func.func @guarded_update(%finite: tensor<i1>, %step: tensor<i32>) {
  // expected-error @+1 {{'mpc.guarded_update' op must end with 'mpc.yield', got 'mpc.constant'}}
  %new = "mpc.guarded_update"(%finite, %step) ({
    %one = "mpc.constant"() {value = dense<1> : tensor<i32>} : () -> tensor<i32>
  }) : (tensor<i1>, tensor<i32>) -> tensor<i32>
  return
}
