// RUN: mpc-opt %s --mlir-print-op-generic > %t
// RUN: mpc-opt %s | mpc-opt --mlir-print-op-generic | diff %t -

// The text of an operation keeps what MLIR's generic form holds, also attributes that the operation does not know.

func.func @numbers(%x: tensor<4xf32>) {
  // Integers that f32 holds exactly, and no short decimal.
  %0 = "mpc.mul_scalar"(%x) <{value = 16777216.0 : f32}> : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "mpc.mul_scalar"(%x) <{value = -12345678.0 : f32}> : (tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @types_of_numbers(%x: tensor<4xf32>) {
  %0 = "mpc.relu"(%x) {other.number = 0.1 : f64} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "mpc.relu"(%x) {other.number = 5 : si64} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "mpc.relu"(%x) {other.number = 5 : ui64} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @arrays(%x: tensor<4xf32>) {
  %0 = "mpc.relu"(%x) {other.array = ["a", "b"]} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "mpc.relu"(%x) {other.array = [1 : i32]} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "mpc.relu"(%x) {other.array = [1, 2]} : (tensor<4xf32>) -> tensor<4xf32>
  %3 = "mpc.relu"(%x) {other.array = []} : (tensor<4xf32>) -> tensor<4xf32>
  %4 = "mpc.relu"(%x) {other.array = array<i64: 1, 2>} : (tensor<4xf32>) -> tensor<4xf32>
  %5 = "mpc.relu"(%x) {other.array = array<i64>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @words(%x: tensor<4xf32>) {
  %0 = "mpc.relu"(%x) {other.word = #mpc.data_format<NHWC>} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "mpc.relu"(%x) {activation = "relu"} : (tensor<4xf32>) -> tensor<4xf32>
  %2 = "mpc.relu"(%x) {activation = "text"} : (tensor<4xf32>) -> tensor<4xf32>
  return
}

func.func @names(%x: tensor<4xf32>) {
  %0 = "mpc.relu"(%x) {"two words" = 5 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "mpc.relu"(%x) {"two words" = array<i64: 1>} : (tensor<4xf32>) -> tensor<4xf32>
  return
}
