// RUN: mpc-opt %s --mpc-amp="level=O2" --verify-diagnostics -o /dev/null
// RUN: mpc-opt %s --mpc-amp="level=O3" --verify-diagnostics -o /dev/null
// RUN: grep -v expected-remark %s | mpc-opt --mpc-amp="level=O2 dtype=bf16" 2>&1 | FileCheck %s --check-prefix=BF16 --implicit-check-not=remark

#net = #mpc.scope<"net", network>

// AMP-34: a constant that f16 turns into zero or infinity is a remark; bf16 has the exponents of f32.
// BF16-LABEL: func @epsilon
func.func @epsilon(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = mpc.constant {value = dense<1.0e-8> : tensor<2xf32>} : () -> tensor<2xf32>
  // expected-remark @below {{'net': constant 9.99999E-9 becomes zero or infinite in 'f16'}}
  %y = mpc.add %x, %c in #net : tensor<2xf32>
  return %y : tensor<2xf32>
}

func.func @mask(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = mpc.constant {value = dense<[0.0, -1.0e9]> : tensor<2xf32>} : () -> tensor<2xf32>
  // expected-remark @below {{'net': constant -1.0E+9 becomes zero or infinite in 'f16'}}
  %y = mpc.add %x, %c in #net : tensor<2xf32>
  return %y : tensor<2xf32>
}

// What f16 holds, subnormals too, is no remark; nor is an infinity that was meant.
func.func @fits(%x: tensor<2xf32>) -> tensor<2xf32> {
  %c = mpc.constant {value = dense<[1.0e-7, 0xFF800000]> : tensor<2xf32>} : () -> tensor<2xf32>
  %y = mpc.add %x, %c in #net : tensor<2xf32>
  return %y : tensor<2xf32>
}
