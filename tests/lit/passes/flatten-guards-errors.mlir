// RUN: mpc-opt %s --mpc-flatten-guards --verify-diagnostics --split-input-file

func.func @forward_work(%finite: tensor<i1>, %w: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{may hold only updates of state, unscale, clip_by_norm, casts and constants}}
  %new = mpc.guarded_update %finite else(%w) {
    // expected-note @below {{'mpc.exp' is none of these}}
    %e = mpc.exp %w : tensor<4xf32>
    mpc.yield %e : tensor<4xf32>
  } : (tensor<i1>, tensor<4xf32>) -> tensor<4xf32>
  return %new : tensor<4xf32>
}
