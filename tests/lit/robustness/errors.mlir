// RUN: mpc-opt %s --split-input-file --verify-diagnostics

func.func @kind() -> tensor<4xf32> {
  // expected-error @+1 {{'mpc.constant' op result is 'tensor<4xf32>', its value is 'tensor<4xi32>'}}
  %0 = mpc.constant {value = dense<1> : tensor<4xi32>} : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @sparse() -> tensor<4xf32> {
  // expected-error @+1 {{'mpc.constant' op takes a dense value, got sparse<0, 1.000000e+00>}}
  %0 = mpc.constant {value = sparse<[[0]], [1.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

// expected-error @+1 {{scope 'net' pins 'i32'; choose f32, f16 or bf16}}
func.func @pin() attributes {mpc.scope = #mpc.scope<path = "net", pin = i32>} {
  return
}
