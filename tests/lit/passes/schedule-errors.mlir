// RUN: mpc-opt %s --mpc-schedule --verify-diagnostics --split-input-file

// expected-error @+1 {{mpc-schedule orders one block of operations, got 2}}
func.func @two_blocks(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
^unreachable:
  return %x : tensor<4xf32>
}

// -----

module attributes {mpc.target = #mpc.target<"tpu">} {
  // expected-error @+1 {{unknown target 'tpu'; choose cpu or cuda}}
  func.func @target(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}
