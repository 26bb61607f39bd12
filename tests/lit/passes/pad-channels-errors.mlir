// RUN: mpc-opt %s --mpc-pad-channels --verify-diagnostics

module attributes {mpc.target = #mpc.target<"tpu">} {
  // expected-error @+1 {{unknown target 'tpu'; choose cpu or cuda}}
  func.func @f(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}
