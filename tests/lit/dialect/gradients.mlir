// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s

// Several losses and scalers, clipping, accumulation, statistics.

// CHECK-LABEL: func @scale_loss(
// CHECK: mpc.scale_loss %{{.*}}, %{{.*}} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
func.func @scale_loss(%0: tensor<4xf32>, %1: tensor<f32>) -> tensor<4xf32> {
  %r0 = mpc.scale_loss %0, %1
      : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %r0 : tensor<4xf32>
}

// CHECK-LABEL: func @merge_checks(
// CHECK: mpc.merge_checks %{{.*}}, %{{.*}} : tensor<i32>
func.func @merge_checks(%0: tensor<i32>, %1: tensor<i32>) -> tensor<i32> {
  %r0 = mpc.merge_checks %0, %1
      : tensor<i32>
  return %r0 : tensor<i32>
}

// CHECK-LABEL: func @all_of(
// CHECK: mpc.all_of %{{.*}}, %{{.*}}, %{{.*}} : tensor<i1>
func.func @all_of(%0: tensor<i1>, %1: tensor<i1>, %2: tensor<i1>) -> tensor<i1> {
  %r0 = mpc.all_of %0, %1, %2
      : tensor<i1>
  return %r0 : tensor<i1>
}

// CHECK-LABEL: func @any_of(
// CHECK: mpc.any_of %{{.*}} : tensor<i1>
func.func @any_of(%0: tensor<i1>) -> tensor<i1> {
  %r0 = mpc.any_of %0
      : tensor<i1>
  return %r0 : tensor<i1>
}

// CHECK-LABEL: func @global_norm(
// CHECK: mpc.global_norm %{{.*}}, %{{.*}} : (tensor<4xf32>, tensor<2x3xf16>) -> tensor<f32>
func.func @global_norm(%0: tensor<4xf32>, %1: tensor<2x3xf16>) -> tensor<f32> {
  %r0 = mpc.global_norm %0, %1
      : (tensor<4xf32>, tensor<2x3xf16>) -> tensor<f32>
  return %r0 : tensor<f32>
}

// Sums of squares stand behind the gradients.
// CHECK-LABEL: func @global_norm_of_sums(
// CHECK: mpc.sum_of_squares %{{.*}}, %{{.*}} : (tensor<2x3xf16>, tensor<f32>) -> tensor<f64>
// CHECK: mpc.sum_of_squares %{{.*}} : (tensor<4xf32>) -> tensor<f64>
// CHECK: mpc.global_norm %{{.*}}, %{{.*}}, %{{.*}} {sums = 2} : (tensor<4xf32>, tensor<f64>, tensor<f64>) -> tensor<f64>
func.func @global_norm_of_sums(%0: tensor<4xf32>, %1: tensor<2x3xf16>, %scale: tensor<f32>) -> tensor<f64> {
  %a = mpc.sum_of_squares %1, %scale : (tensor<2x3xf16>, tensor<f32>) -> tensor<f64>
  %b = mpc.sum_of_squares %0 : (tensor<4xf32>) -> tensor<f64>
  %r0 = mpc.global_norm %0, %a, %b {sums = 2} : (tensor<4xf32>, tensor<f64>, tensor<f64>) -> tensor<f64>
  return %r0 : tensor<f64>
}

// A flag has the place of the gradient that was checked.
// CHECK-LABEL: func @check_finite(
// CHECK: %[[FLAG:.*]] = mpc.check_finite %{{.*}}, %{{.*}} : (tensor<2x3xbf16>, tensor<f32>) -> tensor<i1>
// CHECK: mpc.all_finite %{{.*}}, %{{.*}}, %[[FLAG]], %{{.*}} : (tensor<f32>, tensor<f32>, tensor<i1>, tensor<4xf32>) -> (tensor<i1>, tensor<i32>)
func.func @check_finite(%0: tensor<4xf32>, %1: tensor<2x3xbf16>, %scale: tensor<f32>) -> (tensor<i1>, tensor<i32>) {
  %flag = mpc.check_finite %1, %scale : (tensor<2x3xbf16>, tensor<f32>) -> tensor<i1>
  %finite, %bad = mpc.all_finite %scale, %scale, %flag, %0
      : (tensor<f32>, tensor<f32>, tensor<i1>, tensor<4xf32>) -> (tensor<i1>, tensor<i32>)
  return %finite, %bad : tensor<i1>, tensor<i32>
}

// CHECK-LABEL: func @clip_by_norm(
// CHECK: mpc.clip_by_norm %{{.*}}, %{{.*}} {max_norm = 5.000000e-01} : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
func.func @clip_by_norm(%0: tensor<4xf16>, %1: tensor<f32>) -> tensor<4xf32> {
  %r0 = mpc.clip_by_norm %0, %1 {max_norm = 5.000000e-01}
      : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
  return %r0 : tensor<4xf32>
}

// CHECK-LABEL: func @accumulate_gradient(
// CHECK: mpc.accumulate_gradient %{{.*}}, %{{.*}}, %{{.*}} {count = 4} : (tensor<4xf32>, tensor<4xf16>, tensor<i32>){{$}}
func.func @accumulate_gradient(%0: tensor<4xf32>, %1: tensor<4xf16>, %2: tensor<i32>) -> tensor<4xf32> {
  %r0 = mpc.accumulate_gradient %0, %1, %2 {count = 4}
      : (tensor<4xf32>, tensor<4xf16>, tensor<i32>) -> tensor<4xf32>
  return %r0 : tensor<4xf32>
}

// CHECK-LABEL: func @accumulate_gradient_if(
// CHECK: mpc.accumulate_gradient %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {count = 4} : (tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<i1>){{$}}
func.func @accumulate_gradient_if(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<i32>, %3: tensor<i1>) -> tensor<4xf32> {
  %r0 = mpc.accumulate_gradient %0, %1, %2, %3 {count = 4}
      : (tensor<4xf32>, tensor<4xf32>, tensor<i32>, tensor<i1>) -> tensor<4xf32>
  return %r0 : tensor<4xf32>
}

// CHECK-LABEL: func @next_micro_step(
// CHECK: mpc.next_micro_step %{{.*}} {count = 4} : tensor<i32>
func.func @next_micro_step(%0: tensor<i32>) -> tensor<i32> {
  %r0 = mpc.next_micro_step %0 {count = 4}
      : tensor<i32>
  return %r0 : tensor<i32>
}

// CHECK-LABEL: func @next_micro_step_if(
// CHECK: mpc.next_micro_step %{{.*}}, %{{.*}} {count = 4} : (tensor<i32>, tensor<i1>){{$}}
func.func @next_micro_step_if(%0: tensor<i32>, %1: tensor<i1>) -> tensor<i32> {
  %r0 = mpc.next_micro_step %0, %1 {count = 4}
      : (tensor<i32>, tensor<i1>) -> tensor<i32>
  return %r0 : tensor<i32>
}

// CHECK-LABEL: func @tensor_statistics(
// CHECK: mpc.tensor_statistics %{{.*}} : (tensor<2x3xbf16>) -> (tensor<256xi32>, tensor<i32>, tensor<f32>)
func.func @tensor_statistics(%0: tensor<2x3xbf16>) -> (tensor<256xi32>, tensor<i32>, tensor<f32>) {
  %r0, %r1, %r2 = mpc.tensor_statistics %0
      : (tensor<2x3xbf16>) -> (tensor<256xi32>, tensor<i32>, tensor<f32>)
  return %r0, %r1, %r2 : tensor<256xi32>, tensor<i32>, tensor<f32>
}
