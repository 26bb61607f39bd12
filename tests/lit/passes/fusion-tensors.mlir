// A kernel takes so many tensors: those that a region reads and writes are counted, each once.
// RUN: mpc-opt %s --mpc-fusion=max-tensors=4 | FileCheck %s
// RUN: mpc-opt %s --mpc-fusion=max-tensors=4 > %t.once && mpc-opt %t.once --mpc-fusion=max-tensors=4 | diff %t.once -
// RUN: mpc-opt %s --mpc-fusion | FileCheck %s --check-prefix=DEFAULT

// CHECK-LABEL: func @three_inputs_one_output
// CHECK: mpc.fusion(%arg0, %arg1, %arg2) {
// DEFAULT-LABEL: func @three_inputs_one_output
// DEFAULT: mpc.fusion(%arg0, %arg1, %arg2) {
func.func @three_inputs_one_output(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>) -> tensor<8xf32> {
  %0 = mpc.add %a, %b : tensor<8xf32>
  %1 = mpc.mul %0, %c : tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func @four_inputs
// CHECK: mpc.fusion
// CHECK: left_out = ["{{add|mul}}: the region would read and write more than 4 tensors"]
// DEFAULT-LABEL: func @four_inputs
// DEFAULT: mpc.fusion(%arg0, %arg1, %arg2, %arg3) {
func.func @four_inputs(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<8xf32>) -> tensor<8xf32> {
  %0 = mpc.add %a, %b : tensor<8xf32>
  %1 = mpc.mul %0, %c : tensor<8xf32>
  %2 = mpc.add %1, %d : tensor<8xf32>
  return %2 : tensor<8xf32>
}

// A sum of more terms keeps its own kernel.
// CHECK-LABEL: func @many_terms
// CHECK-NOT: mpc.fusion
// CHECK: return
// DEFAULT-LABEL: func @many_terms
// DEFAULT: mpc.fusion
func.func @many_terms(%a: tensor<8xf32>, %b: tensor<8xf32>, %c: tensor<8xf32>, %d: tensor<8xf32>) -> tensor<8xf32> {
  %0 = mpc.sum_n %a, %b, %c, %d : tensor<8xf32>
  %1 = mpc.relu %0 : tensor<8xf32>
  return %1 : tensor<8xf32>
}
