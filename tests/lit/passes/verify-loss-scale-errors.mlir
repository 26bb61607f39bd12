// RUN: mpc-opt %s --mpc-verify-loss-scale --verify-diagnostics --split-input-file

func.func @twice(%w: tensor<4xf32>, %scale: tensor<f32> {mpc.role = "scaler", mpc.name = "scaler.scale"}) -> tensor<4xf32> {
  %loss = mpc.reduce_sum %w {axes = array<i64>} : (tensor<4xf32>) -> tensor<f32>
  %g = mpc.backward %loss wrt(%w) seed(%scale) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-note @below {{it was unscaled here, by 'scaler.scale' ('mpc.unscale')}}
  %u = mpc.unscale %g, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %flat = mpc.reshape %u {shape = array<i64: 2, 2>} : (tensor<4xf32>) -> tensor<2x2xf32>
  // expected-error @below {{'mpc.unscale': a gradient is unscaled twice}}
  %again = mpc.unscale %flat, %scale : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  return %u : tensor<4xf32>
}

// -----

func.func @clipped(%w: tensor<4xf32>, %v: tensor<4xf32>, %lr: tensor<f32>,
                   %scale: tensor<f32> {mpc.role = "scaler", mpc.name = "scaler.scale"}) -> tensor<4xf32> {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss = mpc.reduce_sum %w {axes = array<i64>} : (tensor<4xf32>) -> tensor<f32>
  %scaled = mpc.scale_loss %loss, %scale : (tensor<f32>, tensor<f32>) -> tensor<f32>
  // expected-note @below {{a gradient scaled by 'scaler.scale' comes from here ('mpc.backward')}}
  %g = mpc.backward %scaled wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.global_norm': the norm of gradients is taken while it is scaled by 'scaler.scale'}}
  %norm = mpc.global_norm %g : (tensor<4xf32>) -> tensor<f32>
  // expected-error @below {{'mpc.clip_by_norm': a gradient is clipped while it is scaled by 'scaler.scale'}}
  %c = mpc.clip_by_norm %g, %norm {max_norm = 1.0 : f32} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// -----

func.func @stepped(%w: tensor<4xf32>, %v: tensor<4xf32>, %lr: tensor<f32>,
                   %scale: tensor<f32> {mpc.role = "scaler", mpc.name = "scaler.scale"}) -> tensor<4xf32> {
  %loss = mpc.reduce_sum %w {axes = array<i64>} : (tensor<4xf32>) -> tensor<f32>
  // expected-note @below {{a gradient scaled by 'scaler.scale' comes from here ('mpc.backward' in 'step')}}
  %g = mpc.backward %loss wrt(%w) seed(%scale) {mpc.scope = #mpc.scope<path = "step">} : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.momentum' in 'optimizer': an optimizer updates by a gradient while it is scaled by 'scaler.scale'}}
  %w2, %v2 = mpc.momentum %w, %v, %g, %lr {mpc.scope = #mpc.scope<path = "optimizer">}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2 : tensor<4xf32>
}

// -----

func.func @added(%w: tensor<4xf32>, %scale: tensor<f32> {mpc.role = "scaler", mpc.name = "scaler.scale"},
                 %other: tensor<f32> {mpc.role = "scaler", mpc.name = "scaler2.scale"}) -> (tensor<4xf32>, tensor<4xf32>) {
  %loss = mpc.reduce_sum %w {axes = array<i64>} : (tensor<4xf32>) -> tensor<f32>
  // expected-note @below {{a gradient scaled by 'scaler.scale' comes from here}}
  %g0 = mpc.backward %loss wrt(%w) seed(%scale) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-note @below {{a gradient scaled by 'scaler2.scale' comes from here}}
  %g1 = mpc.backward %loss wrt(%w) seed(%other) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.add': gradients of two different scales are added}}
  %g = mpc.add %g0, %g1 : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // expected-note @below {{a gradient is unscaled here, by 'scaler2.scale'}}
  %u = mpc.unscale %g1, %other : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.sum_n': gradients of two different scales are added}}
  %sum = mpc.sum_n %g0, %u : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %g, %sum : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @unscaled_by_the_update(%w: tensor<4xf32>, %v: tensor<4xf32>, %lr: tensor<f32>,
                                  %scale: tensor<f32> {mpc.role = "scaler", mpc.name = "scaler.scale"}) -> tensor<4xf32> {
  %loss = mpc.reduce_sum %w {axes = array<i64>} : (tensor<4xf32>) -> tensor<f32>
  %g = mpc.backward %loss wrt(%w) seed(%scale) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-note @below {{it was unscaled here, by 'scaler.scale' ('mpc.unscale')}}
  %u = mpc.unscale %g, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.momentum': a gradient is unscaled twice}}
  %w2, %v2 = mpc.momentum %w, %v, %u, %lr, %scale {unscale = true}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  // What the update itself unscales is scaled before it.
  %w3, %v3 = mpc.momentum %w2, %v2, %g, %lr, %scale {unscale = true}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w3 : tensor<4xf32>
}

// -----

func.func @unscaled_by_the_norm(%w: tensor<4xf32>, %scale: tensor<f32> {mpc.role = "scaler", mpc.name = "scaler.scale"}) -> (tensor<f32>, tensor<f32>) {
  %loss = mpc.reduce_sum %w {axes = array<i64>} : (tensor<4xf32>) -> tensor<f32>
  %g = mpc.backward %loss wrt(%w) seed(%scale) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %norm = mpc.global_norm %scale, %g {unscale = true} : (tensor<f32>, tensor<4xf32>) -> tensor<f32>
  // expected-note @below {{it was unscaled here, by 'scaler.scale' ('mpc.unscale')}}
  %u = mpc.unscale %g, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.global_norm': a gradient is unscaled twice}}
  %again = mpc.global_norm %scale, %u {unscale = true} : (tensor<f32>, tensor<4xf32>) -> tensor<f32>
  return %norm, %again : tensor<f32>, tensor<f32>
}
