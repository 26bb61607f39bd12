// RUN: mpc-opt %s --mpc-verify-loss-scale > %t && mpc-opt %s | diff %t -

// Unscale, then clip, then step; a sum of equal scales keeps the scale; arithmetic of the user's own makes it unknown.
func.func @clipped(%w: tensor<4xf32>, %v: tensor<4xf32>, %lr: tensor<f32>,
                   %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}) -> tensor<4xf32> attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %scaled = mpc.scale_loss %loss, %scale : tensor<f32>
  %g0 = mpc.backward %scaled wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %g1 = mpc.backward %loss wrt(%w) seed(%scale) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %g = mpc.sum_n %g0, %g1 : tensor<4xf32>
  %u = mpc.unscale %g, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %norm = mpc.global_norm %u : (tensor<4xf32>) -> tensor<f32>
  %c = mpc.clip_by_norm %u, %norm {max_norm = 1.0} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %w2, %v2 = mpc.momentum %w, %v, %c, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2 : tensor<4xf32>
}

// Division by hand; an optimizer that divides; a seed of the user's own.
func.func @by_hand(%w: tensor<4xf32>, %v: tensor<4xf32>, %lr: tensor<f32>, %sens: tensor<f32>,
                   %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {mpc.step} {
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %g = mpc.backward %loss wrt(%w) seed(%scale) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %divided = mpc.div %g, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %norm = mpc.global_norm %divided : (tensor<4xf32>) -> tensor<f32>
  %w2, %v2 = mpc.momentum %w, %v, %divided, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %w3, %v3 = mpc.momentum %w, %v, %g, %lr {loss_scale = 128.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %own = mpc.backward %loss wrt(%w) seed(%sens) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %w4, %v4 = mpc.momentum %w, %v, %own, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w2, %w3, %w4 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// What divides fits its seed, or a scale of the user's own. Plain and unscaled gradients may be added. A scaled loss with
// arithmetic behind it, in a sum too, is of unknown scale.
func.func @fits(%w: tensor<4xf32>, %v: tensor<4xf32>, %lr: tensor<f32>,
                %scale: tensor<f32> {mpc.state = #mpc.state<scaler, "scaler.scale">}) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %sens = mpc.constant {value = dense<1024.0> : tensor<f32>} : () -> tensor<f32>
  %loss = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %g0 = mpc.backward %loss wrt(%w) seed(%sens) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %w0, %v0 = mpc.momentum %w, %v, %g0, %lr {loss_scale = 1024.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %by_hand = mpc.mul %loss, %sens : tensor<f32>
  %g1 = mpc.backward %by_hand wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %w1, %v1 = mpc.momentum %w, %v, %g1, %lr {loss_scale = 1024.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %scaled = mpc.scale_loss %loss, %scale : tensor<f32>
  %total = mpc.add %scaled, %loss : tensor<f32>
  %g2 = mpc.backward %total wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %u2 = mpc.unscale %g2, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %g3 = mpc.backward %scaled wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %u3 = mpc.unscale %g3, %scale : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %plain = mpc.backward %loss wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %sum = mpc.add %plain, %u3 : tensor<4xf32>
  %w3, %v3 = mpc.momentum %w, %v, %sum, %lr
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w0, %u2, %w3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A scale of the user's own is a factor of the loss. Its other factors may be a mean, or a number that is not known.
func.func @scaled_by_hand(%w: tensor<4xf32>, %v: tensor<4xf32>, %lr: tensor<f32>, %rows: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %half = mpc.constant {value = dense<0.5> : tensor<f32>} : () -> tensor<f32>
  %sum = mpc.reduce_sum %w {axes = []} : (tensor<4xf32>) -> tensor<f32>
  %scaled = mpc.mul_scalar %sum {value = 1024.0} : tensor<f32>
  %mean = mpc.mul_scalar %scaled {value = 0.25} : tensor<f32>
  %g0 = mpc.backward %mean wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %w0, %v0 = mpc.momentum %w, %v, %g0, %lr {loss_scale = 1024.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %part = mpc.mul_scalar %sum {value = 512.0} : tensor<f32>
  %whole = mpc.div %part, %half : tensor<f32>
  %g1 = mpc.backward %whole wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %c1 = mpc.clamp %g1 {minimum = -1024.0, maximum = 1024.0} : tensor<4xf32>
  %w1, %v1 = mpc.momentum %w, %v, %c1, %lr {loss_scale = 1024.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %unknown = mpc.div %sum, %rows : tensor<f32>
  %g2 = mpc.backward %unknown wrt(%w) seed(%one) : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  %w2, %v2 = mpc.momentum %w, %v, %g2, %lr {loss_scale = 1024.0}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %w0, %w1, %w2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
