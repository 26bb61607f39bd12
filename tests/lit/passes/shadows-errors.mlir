// RUN: mpc-opt %s --mpc-shadows --verify-diagnostics --split-input-file

// expected-error @+1 {{the low copy of parameter 'w' needs the name 'w.f16', which another statistic has}}
func.func @taken(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                 %s: tensor<4xf16> {mpc.state = #mpc.state<statistic, "w.f16">}) -> tensor<4xf16> attributes {mpc.step} {
  %a = mpc.cast %w : (tensor<4xf32>) -> tensor<4xf16>
  return %a : tensor<4xf16>
}

// -----

// expected-error @+1 {{the low copy of parameter 'w' needs the name 'w.f16', which another derived has}}
func.func @of_another_type(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                           %s: tensor<4xbf16> {mpc.state = #mpc.state<derived, "w.f16", of = "w">}) -> tensor<4xf16> attributes {mpc.step} {
  %a = mpc.cast %w : (tensor<4xf32>) -> tensor<4xf16>
  return %a : tensor<4xf16>
}

// -----

// expected-error @+1 {{the low copy of parameter 'w' needs the name 'w.f16', which another derived has}}
func.func @of_another_parameter(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">},
                                %v: tensor<4xf32> {mpc.state = #mpc.state<parameter, "v">},
                                %s: tensor<4xf16> {mpc.state = #mpc.state<derived, "w.f16", of = "v">}) -> tensor<4xf16> attributes {mpc.step} {
  %a = mpc.cast %w : (tensor<4xf32>) -> tensor<4xf16>
  return %a : tensor<4xf16>
}
