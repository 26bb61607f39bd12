// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic processes=2 accumulation-steps=2" --verify-diagnostics --split-input-file
// RUN: mpc-opt %s --mpc-loss-scale="processes=2 accumulation-steps=2 last-micro-step=false" --verify-diagnostics --split-input-file

// State that moves by itself moves four times in one process, and two processes do not run all four micro-batches.
func.func private @f(tensor<4xf32>, tensor<4xf32>) -> tensor<f32>

func.func @moves_by_itself(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %tau: tensor<f32> {mpc.state = #mpc.state<statistic, "tau">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<f32> {mpc.state = #mpc.state<statistic, "tau">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dw = mpc.value_and_grad @f(%w, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  // expected-error @below {{'tau' moves in every micro-batch, and none of 2 processes runs all 4 of an update; let it follow from what the update computes}}
  %tau1 = mpc.mul_scalar %tau {value = 0.99} : tensor<f32>
  return %tau1 : tensor<f32>
}

// -----

func.func private @f(tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)

func.func @reads_statistics(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %rm: tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
    %rv: tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  // expected-error @below {{the loss follows from 'mean', which moves in every micro-batch; several processes do not know what it is between those of an update}}
  %loss, %m, %s, %dw = mpc.value_and_grad @f(%w, %rm, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
      -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %rm1, %rv1 = mpc.batch_norm_running_update %rm, %rv, %m, %s {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %rm1, %rv1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func private @f(tensor<4xf32>, tensor<4xf32>) -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>)

func.func @differ_in_elements(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %rm: tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
    %rv: tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<statistic, "mean">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "variance">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %m, %s, %dw = mpc.value_and_grad @f(%w, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>)
      -> (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %rm1, %rv1 = mpc.batch_norm_running_update %rm, %rv, %m, %s {count = 8}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  // expected-error @below {{'mean' moves several times in a micro-batch, by batches that differ in their elements or momentum; several processes cannot keep that order}}
  %rm2, %rv2 = mpc.batch_norm_running_update %rm1, %rv1, %s, %m {count = 4}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %rm2, %rv2 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @exchanges(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">}) -> tensor<4xf32> attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %product = mpc.mul %w, %x : tensor<4xf32>
  // expected-error @below {{the network exchanges values of its own between 2 processes, and each accumulates 2 micro-batches of an update; take accumulation-steps = 1}}
  %all = mpc.all_reduce %product {processes = 2} : tensor<4xf32>
  %loss = mpc.reduce_sum %all {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %dw = mpc.backward %loss wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %dw : tensor<4xf32>
}

// -----

func.func private @f(tensor<4xf32>, tensor<4xf32>) -> tensor<f32>

func.func @keeps_its_rows(
    %w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
    %seen: tensor<4xf32> {mpc.state = #mpc.state<statistic, "seen">},
    %x: tensor<4xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4xf32> {mpc.state = #mpc.state<statistic, "seen">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dw = mpc.value_and_grad @f(%w, %x) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  // expected-error @below {{'seen' would move by the rows of one of 2 processes alone; state that the update does not compute may not depend on rows}}
  return %w, %x : tensor<4xf32>, tensor<4xf32>
}
