// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s

// What arguments and results are. A slot may have another shape than its parameter, a new value another place than the
// old one, and data the name of state.
// CHECK-LABEL: func @step(
// CHECK-SAME: tensor<4x2xf32> {mpc.state = #mpc.state<parameter, "w", form = bf16>}
// CHECK-SAME: tensor<4xf32> {mpc.state = #mpc.state<slot, "rows", of = "w">}
// CHECK-SAME: tensor<4x2xf16> {mpc.state = #mpc.state<derived, "low", of = "w">}
// CHECK-SAME: tensor<2xf32> {mpc.state = #mpc.state<input, "w">}
// CHECK-SAME: -> (tensor<4xf32> {mpc.state = #mpc.state<slot, "rows">}, tensor<2xf32>, tensor<2xf32> {mpc.state = #mpc.state<output, "">}, tensor<4x2xf32> {mpc.state = #mpc.state<parameter, "w">})
func.func @step(%w: tensor<4x2xf32> {mpc.state = #mpc.state<parameter, "w", form = bf16>},
                %v: tensor<4xf32> {mpc.state = #mpc.state<slot, "rows", of = "w">},
                %s: tensor<4x2xf16> {mpc.state = #mpc.state<derived, "low", of = "w">},
                %x: tensor<2xf32> {mpc.state = #mpc.state<input, "w">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<slot, "rows">}, tensor<2xf32>,
        tensor<2xf32> {mpc.state = #mpc.state<output, "">},
        tensor<4x2xf32> {mpc.state = #mpc.state<parameter, "w">}) attributes {mpc.step} {
  return %v, %x, %x, %w : tensor<4xf32>, tensor<2xf32>, tensor<2xf32>, tensor<4x2xf32>
}

// Every role.
// CHECK-LABEL: func @roles(
// CHECK-SAME: #mpc.state<input, "input">{{.*}}#mpc.state<capture, "capture">{{.*}}#mpc.state<parameter, "parameter">
// CHECK-SAME: #mpc.state<statistic, "statistic">{{.*}}#mpc.state<step, "step">{{.*}}#mpc.state<learning_rate, "rate">
// CHECK-SAME: #mpc.state<rng, "rng">{{.*}}#mpc.state<scaler, "scale">{{.*}}#mpc.state<accumulator, "sum", of = "parameter">
// CHECK-SAME: #mpc.state<record, "record">
func.func @roles(%0: tensor<1xf32> {mpc.state = #mpc.state<input, "input">},
                 %1: tensor<1xf32> {mpc.state = #mpc.state<capture, "capture">},
                 %2: tensor<1xf32> {mpc.state = #mpc.state<parameter, "parameter">},
                 %3: tensor<1xf32> {mpc.state = #mpc.state<statistic, "statistic">},
                 %4: tensor<1xi32> {mpc.state = #mpc.state<step, "step">},
                 %5: tensor<1xf32> {mpc.state = #mpc.state<learning_rate, "rate">},
                 %6: tensor<1xi64> {mpc.state = #mpc.state<rng, "rng">},
                 %7: tensor<1xf32> {mpc.state = #mpc.state<scaler, "scale">},
                 %8: tensor<1xf32> {mpc.state = #mpc.state<accumulator, "sum", of = "parameter">})
    -> (tensor<1xf32> {mpc.state = #mpc.state<record, "record">}) attributes {mpc.step} {
  return %0 : tensor<1xf32>
}
