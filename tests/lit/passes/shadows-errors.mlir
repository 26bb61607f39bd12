// RUN: mpc-opt %s --mpc-shadows --verify-diagnostics --split-input-file

// expected-error @+1 {{the low copy of parameter 'w' needs the name 'w.f16', which another statistic has}}
func.func @taken(%w: tensor<4xf32> {mpc.name = "w", mpc.role = "parameter"},
                 %s: tensor<4xf16> {mpc.name = "w.f16", mpc.role = "statistic"}) -> tensor<4xf16> {
  %a = mpc.cast %w : (tensor<4xf32>) -> tensor<4xf16>
  return %a : tensor<4xf16>
}

// -----

// expected-error @+1 {{parameter 'w' is 'tensor<4xf32>' with mpc.storage = "f8"; an f32 parameter may be stored in f16 or bf16}}
func.func @unknown_storage(%w: tensor<4xf32> {mpc.name = "w", mpc.role = "parameter", mpc.storage = "f8"}) {
  return
}

// -----

// expected-error @+1 {{parameter 'w' is 'tensor<4xi32>' with mpc.storage = "f16"; an f32 parameter may be stored in f16 or bf16}}
func.func @integer(%w: tensor<4xi32> {mpc.name = "w", mpc.role = "parameter", mpc.storage = "f16"}) {
  return
}
