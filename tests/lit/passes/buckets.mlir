// RUN: mpc-opt %s --mpc-buckets | FileCheck %s
// RUN: mpc-opt %s --mpc-buckets > %t.once && mpc-opt %t.once --mpc-buckets | diff %t.once -
// RUN: mpc-opt %s --mpc-buckets=bucket-mib=0 | FileCheck %s --check-prefix=ALONE
// RUN: mpc-opt %s --mpc-buckets=bucket-mib=0 > %t.alone && mpc-opt %t.alone --mpc-buckets | diff %t.once -
// RUN: mpc-opt %s --mpc-buckets=bucket-mib=1 | FileCheck %s --check-prefix=SMALL
// RUN: mpc-opt %s --mpc-buckets --report | FileCheck %s --check-prefix=REPORT
// RUN: mpc-opt %s --report | FileCheck %s --check-prefix=BEFORE

// The decision on a check travels with the sums of the gradients, and what reads either comes behind them. A low copy of
// a mean does not end the bucket. Updates stay where they are.
// CHECK-LABEL: func @step
// CHECK: %[[CODE:.*]] = mpc.all_reduce_max %{{.*}} {mpc.bucket = 0 : i64, processes = 2}
// CHECK-NEXT: %[[A:.*]] = mpc.all_reduce %{{.*}} {mpc.bucket = 0 : i64, processes = 2}
// CHECK-NEXT: %[[B:.*]] = mpc.all_reduce %{{.*}} {mpc.bucket = 0 : i64, processes = 2}
// CHECK-NEXT: %[[FINITE:.*]] = mpc.equal %[[CODE]],
// CHECK-NEXT: %[[LOW:.*]] = mpc.cast %[[A]]
// CHECK-NEXT: mpc.momentum %{{.*}}, %{{.*}}, %[[LOW]],
// CHECK-NEXT: mpc.momentum %{{.*}}, %{{.*}}, %[[B]],

// Each is a message of its own, and nothing moves.
// ALONE-LABEL: func @step
// ALONE: mpc.all_reduce_max %{{.*}} {mpc.bucket = 0 : i64,
// ALONE-NEXT: mpc.equal
// ALONE: mpc.all_reduce %{{.*}} {mpc.bucket = 1 : i64,
// ALONE-NEXT: mpc.cast
// ALONE: mpc.all_reduce %{{.*}} {mpc.bucket = 2 : i64,

// REPORT: precision report of @step
// REPORT: messages (1 a step between 2 processes, 44 bytes of each)
// REPORT-NEXT: message  operations                      bytes
// REPORT-NEXT: 1        all_reduce_max, all_reduce (2)  44
// BEFORE: precision report of @step
// BEFORE: messages (3 a step between 2 processes, 44 bytes of each)
func.func @step(
    %a: tensor<4xf32> {mpc.state = #mpc.state<parameter, "a">},
    %b: tensor<6xf32> {mpc.state = #mpc.state<parameter, "b">},
    %va: tensor<4xf32> {mpc.state = #mpc.state<slot, "a.v", of = "a">},
    %vb: tensor<6xf32> {mpc.state = #mpc.state<slot, "b.v", of = "b">},
    %rate: tensor<f32> {mpc.state = #mpc.state<learning_rate, "rate">},
    %found: tensor<i32> {mpc.state = #mpc.state<input, "found">},
    %da: tensor<4xf16> {mpc.state = #mpc.state<input, "da">}, %db: tensor<6xf32> {mpc.state = #mpc.state<input, "db">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "a">}, tensor<4xf32> {mpc.state = #mpc.state<slot, "a.v">},
        tensor<6xf32> {mpc.state = #mpc.state<parameter, "b">}, tensor<6xf32> {mpc.state = #mpc.state<slot, "b.v">})
    attributes {mpc.step} {
  %none = mpc.constant {value = dense<-1> : tensor<i32>} : () -> tensor<i32>
  %code = mpc.all_reduce_max %found {processes = 2} : tensor<i32>
  %finite = mpc.equal %code, %none : (tensor<i32>, tensor<i32>) -> tensor<i1>
  %wide = mpc.cast %da : (tensor<4xf16>) -> tensor<4xf32>
  %sum = mpc.all_reduce %wide {processes = 2} : tensor<4xf32>
  %low = mpc.cast %sum : (tensor<4xf32>) -> tensor<4xf16>
  %half = mpc.mul_scalar %db {value = 0.5} : tensor<6xf32>
  %sum2 = mpc.all_reduce %half {processes = 2} : tensor<6xf32>
  %a1, %va1 = mpc.momentum %a, %va, %low, %rate, %finite
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  %b1, %vb1 = mpc.momentum %b, %vb, %sum2, %rate, %finite
      : (tensor<6xf32>, tensor<6xf32>, tensor<6xf32>, tensor<f32>, tensor<i1>) -> (tensor<6xf32>, tensor<6xf32>)
  return %a1, %va1, %b1, %vb1 : tensor<4xf32>, tensor<4xf32>, tensor<6xf32>, tensor<6xf32>
}

// What follows from a sum is not in its message. Neither is what is made behind an update that reads the sum.
// CHECK-LABEL: func @dependent
// CHECK: mpc.all_reduce %{{.*}} {mpc.bucket = 0 : i64,
// CHECK: mpc.all_reduce %{{.*}} {mpc.bucket = 1 : i64,
// CHECK-NEXT: mpc.momentum
// CHECK-NEXT: mpc.neg
// CHECK-NEXT: mpc.all_reduce %{{.*}} {mpc.bucket = 2 : i64,
func.func @dependent(
    %a: tensor<4xf32> {mpc.state = #mpc.state<parameter, "a">},
    %va: tensor<4xf32> {mpc.state = #mpc.state<slot, "a.v", of = "a">},
    %rate: tensor<f32> {mpc.state = #mpc.state<learning_rate, "rate">},
    %da: tensor<4xf32> {mpc.state = #mpc.state<input, "da">}, %x: tensor<2xf32> {mpc.state = #mpc.state<input, "x">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "a">}, tensor<4xf32> {mpc.state = #mpc.state<slot, "a.v">},
        tensor<2xf32>) attributes {mpc.step} {
  %sum = mpc.all_reduce %da {processes = 2} : tensor<4xf32>
  %square = mpc.mul %sum, %sum : tensor<4xf32>
  %sum2 = mpc.all_reduce %square {processes = 2} : tensor<4xf32>
  %a1, %va1 = mpc.momentum %a, %va, %sum2, %rate
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %y = mpc.neg %x : tensor<2xf32>
  %sum3 = mpc.all_reduce %y {processes = 2} : tensor<2xf32>
  return %a1, %va1, %sum3 : tensor<4xf32>, tensor<4xf32>, tensor<2xf32>
}

// Gathers share a message with gathers. They come in front of the first update that reads one of them.
// CHECK-LABEL: func @gathers
// CHECK: mpc.all_gather %{{.*}} {mpc.bucket = 0 : i64,
// CHECK-NEXT: mpc.all_gather %{{.*}} {mpc.bucket = 0 : i64,
// CHECK-NEXT: mpc.all_gather %{{.*}} {mpc.bucket = 0 : i64,
// CHECK-NEXT: mpc.all_gather %{{.*}} {mpc.bucket = 0 : i64,
// CHECK-NEXT: mpc.batch_norm_running_update
// CHECK-NEXT: mpc.batch_norm_running_update
// ALONE-LABEL: func @gathers
// ALONE: mpc.all_gather %{{.*}} {mpc.bucket = 1 : i64,
// ALONE-NEXT: mpc.batch_norm_running_update
// ALONE-NEXT: mpc.all_gather %{{.*}} {mpc.bucket = 2 : i64,
func.func @gathers(
    %m: tensor<2xf32> {mpc.state = #mpc.state<statistic, "m">}, %v: tensor<2xf32> {mpc.state = #mpc.state<statistic, "v">},
    %n: tensor<3xf32> {mpc.state = #mpc.state<statistic, "n">}, %w: tensor<3xf32> {mpc.state = #mpc.state<statistic, "w">},
    %bm: tensor<2xf32> {mpc.state = #mpc.state<input, "bm">}, %bv: tensor<2xf32> {mpc.state = #mpc.state<input, "bv">},
    %bn: tensor<3xf32> {mpc.state = #mpc.state<input, "bn">}, %bw: tensor<3xf32> {mpc.state = #mpc.state<input, "bw">})
    -> (tensor<2xf32> {mpc.state = #mpc.state<statistic, "m">}, tensor<2xf32> {mpc.state = #mpc.state<statistic, "v">},
        tensor<3xf32> {mpc.state = #mpc.state<statistic, "n">}, tensor<3xf32> {mpc.state = #mpc.state<statistic, "w">})
    attributes {mpc.step} {
  %ms = mpc.all_gather %bm {processes = 2} : (tensor<2xf32>) -> tensor<2x2xf32>
  %vs = mpc.all_gather %bv {processes = 2} : (tensor<2xf32>) -> tensor<2x2xf32>
  %m1, %v1 = mpc.batch_norm_running_update %m, %v, %ms, %vs {batches = 2, count = 8}
      : (tensor<2xf32>, tensor<2xf32>, tensor<2x2xf32>, tensor<2x2xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %ns = mpc.all_gather %bn {processes = 2} : (tensor<3xf32>) -> tensor<2x3xf32>
  %ws = mpc.all_gather %bw {processes = 2} : (tensor<3xf32>) -> tensor<2x3xf32>
  %n1, %w1 = mpc.batch_norm_running_update %n, %w, %ns, %ws {batches = 2, count = 8}
      : (tensor<3xf32>, tensor<3xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> (tensor<3xf32>, tensor<3xf32>)
  return %m1, %v1, %n1, %w1 : tensor<2xf32>, tensor<2xf32>, tensor<3xf32>, tensor<3xf32>
}

// 768 KiB, 256 KiB and 4 bytes: in one bucket of 1 MiB there is room for the first two.
// SMALL-LABEL: func @sizes
// SMALL: mpc.all_reduce %{{.*}} {mpc.bucket = 0 : i64,
// SMALL-NEXT: mpc.all_reduce %{{.*}} {mpc.bucket = 0 : i64,
// SMALL-NEXT: mpc.all_reduce %{{.*}} {mpc.bucket = 1 : i64,
// CHECK-LABEL: func @sizes
// CHECK: mpc.all_reduce %{{.*}} {mpc.bucket = 0 : i64,
// CHECK-NEXT: mpc.all_reduce %{{.*}} {mpc.bucket = 0 : i64,
// CHECK-NEXT: mpc.all_reduce %{{.*}} {mpc.bucket = 0 : i64,
func.func @sizes(%x: tensor<196608xf32>, %y: tensor<65536xf32>, %z: tensor<1xf32>)
    -> (tensor<196608xf32>, tensor<65536xf32>, tensor<1xf32>) {
  %a = mpc.all_reduce %x {processes = 2} : tensor<196608xf32>
  %b = mpc.all_reduce %y {processes = 2} : tensor<65536xf32>
  %c = mpc.all_reduce %z {processes = 2} : tensor<1xf32>
  return %a, %b, %c : tensor<196608xf32>, tensor<65536xf32>, tensor<1xf32>
}

// In one process they are copies and no messages; the rank is none either.
// CHECK-LABEL: func @alone
// CHECK-NOT: mpc.bucket
// CHECK: return
func.func @alone(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<i32>) {
  %a = mpc.all_reduce %x : tensor<4xf32>
  %b = mpc.all_reduce %y : tensor<4xf32>
  %rank = mpc.process_rank {processes = 2} : () -> tensor<i32>
  return %a, %b, %rank : tensor<4xf32>, tensor<4xf32>, tensor<i32>
}
