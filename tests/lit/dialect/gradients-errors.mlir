// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @scale_loss(%0: tensor<4xf32>, %1: tensor<1xf32>) {
  // expected-error @+1 {{'mpc.scale_loss' op scale_loss expects scalars (rank 0), got tensor<1xf32>}}
  %r0 = mpc.scale_loss %0, %1 : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @merge_checks(%0: tensor<i32>, %1: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.merge_checks' op merge_checks expects scalars (rank 0), got tensor<2xi32>}}
  %r0 = mpc.merge_checks %0, %1 : (tensor<i32>, tensor<2xi32>) -> tensor<i32>
  return
}

// -----

func.func @no_checks() {
  // expected-error @+1 {{'mpc.merge_checks' op merge_checks expects at least one check}}
  %r0 = mpc.merge_checks : () -> tensor<i32>
  return
}

// -----

func.func @all_of() {
  // expected-error @+1 {{'mpc.all_of' op all_of expects at least one flag}}
  %r0 = mpc.all_of : () -> tensor<i1>
  return
}

// -----

func.func @any_of(%0: tensor<2xi1>) {
  // expected-error @+1 {{'mpc.any_of' op any_of expects scalars (rank 0), got tensor<2xi1>}}
  %r0 = mpc.any_of %0 : (tensor<2xi1>) -> tensor<i1>
  return
}

// -----

func.func @global_norm() {
  // expected-error @+1 {{'mpc.global_norm' op global_norm expects at least one gradient}}
  %r0 = mpc.global_norm : () -> tensor<f32>
  return
}

// -----

func.func @more_sums_than_operands(%0: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.global_norm' op global_norm expects sums to count operands: from 0 to 1, got 2}}
  %r0 = mpc.global_norm %0 {sums = 2} : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @a_sum_that_is_a_gradient(%0: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.global_norm' op global_norm expects scalars (rank 0), got tensor<4xf32>}}
  %r0 = mpc.global_norm %0 {sums = 1} : (tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @sum_of_squares_by_a_tensor(%0: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.sum_of_squares' op sum_of_squares expects scalars (rank 0), got tensor<4xf32>}}
  %r0 = mpc.sum_of_squares %0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @check_finite_by_a_tensor(%0: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.check_finite' op check_finite expects scalars (rank 0), got tensor<4xf32>}}
  %r0 = mpc.check_finite %0, %0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<i1>
  return
}

// -----

func.func @flags_of_elements(%scale: tensor<f32>, %flags: tensor<4xi1>) {
  // expected-error @+1 {{'mpc.all_finite' op all_finite expects scalars (rank 0), got tensor<4xi1>}}
  %r0, %r1 = mpc.all_finite %scale, %scale, %flags : (tensor<f32>, tensor<f32>, tensor<4xi1>) -> (tensor<i1>, tensor<i32>)
  return
}

// -----

func.func @clip_by_norm(%0: tensor<4xf32>, %1: tensor<f32>) {
  // expected-error @+1 {{'mpc.clip_by_norm' op clip_by_norm expects max_norm > 0, got 0.00}}
  %r0 = mpc.clip_by_norm %0, %1 {max_norm = 0.0} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return
}

// -----

func.func @clip_by_a_tensor(%0: tensor<4xf32>, %1: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.clip_by_norm' op clip_by_norm expects scalars (rank 0), got tensor<4xf32>}}
  %r0 = mpc.clip_by_norm %0, %1 {max_norm = 1.0} : tensor<4xf32>
  return
}

// -----

func.func @accumulate_gradient(%0: tensor<4xf32>, %1: tensor<3xf32>, %2: tensor<i32>) {
  // expected-error @+1 {{'mpc.accumulate_gradient' op accumulate_gradient expects a gradient of shape 4, got tensor<3xf32>}}
  %r0 = mpc.accumulate_gradient %0, %1, %2 {count = 2} : (tensor<4xf32>, tensor<3xf32>, tensor<i32>) -> tensor<4xf32>
  return
}

// -----

func.func @no_micro_steps(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<i32>) {
  // expected-error @+1 {{'mpc.accumulate_gradient' op accumulate_gradient expects a count of at least 1 micro-step, got 0}}
  %r0 = mpc.accumulate_gradient %0, %1, %2 {count = 0} : (tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  return
}

// -----

func.func @next_micro_step(%0: tensor<i32>) {
  // expected-error @+1 {{'mpc.next_micro_step' op next_micro_step expects a count of at least 1 micro-step, got -1}}
  %r0 = mpc.next_micro_step %0 {count = -1} : tensor<i32>
  return
}

// -----

func.func @tensor_statistics(%0: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.tensor_statistics' op result 0 is 'tensor<255xi32>', its shape must be 256}}
  %r0, %r1, %r2 = mpc.tensor_statistics %0 : (tensor<4xf32>) -> (tensor<255xi32>, tensor<i32>, tensor<f32>)
  return
}
