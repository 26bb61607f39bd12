// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s

// Parts of tensors, look-ups, and the maximum over axes.

// CHECK-LABEL: func @concat(
// CHECK: mpc.concat %{{.*}}, %{{.*}} : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
func.func @concat(%0: tensor<2x3xf32>, %1: tensor<4x3xf32>) -> tensor<6x3xf32> {
  %r0 = mpc.concat %0, %1 : (tensor<2x3xf32>, tensor<4x3xf32>) -> tensor<6x3xf32>
  return %r0 : tensor<6x3xf32>
}

// CHECK-LABEL: func @concat_last(
// CHECK: mpc.concat %{{.*}}, %{{.*}}, %{{.*}} {axis = -1} : (tensor<2x3xf16>, tensor<2x1xf16>, tensor<2x3xf16>) -> tensor<2x7xf16>
func.func @concat_last(%0: tensor<2x3xf16>, %1: tensor<2x1xf16>, %2: tensor<2x3xf16>) -> tensor<2x7xf16> {
  %r0 = mpc.concat %0, %1, %2 {axis = -1}
      : (tensor<2x3xf16>, tensor<2x1xf16>, tensor<2x3xf16>) -> tensor<2x7xf16>
  return %r0 : tensor<2x7xf16>
}

// CHECK-LABEL: func @slice(
// CHECK: mpc.slice %{{.*}} {sizes = [2, 3], starts = [1, 3]} : (tensor<4x6xf32>) -> tensor<2x3xf32>
func.func @slice(%0: tensor<4x6xf32>) -> tensor<2x3xf32> {
  %r0 = mpc.slice %0 {sizes = [2, 3], starts = [1, 3]} : (tensor<4x6xf32>) -> tensor<2x3xf32>
  return %r0 : tensor<2x3xf32>
}

// CHECK-LABEL: func @slice_labels(
// CHECK: mpc.slice %{{.*}} {sizes = [3], starts = [2]} : (tensor<5xi32>) -> tensor<3xi32>
func.func @slice_labels(%0: tensor<5xi32>) -> tensor<3xi32> {
  %r0 = mpc.slice %0 {sizes = [3], starts = [2]} : (tensor<5xi32>) -> tensor<3xi32>
  return %r0 : tensor<3xi32>
}

// CHECK-LABEL: func @slice_scalar(
// CHECK: mpc.slice %{{.*}} {sizes = [], starts = []} : tensor<f32>
func.func @slice_scalar(%0: tensor<f32>) -> tensor<f32> {
  %r0 = mpc.slice %0 {sizes = [], starts = []} : tensor<f32>
  return %r0 : tensor<f32>
}

// CHECK-LABEL: func @split(
// CHECK: mpc.split %{{.*}} {sizes = [2, 4]} : (tensor<6x3xf32>) -> (tensor<2x3xf32>, tensor<4x3xf32>)
func.func @split(%0: tensor<6x3xf32>) -> (tensor<2x3xf32>, tensor<4x3xf32>) {
  %r0, %r1 = mpc.split %0 {sizes = [2, 4]} : (tensor<6x3xf32>) -> (tensor<2x3xf32>, tensor<4x3xf32>)
  return %r0, %r1 : tensor<2x3xf32>, tensor<4x3xf32>
}

// CHECK-LABEL: func @split_last(
// CHECK: mpc.split %{{.*}} {axis = 1, sizes = [1, 2]} : (tensor<2x3xf16>) -> (tensor<2x1xf16>, tensor<2x2xf16>)
func.func @split_last(%0: tensor<2x3xf16>) -> (tensor<2x1xf16>, tensor<2x2xf16>) {
  %r0, %r1 = mpc.split %0 {axis = 1, sizes = [1, 2]}
      : (tensor<2x3xf16>) -> (tensor<2x1xf16>, tensor<2x2xf16>)
  return %r0, %r1 : tensor<2x1xf16>, tensor<2x2xf16>
}

// CHECK-LABEL: func @pad(
// CHECK: mpc.pad %{{.*}} {high = [1, 0], low = [0, 2]} : (tensor<2x3xf32>) -> tensor<3x5xf32>
func.func @pad(%0: tensor<2x3xf32>) -> tensor<3x5xf32> {
  %r0 = mpc.pad %0 {high = [1, 0], low = [0, 2]} : (tensor<2x3xf32>) -> tensor<3x5xf32>
  return %r0 : tensor<3x5xf32>
}

// CHECK-LABEL: func @pad_value(
// CHECK: mpc.pad %{{.*}} {high = [0, 0], low = [0, 0], value = -1.000000e+00} : tensor<2x3xf16>
func.func @pad_value(%0: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %r0 = mpc.pad %0 {high = [0, 0], low = [0, 0], value = -1.000000e+00}
      : tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @gather(
// CHECK: mpc.gather %{{.*}}, %{{.*}} : (tensor<10x4xf16>, tensor<2x3xi32>) -> tensor<2x3x4xf16>
func.func @gather(%0: tensor<10x4xf16>, %1: tensor<2x3xi32>) -> tensor<2x3x4xf16> {
  %r0 = mpc.gather %0, %1 : (tensor<10x4xf16>, tensor<2x3xi32>) -> tensor<2x3x4xf16>
  return %r0 : tensor<2x3x4xf16>
}

// CHECK-LABEL: func @gather_scalar_index(
// CHECK: mpc.gather %{{.*}}, %{{.*}} : (tensor<10x4xf32>, tensor<i64>) -> tensor<4xf32>
func.func @gather_scalar_index(%0: tensor<10x4xf32>, %1: tensor<i64>) -> tensor<4xf32> {
  %r0 = mpc.gather %0, %1 : (tensor<10x4xf32>, tensor<i64>) -> tensor<4xf32>
  return %r0 : tensor<4xf32>
}

// CHECK-LABEL: func @gather_grad(
// CHECK: mpc.gather_grad %{{.*}}, %{{.*}} {rows = 10} : (tensor<2x3x4xf16>, tensor<2x3xi32>) -> tensor<10x4xf32>
func.func @gather_grad(%0: tensor<2x3x4xf16>, %1: tensor<2x3xi32>) -> tensor<10x4xf32> {
  %r0 = mpc.gather_grad %0, %1 {rows = 10} : (tensor<2x3x4xf16>, tensor<2x3xi32>) -> tensor<10x4xf32>
  return %r0 : tensor<10x4xf32>
}

// CHECK-LABEL: func @one_hot(
// CHECK: mpc.one_hot %{{.*}} {depth = 10} : (tensor<2x3xi32>) -> tensor<2x3x10xf32>
func.func @one_hot(%0: tensor<2x3xi32>) -> tensor<2x3x10xf32> {
  %r0 = mpc.one_hot %0 {depth = 10} : (tensor<2x3xi32>) -> tensor<2x3x10xf32>
  return %r0 : tensor<2x3x10xf32>
}

// CHECK-LABEL: func @one_hot_smoothed(
// CHECK: mpc.one_hot %{{.*}} {depth = 10, off = 1.250000e-01, on = 8.750000e-01} : (tensor<i64>) -> tensor<10xf32>
func.func @one_hot_smoothed(%0: tensor<i64>) -> tensor<10xf32> {
  %r0 = mpc.one_hot %0 {depth = 10, off = 1.250000e-01, on = 8.750000e-01}
      : (tensor<i64>) -> tensor<10xf32>
  return %r0 : tensor<10xf32>
}

// CHECK-LABEL: func @reduce_max(
// CHECK: mpc.reduce_max %{{.*}} {axes = [1]} : (tensor<2x3x4xf16>) -> tensor<2x4xf16>
func.func @reduce_max(%0: tensor<2x3x4xf16>) -> tensor<2x4xf16> {
  %r0 = mpc.reduce_max %0 {axes = [1]} : (tensor<2x3x4xf16>) -> tensor<2x4xf16>
  return %r0 : tensor<2x4xf16>
}

// CHECK-LABEL: func @reduce_max_kept(
// CHECK: mpc.reduce_max %{{.*}} {axes = [], keep_dims = true} : (tensor<2x3xf32>) -> tensor<1x1xf32>
func.func @reduce_max_kept(%0: tensor<2x3xf32>) -> tensor<1x1xf32> {
  %r0 = mpc.reduce_max %0 {axes = [], keep_dims = true} : (tensor<2x3xf32>) -> tensor<1x1xf32>
  return %r0 : tensor<1x1xf32>
}

// CHECK-LABEL: func @reduce_max_grad(
// CHECK: mpc.reduce_max_grad %{{.*}}, %{{.*}}, %{{.*}} {axes = [1]} : (tensor<2x4xf16>, tensor<2x3x4xf16>, tensor<2x4xf16>) -> tensor<2x3x4xf16>
func.func @reduce_max_grad(%0: tensor<2x4xf16>, %1: tensor<2x3x4xf16>, %2: tensor<2x4xf16>) -> tensor<2x3x4xf16> {
  %r0 = mpc.reduce_max_grad %0, %1, %2 {axes = [1]}
      : (tensor<2x4xf16>, tensor<2x3x4xf16>, tensor<2x4xf16>) -> tensor<2x3x4xf16>
  return %r0 : tensor<2x3x4xf16>
}

// CHECK-LABEL: func @reduce_min(
// CHECK: mpc.reduce_min %{{.*}} {axes = [1]} : (tensor<2x3x4xf16>) -> tensor<2x4xf16>
func.func @reduce_min(%0: tensor<2x3x4xf16>) -> tensor<2x4xf16> {
  %r0 = mpc.reduce_min %0 {axes = [1]} : (tensor<2x3x4xf16>) -> tensor<2x4xf16>
  return %r0 : tensor<2x4xf16>
}

// CHECK-LABEL: func @reduce_prod(
// CHECK: mpc.reduce_prod %{{.*}} {axes = [], keep_dims = true} : (tensor<2x3xf32>) -> tensor<1x1xf32>
func.func @reduce_prod(%0: tensor<2x3xf32>) -> tensor<1x1xf32> {
  %r0 = mpc.reduce_prod %0 {axes = [], keep_dims = true} : (tensor<2x3xf32>) -> tensor<1x1xf32>
  return %r0 : tensor<1x1xf32>
}

// CHECK-LABEL: func @reduce_prod_grad(
// CHECK: mpc.reduce_prod_grad %{{.*}}, %{{.*}} {axes = [1]} : (tensor<2x4xf16>, tensor<2x3x4xf16>) -> tensor<2x3x4xf16>
func.func @reduce_prod_grad(%0: tensor<2x4xf16>, %1: tensor<2x3x4xf16>) -> tensor<2x3x4xf16> {
  %r0 = mpc.reduce_prod_grad %0, %1 {axes = [1]} : (tensor<2x4xf16>, tensor<2x3x4xf16>) -> tensor<2x3x4xf16>
  return %r0 : tensor<2x3x4xf16>
}

// CHECK-LABEL: func @cumsum(
// CHECK: mpc.cumsum %{{.*}} {axis = 0, exclusive = true, reverse = true} : tensor<2x3xf16>
func.func @cumsum(%0: tensor<2x3xf16>) -> tensor<2x3xf16> {
  %r0 = mpc.cumsum %0 {axis = 0, exclusive = true, reverse = true} : tensor<2x3xf16>
  return %r0 : tensor<2x3xf16>
}

// CHECK-LABEL: func @sort(
// CHECK: mpc.sort %{{.*}} {descending = true} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
func.func @sort(%0: tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>) {
  %r0, %r1 = mpc.sort %0 {descending = true} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xi32>)
  return %r0, %r1 : tensor<2x3xf32>, tensor<2x3xi32>
}

// CHECK-LABEL: func @top_k(
// CHECK: mpc.top_k %{{.*}} {axis = 0, k = 1, smallest = true} : (tensor<2x3xf16>) -> (tensor<1x3xf16>, tensor<1x3xi32>)
func.func @top_k(%0: tensor<2x3xf16>) -> (tensor<1x3xf16>, tensor<1x3xi32>) {
  %r0, %r1 = mpc.top_k %0 {axis = 0, k = 1, smallest = true} : (tensor<2x3xf16>) -> (tensor<1x3xf16>, tensor<1x3xi32>)
  return %r0, %r1 : tensor<1x3xf16>, tensor<1x3xi32>
}

// CHECK-LABEL: func @top_k_grad(
// CHECK: mpc.top_k_grad %{{.*}}, %{{.*}} {extent = 5} : (tensor<2x3xf32>, tensor<2x3xi32>) -> tensor<2x5xf32>
func.func @top_k_grad(%0: tensor<2x3xf32>, %1: tensor<2x3xi32>) -> tensor<2x5xf32> {
  %r0 = mpc.top_k_grad %0, %1 {extent = 5} : (tensor<2x3xf32>, tensor<2x3xi32>) -> tensor<2x5xf32>
  return %r0 : tensor<2x5xf32>
}

// CHECK-LABEL: func @scatter_add(
// CHECK: mpc.scatter_add %{{.*}}, %{{.*}}, %{{.*}} : (tensor<5x3xf32>, tensor<2x4xi64>, tensor<2x4x3xf16>) -> tensor<5x3xf32>
func.func @scatter_add(%0: tensor<5x3xf32>, %1: tensor<2x4xi64>, %2: tensor<2x4x3xf16>) -> tensor<5x3xf32> {
  %r0 = mpc.scatter_add %0, %1, %2 : (tensor<5x3xf32>, tensor<2x4xi64>, tensor<2x4x3xf16>) -> tensor<5x3xf32>
  return %r0 : tensor<5x3xf32>
}

// CHECK-LABEL: func @concat_labels(
// CHECK: mpc.concat %{{.*}}, %{{.*}} : (tensor<2xi32>, tensor<3xi32>) -> tensor<5xi32>
func.func @concat_labels(%0: tensor<2xi32>, %1: tensor<3xi32>) -> tensor<5xi32> {
  %r0 = mpc.concat %0, %1 : (tensor<2xi32>, tensor<3xi32>) -> tensor<5xi32>
  return %r0 : tensor<5xi32>
}

// CHECK-LABEL: func @split_flags(
// CHECK: mpc.split %{{.*}} {sizes = [1, 3]} : (tensor<4xi1>) -> (tensor<1xi1>, tensor<3xi1>)
func.func @split_flags(%0: tensor<4xi1>) -> (tensor<1xi1>, tensor<3xi1>) {
  %r0, %r1 = mpc.split %0 {sizes = [1, 3]} : (tensor<4xi1>) -> (tensor<1xi1>, tensor<3xi1>)
  return %r0, %r1 : tensor<1xi1>, tensor<3xi1>
}

// CHECK-LABEL: func @pad_labels(
// CHECK: mpc.pad %{{.*}} {high = [2], low = [0], value = -1.000000e+02} : (tensor<3xi64>) -> tensor<5xi64>
func.func @pad_labels(%0: tensor<3xi64>) -> tensor<5xi64> {
  %r0 = mpc.pad %0 {high = [2], low = [0], value = -100.0} : (tensor<3xi64>) -> tensor<5xi64>
  return %r0 : tensor<5xi64>
}

// CHECK-LABEL: func @gather_flags(
// CHECK: mpc.gather %{{.*}}, %{{.*}} : (tensor<4x3xi1>, tensor<2xi64>) -> tensor<2x3xi1>
func.func @gather_flags(%0: tensor<4x3xi1>, %1: tensor<2xi64>) -> tensor<2x3xi1> {
  %r0 = mpc.gather %0, %1 : (tensor<4x3xi1>, tensor<2xi64>) -> tensor<2x3xi1>
  return %r0 : tensor<2x3xi1>
}
