// RUN: mpc-opt %s --mpc-amp="level=O2" --verify-diagnostics -o /dev/null
// RUN: mpc-opt %s --mpc-amp="level=O3" --verify-diagnostics -o /dev/null
// RUN: grep -v expected-remark %s | mpc-opt --mpc-amp="level=O2 dtype=bf16" 2>&1 | FileCheck %s --check-prefix=BF16 --implicit-check-not=remark

#net = #mpc.scope<"net", network>

// AMP-34: a constant that f16 turns into zero or infinity is a remark; bf16 has the exponents of f32.
// BF16-LABEL: func @epsilon
func.func @epsilon(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = mpc.constant {value = dense<1.0e-8> : tensor<2xf32>} : () -> tensor<2xf32>
  // expected-remark @below {{'net': constant 1e-08 becomes zero or infinite in 'f16'; a Cell path in deny_add keeps its operations f32}}
  %y = mpc.add %x, %c in #net : tensor<2xf32>
  return %y : tensor<2xf32>
}

func.func @mask(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = mpc.constant {value = dense<[0.0, -1.0e9]> : tensor<2xf32>} : () -> tensor<2xf32>
  // expected-remark @below {{'net': constant -1e+09 becomes zero or infinite in 'f16'; a Cell path in deny_add keeps its operations f32}}
  %y = mpc.add %x, %c in #net : tensor<2xf32>
  return %y : tensor<2xf32>
}

// What f16 holds, subnormals too, is no remark; nor is an infinity that was meant.
func.func @fits(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = mpc.constant {value = dense<[1.0e-7, 0xFF800000]> : tensor<2xf32>} : () -> tensor<2xf32>
  %y = mpc.add %x, %c in #net : tensor<2xf32>
  return %y : tensor<2xf32>
}

// A scalar stays f32, but the result is low: a term is lost beside zero, and a factor makes infinity of 1.
func.func @scalars(%x: tensor<2xf32>) -> tensor<2xf32> {
  // expected-remark @below {{'net': constant 1e-08 becomes zero or infinite in 'f16'}}
  %a = mpc.add_scalar %x {value = 1.0e-8} in #net : tensor<2xf32>
  // expected-remark @below {{'net': constant -1e+09 becomes zero or infinite in 'f16'}}
  %b = mpc.mul_scalar %a {value = -1.0e9} in #net : tensor<2xf32>
  return %b : tensor<2xf32>
}

// The product of a small factor and a large value fits f16.
func.func @scalars_fit(%x: tensor<2xf32>) -> tensor<2xf32> {
  %a = mpc.add_scalar %x {value = 1.0e-7} in #net : tensor<2xf32>
  %b = mpc.mul_scalar %a {value = 1.0e-8} in #net : tensor<2xf32>
  %c = mpc.add_scalar %b {value = 0.0} in #net : tensor<2xf32>
  return %c : tensor<2xf32>
}
