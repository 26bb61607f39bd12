// RUN: mpc-opt %s --mpc-fusion | FileCheck %s
// RUN: mpc-opt %s --mpc-fusion > %t.once && mpc-opt %t.once --mpc-fusion | diff %t.once -
// RUN: mpc-opt %s --mpc-attach-target=name=cuda --mpc-fusion | FileCheck %s --check-prefix=CUDA
// RUN: mpc-opt %s --mpc-fusion=max-operations=1 | FileCheck %s --check-prefix=NONE

// The region that adds a gradient checks it and sums its squares; that of a library is read in the grouped pass. Flags
// keep the places of their gradients, sums come last and are f64 whatever the norm is. 128 KiB are more than a CPU moves in the time of a combination,
// and less than a GPU does.
// CHECK-LABEL: func @added
// CHECK-SAME: (%[[SCALE:.*]]: tensor<f32>, %[[LOSS:.*]]: tensor<f32>, %[[A:.*]]: tensor<256x128xf32>, %[[B:.*]]: tensor<256x128xf32>, %[[C:.*]]: tensor<64xf16>)
// CHECK: %[[F:.*]]:3 = mpc.fusion(%[[A]], %[[B]], %[[SCALE]]) {
// CHECK:   %[[G:.*]] = mpc.sum_n
// CHECK-DAG:   %[[FLAG:.*]] = mpc.check_finite %[[G]], %{{.*}} : (tensor<256x128xf32>, tensor<f32>) -> tensor<i1>
// CHECK-DAG:   %[[SUM:.*]] = mpc.sum_of_squares %[[G]], %{{.*}} : (tensor<256x128xf32>, tensor<f32>) -> tensor<f64>
// CHECK:   mpc.yield %[[G]], {{.*}} : tensor<256x128xf32>, tensor<{{.*}}>, tensor<{{.*}}>
// CHECK: mpc.all_finite %[[SCALE]], %[[LOSS]], %[[F]]#{{[12]}}, %[[C]] : (tensor<f32>, tensor<f32>, tensor<i1>, tensor<64xf16>) -> (tensor<i1>, tensor<i32>)
// CHECK-NEXT: mpc.global_norm %[[SCALE]], %[[C]], %[[F]]#{{[12]}} {sums = 1, unscale = true} : (tensor<f32>, tensor<64xf16>, tensor<f64>) -> tensor<f64>
// CUDA-LABEL: func @added
// CUDA-NOT: mpc.fusion
// CUDA: mpc.all_finite %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<f32>, tensor<f32>, tensor<256x128xf32>, tensor<64xf16>)
// CUDA-NEXT: mpc.global_norm %{{.*}}, %{{.*}}, %{{.*}} {unscale = true} : (tensor<f32>, tensor<256x128xf32>, tensor<64xf16>) -> tensor<f64>
// NONE-LABEL: func @added
// NONE-NOT: mpc.fusion
// NONE-NOT: mpc.check_finite
// NONE: mpc.all_finite %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<f32>, tensor<f32>, tensor<256x128xf32>, tensor<64xf16>)
// NONE-NEXT: mpc.global_norm %{{.*}}, %{{.*}}, %{{.*}} {unscale = true} : (tensor<f32>, tensor<256x128xf32>, tensor<64xf16>) -> tensor<f64>
func.func @added(%scale: tensor<f32>, %loss: tensor<f32>, %a: tensor<256x128xf32>, %b: tensor<256x128xf32>, %c: tensor<64xf16>)
    -> (tensor<256x128xf32>, tensor<i1>, tensor<i32>, tensor<f64>) {
  %g = mpc.sum_n %a, %b backward : tensor<256x128xf32>
  %finite, %bad = mpc.all_finite %scale, %loss, %g, %c
      : (tensor<f32>, tensor<f32>, tensor<256x128xf32>, tensor<64xf16>) -> (tensor<i1>, tensor<i32>)
  %norm = mpc.global_norm %scale, %g, %c {unscale = true}
      : (tensor<f32>, tensor<256x128xf32>, tensor<64xf16>) -> tensor<f64>
  return %g, %finite, %bad, %norm : tensor<256x128xf32>, tensor<i1>, tensor<i32>, tensor<f64>
}

// 32 MiB pay on a GPU, too. Without a scale a sum of squares has none. The flag of a reshaped gradient is the
// gradient's: a reshape moves nothing.
// CHECK-LABEL: func @large
// CHECK: mpc.fusion
// CHECK: mpc.sum_of_squares %{{.*}} : (tensor<4096x2048xf32>) -> tensor<f64>
// CHECK: mpc.global_norm %{{.*}} {sums = 1} : (tensor<f64>) -> tensor<f32>
// CUDA-LABEL: func @large
// CUDA: mpc.fusion
// CUDA: mpc.check_finite
// CUDA: mpc.all_finite %{{.*}}, %{{.*}}, %{{.*}} : (tensor<f32>, tensor<f32>, tensor<i1>)
func.func @large(%scale: tensor<f32>, %loss: tensor<f32>, %a: tensor<4096x2048xbf16>, %b: tensor<4096x2048xf32>)
    -> (tensor<2048x4096xf32>, tensor<i1>, tensor<i32>, tensor<f32>) {
  %w = mpc.cast %a : (tensor<4096x2048xbf16>) -> tensor<4096x2048xf32>
  %g = mpc.sum_n %w, %b : tensor<4096x2048xf32>
  %r = mpc.reshape %g {shape = [2048, 4096]} : (tensor<4096x2048xf32>) -> tensor<2048x4096xf32>
  %finite, %bad = mpc.all_finite %scale, %loss, %r
      : (tensor<f32>, tensor<f32>, tensor<2048x4096xf32>) -> (tensor<i1>, tensor<i32>)
  %norm = mpc.global_norm %g : (tensor<4096x2048xf32>) -> tensor<f32>
  return %r, %finite, %bad, %norm : tensor<2048x4096xf32>, tensor<i1>, tensor<i32>, tensor<f32>
}

// Left in the grouped pass, in the old order: what a combination gives (a bias gradient), and what is too small to pay
// for one.
// CHECK-LABEL: func @grouped
// CHECK-SAME: (%[[SCALE:.*]]: tensor<f32>, %[[LOSS:.*]]: tensor<f32>, %[[DY:.*]]: tensor<512x64xf32>,
// CHECK-NOT: mpc.check_finite
// CHECK-NOT: mpc.sum_of_squares
// CHECK: mpc.all_finite %[[SCALE]], %[[LOSS]], %[[BIAS:.*]], %[[W:.*]], %[[G:.*]] : (tensor<f32>, tensor<f32>, tensor<64xf32>, tensor<16x64xf32>, tensor<32x32xf32>)
// CHECK-NEXT: mpc.global_norm %[[BIAS]], %[[W]], %[[G]] : (tensor<64xf32>, tensor<16x64xf32>, tensor<32x32xf32>) -> tensor<f32>
func.func @grouped(%scale: tensor<f32>, %loss: tensor<f32>, %dy: tensor<512x64xf32>, %x: tensor<512x16xf32>, %a: tensor<32x32xf32>)
    -> (tensor<i1>, tensor<i32>, tensor<f32>, tensor<64xf32>, tensor<16x64xf32>, tensor<32x32xf32>) {
  %bias = mpc.reduce_sum %dy {axes = [0]} : (tensor<512x64xf32>) -> tensor<64xf32>
  %w = mpc.matmul %x, %dy {transpose_a = true} : (tensor<512x16xf32>, tensor<512x64xf32>) -> tensor<16x64xf32>
  %g = mpc.sum_n %a, %a : tensor<32x32xf32>
  %finite, %bad = mpc.all_finite %scale, %loss, %bias, %w, %g
      : (tensor<f32>, tensor<f32>, tensor<64xf32>, tensor<16x64xf32>, tensor<32x32xf32>) -> (tensor<i1>, tensor<i32>)
  %norm = mpc.global_norm %bias, %w, %g : (tensor<64xf32>, tensor<16x64xf32>, tensor<32x32xf32>) -> tensor<f32>
  return %finite, %bad, %norm, %bias, %w, %g
      : tensor<i1>, tensor<i32>, tensor<f32>, tensor<64xf32>, tensor<16x64xf32>, tensor<32x32xf32>
}

// A flag that stands for a norm is no part of the check: it stays, though its scale is another one.
// CHECK-LABEL: func @checked_norm
// CHECK: %[[OK:.*]] = mpc.check_finite %{{.*}}, %{{.*}} : (tensor<f64>, tensor<f32>) -> tensor<i1>
// CHECK-NEXT: mpc.all_finite %{{.*}}, %{{.*}}, %{{.*}}, %[[OK]] : (tensor<f32>, tensor<f32>, tensor<64xf32>, tensor<i1>)
func.func @checked_norm(%scale: tensor<f32>, %one: tensor<f32>, %loss: tensor<f32>, %g: tensor<64xf32>)
    -> (tensor<i1>, tensor<i32>) {
  %norm = mpc.global_norm %g : (tensor<64xf32>) -> tensor<f64>
  %ok = mpc.check_finite %norm, %one : (tensor<f64>, tensor<f32>) -> tensor<i1>
  %finite, %bad = mpc.all_finite %scale, %loss, %g, %ok
      : (tensor<f32>, tensor<f32>, tensor<64xf32>, tensor<i1>) -> (tensor<i1>, tensor<i32>)
  return %finite, %bad : tensor<i1>, tensor<i32>
}
