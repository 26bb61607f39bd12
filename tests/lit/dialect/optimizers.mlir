// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s

// AdamW, Lamb, and the shadows that every optimizer may write.

// CHECK-LABEL: func @adamw(
// CHECK: mpc.adamw %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {loss_scale = 1.280000e+02, weight_decay = 1.250000e-01} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>, tensor<i32>){{$}}
func.func @adamw(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf16>, %4: tensor<f32>, %5: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %r0, %r1, %r2 = mpc.adamw %0, %1, %2, %3, %4, %5 {loss_scale = 1.280000e+02, weight_decay = 1.250000e-01}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %r0, %r1, %r2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func @lamb(
// CHECK: mpc.lamb %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {beta1 = 8.000000e-01} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>, tensor<i1>){{$}}
func.func @lamb(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>, %4: tensor<f32>, %5: tensor<i32>, %6: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %r0, %r1, %r2 = mpc.lamb %0, %1, %2, %3, %4, %5, %6 {beta1 = 8.000000e-01}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %r0, %r1, %r2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func @sgd_shadow(
// CHECK: mpc.sgd %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {shadow = f16} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>, tensor<i32>){{$}}
func.func @sgd_shadow(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf16>, %3: tensor<f32>, %4: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>) {
  %r0, %r1, %r2 = mpc.sgd %0, %1, %2, %3, %4 {shadow = f16}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
  return %r0, %r1, %r2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf16>
}

// CHECK-LABEL: func @momentum_shadow(
// CHECK: mpc.momentum %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {shadow = bf16} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>)
func.func @momentum_shadow(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<f32>, %4: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>) {
  %r0, %r1, %r2 = mpc.momentum %0, %1, %2, %3, %4 {shadow = bf16}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>)
  return %r0, %r1, %r2 : tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>
}

// CHECK-LABEL: func @adam_shadow(
// CHECK: mpc.adam %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {shadow = f16} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
func.func @adam_shadow(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>, %4: tensor<f32>, %5: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>) {
  %r0, %r1, %r2, %r3 = mpc.adam %0, %1, %2, %3, %4, %5 {shadow = f16}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
  return %r0, %r1, %r2, %r3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>
}

// CHECK-LABEL: func @adam_weight_decay_shadow(
// CHECK: mpc.adam_weight_decay %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {shadow = f16} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
func.func @adam_weight_decay_shadow(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>, %4: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>) {
  %r0, %r1, %r2, %r3 = mpc.adam_weight_decay %0, %1, %2, %3, %4 {shadow = f16}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
  return %r0, %r1, %r2, %r3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>
}

// CHECK-LABEL: func @adamw_shadow(
// CHECK: mpc.adamw %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {shadow = bf16} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>)
func.func @adamw_shadow(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>, %4: tensor<f32>, %5: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>) {
  %r0, %r1, %r2, %r3 = mpc.adamw %0, %1, %2, %3, %4, %5 {shadow = bf16}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>)
  return %r0, %r1, %r2, %r3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>
}

// CHECK-LABEL: func @lamb_shadow(
// CHECK: mpc.lamb %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {shadow = f16} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
func.func @lamb_shadow(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>, %4: tensor<f32>, %5: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>) {
  %r0, %r1, %r2, %r3 = mpc.lamb %0, %1, %2, %3, %4, %5 {shadow = f16}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
  return %r0, %r1, %r2, %r3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf16>
}

// What unscale and clip_by_norm would do in front of the update; the scalars follow those of the rule.

// CHECK-LABEL: func @unscaled(
// CHECK: mpc.momentum %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {unscale = true} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>, tensor<f32>){{$}}
func.func @unscaled(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf16>, %3: tensor<f32>, %scale: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r0, %r1 = mpc.momentum %0, %1, %2, %3, %scale {unscale = true}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r0, %r1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func @clipped(
// CHECK: mpc.sgd %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {max_norm = 5.000000e-01} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<i1>){{$}}
func.func @clipped(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<f32>, %4: tensor<i32>, %norm: tensor<f32>, %finite: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r0, %r1 = mpc.sgd %0, %1, %2, %3, %4, %norm, %finite {max_norm = 5.000000e-01}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r0, %r1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func @unscaled_and_clipped(
// CHECK: mpc.adamw %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {max_norm = 1.000000e+00, shadow = bf16, unscale = true}
func.func @unscaled_and_clipped(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xbf16>, %4: tensor<f32>, %5: tensor<i32>, %scale: tensor<f32>, %norm: tensor<f32>, %finite: tensor<i1>) -> tensor<4xbf16> {
  %r0, %r1, %r2, %r3 = mpc.adamw %0, %1, %2, %3, %4, %5, %scale, %norm, %finite {max_norm = 1.000000e+00, shadow = bf16, unscale = true}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>, tensor<f32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>)
  return %r3 : tensor<4xbf16>
}

// CHECK-LABEL: func @norm_of_scaled_gradients(
// CHECK: mpc.global_norm %{{.*}}, %{{.*}}, %{{.*}} {unscale = true} : (tensor<f32>, tensor<4xf16>, tensor<2xf32>) -> tensor<f32>
func.func @norm_of_scaled_gradients(%scale: tensor<f32>, %0: tensor<4xf16>, %1: tensor<2xf32>) -> tensor<f32> {
  %norm = mpc.global_norm %scale, %0, %1 {unscale = true} : (tensor<f32>, tensor<4xf16>, tensor<2xf32>) -> tensor<f32>
  return %norm : tensor<f32>
}
