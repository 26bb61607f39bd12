// RUN: mpc-opt %s --mpc-verify-loss-scale --verify-diagnostics --split-input-file

func.func @twice(%w: tensor<4xf32>, %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}) -> tensor<4xf32> attributes {mpc.step} {
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %g = mpc.backward %loss wrt(%w) seed(%scale) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-note @below {{it was unscaled here, by 'scaler.scale' ('mpc.unscale')}}
  %u = mpc.unscale %g, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %flat = mpc.reshape %u {shape = [2, 2]} : (tensor<4xf32>) -> tensor<2x2xf32>
  // expected-error @below {{'mpc.unscale': a gradient is unscaled twice}}
  %again = mpc.unscale %flat, %scale : (tensor<2x2xf32>, tensor<f32>) -> tensor<2x2xf32>
  return %u : tensor<4xf32>
}

// -----

func.func @clipped(%w: tensor<4xf32>, %v: tensor<4xf32>, %lr: tensor<f32>,
                   %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}) -> tensor<4xf32> attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %scaled = mpc.scale_loss %loss, %scale : tensor<f32>
  // expected-note @below {{a gradient scaled by 'scaler.scale' comes from here ('mpc.backward')}}
  %g = mpc.backward %scaled wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.global_norm': the norm of gradients is taken while it is scaled by 'scaler.scale'}}
  %norm = mpc.global_norm %g : (tensor<4xf32>) -> tensor<f32>
  // expected-error @below {{'mpc.clip_by_norm': a gradient is clipped while it is scaled by 'scaler.scale'}}
  %c = mpc.clip_by_norm %g, %norm {max_norm = 1.0} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %c : tensor<4xf32>
}

// -----

func.func @stepped(%w: tensor<4xf32>, %v: tensor<4xf32>, %lr: tensor<f32>,
                   %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}) -> tensor<4xf32> attributes {mpc.step} {
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  // expected-note @below {{a gradient scaled by 'scaler.scale' comes from here ('mpc.backward' in 'step')}}
  %g = mpc.backward %loss wrt(%w) seed(%scale) {mpc.scope = #mpc.scope<"step">} : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.momentum' in 'optimizer': an optimizer updates by a gradient while it is scaled by 'scaler.scale'}}
  %w2, %v2 = mpc.momentum %w, %v, %g, %lr in <"optimizer">
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2 : tensor<4xf32>
}

// -----

func.func @added(%w: tensor<4xf32>, %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">},
                 %other: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler2.scale">}) -> (tensor<4xf32>, tensor<4xf32>) attributes {mpc.step} {
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  // expected-note @below {{a gradient scaled by 'scaler.scale' comes from here}}
  %g0 = mpc.backward %loss wrt(%w) seed(%scale) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-note @below {{a gradient scaled by 'scaler2.scale' comes from here}}
  %g1 = mpc.backward %loss wrt(%w) seed(%other) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.add': gradients of two different scales are added}}
  %g = mpc.add %g0, %g1 : tensor<4xf32>
  // expected-note @below {{a gradient is unscaled here, by 'scaler2.scale'}}
  %u = mpc.unscale %g1, %other : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.sum_n': gradients of two different scales are added}}
  %sum = mpc.sum_n %g0, %u : tensor<4xf32>
  return %g, %sum : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @unscaled_by_the_update(%w: tensor<4xf32>, %v: tensor<4xf32>, %lr: tensor<f32>,
                                  %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}) -> tensor<4xf32> attributes {mpc.step} {
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
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

func.func @unscaled_by_the_norm(%w: tensor<4xf32>, %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}) -> (tensor<f32>, tensor<f32>) attributes {mpc.step} {
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %g = mpc.backward %loss wrt(%w) seed(%scale) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %norm = mpc.global_norm %scale, %g {unscale = true} : (tensor<f32>, tensor<4xf32>) -> tensor<f32>
  // expected-note @below {{it was unscaled here, by 'scaler.scale' ('mpc.unscale')}}
  %u = mpc.unscale %g, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.global_norm': a gradient is unscaled twice}}
  %again = mpc.global_norm %scale, %u {unscale = true} : (tensor<f32>, tensor<4xf32>) -> tensor<f32>
  return %norm, %again : tensor<f32>, tensor<f32>
}

// -----

// One error for all gradients, with the names of the first three.
func.func @plain(%w: tensor<4xf32> {mpc.state = #mpc.state<input, "w">}, %b: tensor<4xf32> {mpc.state = #mpc.state<input, "b">}, %c: tensor<4xf32> {mpc.state = #mpc.state<input, "c">},
                 %d: tensor<4xf32> {mpc.state = #mpc.state<input, "d">}, %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">})
    -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %all = mpc.sum_n %w, %b, %c, %d : tensor<4xf32>
  %loss = mpc.reduce_sum %all {axes = []} : (tensor<4xf32>) -> tensor<f32>
  // expected-note @below {{a gradient of a loss that no scaler has scaled comes from here ('mpc.backward')}}
  %g:4 = mpc.backward %loss wrt(%w, %b, %c, %d) seed(%one)
      : (tensor<f32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>)
      -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  // expected-error @below {{'mpc.unscale': a gradient is unscaled by 'scaler.scale', which has not scaled its loss; they are the gradients of 'w', 'b', 'c' and 1 more}}
  %u0 = mpc.unscale %g#0, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %u1 = mpc.unscale %g#1, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %u2 = mpc.unscale %g#2, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %u3 = mpc.unscale %g#3, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %u0, %u1, %u2, %u3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @another_scale(%w: tensor<4xf32> {mpc.state = #mpc.state<input, "w">}, %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">},
                         %other: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler2.scale">}) -> (tensor<4xf32>, tensor<4xf32>) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  // expected-note @below {{a gradient scaled by 'scaler.scale' comes from here}}
  %g = mpc.backward %loss wrt(%w) seed(%scale) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{a gradient is unscaled by 'scaler2.scale' while it is scaled by another scale; it is the gradient of 'w'}}
  %u = mpc.unscale %g, %other : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-note @below {{a gradient of a loss that no scaler has scaled comes from here}}
  %plain = mpc.backward %loss wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{gradients of two different scales are added; it is the gradient of 'w'}}
  %sum = mpc.add %g, %plain : tensor<4xf32>
  return %u, %sum : tensor<4xf32>, tensor<4xf32>
}

// -----

// An optimizer that divides, and nothing that it could divide out.
func.func @divides(%w: tensor<4xf32> {mpc.state = #mpc.state<input, "w">}, %v: tensor<4xf32>, %lr: tensor<f32>, %step: tensor<i32>,
                   %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}) -> (tensor<4xf32>, tensor<4xf32>) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  // expected-note @below {{a gradient of a loss that no scaler has scaled comes from here}}
  %g = mpc.backward %loss wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.momentum': an optimizer divides a gradient by its loss_scale = 1024, and no scale is left for it to divide; it is the gradient of 'w'}}
  %w2, %v2 = mpc.momentum %w, %v, %g, %lr {loss_scale = 1024.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %scaled = mpc.backward %loss wrt(%w) seed(%scale) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-note @below {{a gradient is unscaled here, by 'scaler.scale'}}
  %u = mpc.unscale %scaled, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.sgd': an optimizer divides a gradient by its loss_scale = 8, and no scale is left for it to divide}}
  %w3, %v3 = mpc.sgd %w2, %v2, %u, %lr, %step {loss_scale = 8.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2, %w3 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @another_seed(%w: tensor<4xf32> {mpc.state = #mpc.state<input, "w">}, %v: tensor<4xf32>, %lr: tensor<f32>) -> tensor<4xf32> {
  %sens = mpc.constant {value = dense<512.0> : tensor<f32>} : () -> tensor<f32>
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  // expected-note @below {{the gradient comes from here}}
  %g = mpc.backward %loss wrt(%w) seed(%sens) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{an optimizer divides a gradient by its loss_scale = 1024, and its seed is another number}}
  %w2, %v2 = mpc.momentum %w, %v, %g, %lr {loss_scale = 1024.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2 : tensor<4xf32>
}

// -----

// Clipping by value sees unscaled gradients, as clipping by the norm does.
func.func @clipped_by_value(%w: tensor<4xf32> {mpc.state = #mpc.state<input, "w">}, %v: tensor<4xf32>, %lr: tensor<f32>,
                            %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}) -> (tensor<4xf32>, tensor<4xf32>) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  // expected-note @below {{a gradient scaled by 'scaler.scale' comes from here}}
  %g = mpc.backward %loss wrt(%w) seed(%scale) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.clamp': a gradient is clipped while it is scaled by 'scaler.scale'; it is the gradient of 'w'}}
  %c = mpc.clamp %g {minimum = -1.0, maximum = 1.0} : tensor<4xf32>
  // expected-note @below {{a gradient of a loss that no scaler has scaled comes from here}}
  %plain = mpc.backward %loss wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %clipped = mpc.clamp %plain {minimum = -1.0, maximum = 1.0} : tensor<4xf32>
  // expected-error @below {{'mpc.momentum': an optimizer divides a gradient by its loss_scale = 1024, and no scale is left for it to divide}}
  %w2, %v2 = mpc.momentum %w, %v, %clipped, %lr {loss_scale = 1024.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %c, %w2 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @accumulated(%w: tensor<4xf32> {mpc.state = #mpc.state<input, "w">}, %v: tensor<4xf32>, %lr: tensor<f32>, %sum: tensor<4xf32>,
                       %micro_step: tensor<i32>, %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}) -> (tensor<4xf32>, tensor<4xf32>) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  // expected-note @below {{a gradient scaled by 'scaler.scale' comes from here}}
  %g = mpc.backward %loss wrt(%w) seed(%scale) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.accumulate_gradient': a gradient is accumulated while it is scaled by 'scaler.scale'; it is the gradient of 'w'}}
  %a = mpc.accumulate_gradient %sum, %g, %micro_step {count = 2} : (tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  // expected-note @below {{a gradient is unscaled here, by 'scaler.scale'}}
  %u = mpc.unscale %g, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %mean = mpc.accumulate_gradient %sum, %u, %micro_step {count = 2} : (tensor<4xf32>, tensor<4xf32>, tensor<i32>) -> tensor<4xf32>
  // expected-error @below {{'mpc.momentum': an optimizer divides a gradient by its loss_scale = 1024, and no scale is left for it to divide}}
  %w2, %v2 = mpc.momentum %w, %v, %mean, %lr {loss_scale = 1024.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %a, %w2 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @scaled_twice(%w: tensor<4xf32>, %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}) -> tensor<f32> attributes {mpc.step} {
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  // expected-note @below {{it was scaled here ('mpc.scale_loss')}}
  %scaled = mpc.scale_loss %loss, %scale : tensor<f32>
  // expected-error @below {{'mpc.scale_loss': a loss is scaled twice by 'scaler.scale'}}
  %again = mpc.scale_loss %scaled, %scale : tensor<f32>
  return %again : tensor<f32>
}

// -----

// A mean is no scale of the user's own: no factor of it is the optimizer's number.
func.func @mean(%w: tensor<4xf32> {mpc.state = #mpc.state<input, "w">}, %v: tensor<4xf32>, %lr: tensor<f32>) -> tensor<4xf32> attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %rows = mpc.constant {value = dense<32.0> : tensor<f32>} : () -> tensor<f32>
  %sum = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %quotient = mpc.div %sum, %rows : tensor<f32>
  %loss = mpc.mul_scalar %quotient {value = 0.5} : tensor<f32>
  // expected-note @below {{a gradient of a loss that no scaler has scaled comes from here}}
  %g = mpc.backward %loss wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  // expected-error @below {{an optimizer divides a gradient by its loss_scale = 1024, and no scale is left for it to divide}}
  %w2, %v2 = mpc.momentum %w, %v, %g, %lr {loss_scale = 1024.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2 : tensor<4xf32>
}
