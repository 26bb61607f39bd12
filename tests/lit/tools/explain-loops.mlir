// RUN: mpc-opt %s --report | FileCheck %s --check-prefix=REPORT
// RUN: mpc-opt %s --report=json | FileCheck %s --check-prefix=JSON
// RUN: mpc-opt %s --explain=matmul | FileCheck %s --check-prefix=MATMUL
// RUN: mpc-opt %s --explain=@inner | FileCheck %s --check-prefix=INNER
// RUN: mpc-opt %s --mpc-amp=level=O1 --explain=relu | FileCheck %s --check-prefix=RELU
// RUN: not mpc-opt %s --explain=@outside 2>&1 | FileCheck %s --check-prefix=UNKNOWN

// What a loop calls stands where its first call is, once, and counts every run.
// REPORT-LABEL: precision report of @step
// REPORT: operations (5)
// REPORT: 1  relu    net/act                      f32    f32
// REPORT-NEXT: 2  matmul  net/cell (@outer, 5 runs)    f32    f32
// REPORT-NEXT: 3  tanh    net/cell (@inner, 11 runs)   f32    f32
// REPORT-NEXT: 4  exp     net/cell (@outer, 5 runs)    f32    f32
// REPORT-NEXT: 5  square  net/out                      f32    f32
// REPORT: matrix work: 0.0 % of 0.6 kFLOP a step

// JSON: "bytes": 960,
// JSON: "loop": "outer",
// JSON: "op": "matmul",
// JSON: "runs": 5,

// MATMUL: #2 matmul in net/cell of @outer: reads f32, writes f32
// MATMUL: runs 5 times: mpc.repeat calls @outer

// INNER: #3 tanh in net/cell of @inner: reads f32, writes f32
// INNER: runs 11 times: mpc.repeat calls @inner
// INNER-NOT: #

// RELU: #1 relu in net/act: reads f32, writes
// RELU: of @outer

// UNKNOWN: no operation, ordinal or Cell '@outside'
func.func private @inner(%x: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {mpc.sequence} {
  %y = mpc.tanh %x in <"net/cell", network> : tensor<4x4xf32>
  return %y : tensor<4x4xf32>
}
func.func private @outer(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> attributes {mpc.sequence} {
  %y = mpc.matmul %x, %w in <"net/cell", network> : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %z = mpc.repeat @inner(%y) {count = 2 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %e = mpc.exp %z in <"net/cell", network> : tensor<4x4xf32>
  return %e : tensor<4x4xf32>
}
func.func @step(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %a = mpc.relu %x in <"net/act", network> : tensor<4x4xf32>
  %b = mpc.repeat @outer(%a, %w) {count = 5 : i64} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %c = mpc.repeat @inner(%b) {count = 1 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %d = mpc.square %c in <"net/out", network> : tensor<4x4xf32>
  return %d : tensor<4x4xf32>
}
