// RUN: mpc-opt %s --mpc-attach-target=name=cuda --mpc-pad-channels | FileCheck %s
// RUN: mpc-opt %s --mpc-attach-target=name=cuda --mpc-pad-channels > %t.once && mpc-opt %t.once --mpc-pad-channels | diff %t.once -
// RUN: mpc-opt %s > %t.before && mpc-opt %s --mpc-pad-channels | diff %t.before -
// RUN: mpc-opt %s --mpc-step-pipeline=device=cuda | FileCheck %s --check-prefix=PIPELINE
// RUN: mpc-opt %s --mpc-step-pipeline | FileCheck %s --check-prefix=CPU

// RUN: mpc-opt %s --mpc-attach-target=name=cuda --mpc-pad-channels=everywhere=true | FileCheck %s --check-prefix=EVERYWHERE

// PIPELINE: mpc.pad
// CPU-NOT: mpc.pad

// The image is padded once for both, and the operations keep their scopes and attributes.
// CHECK-LABEL: func @step(
// CHECK-NEXT: %[[X:.*]] = mpc.pad %arg0 {high = [0, 0, 0, 5], low = [0, 0, 0, 0]} : (tensor<8x64x64x3xf16>) -> tensor<8x64x64x8xf16>
// CHECK-NEXT: %[[W:.*]] = mpc.pad %arg1 {high = [0, 5, 0, 0], low = [0, 0, 0, 0]} : (tensor<64x3x7x7xf16>) -> tensor<64x8x7x7xf16>
// CHECK-NEXT: %[[Y:.*]] = mpc.conv2d %[[X]], %[[W]] {data_format = NHWC, pad_mode = same} in <"net/conv"> : (tensor<8x64x64x8xf16>, tensor<64x8x7x7xf16>) -> tensor<8x64x64x64xf16>
// CHECK-NEXT: %[[D:.*]] = mpc.conv2d_grad_weight %[[X]], %arg2 {data_format = NHWC, pad_mode = same, weight_shape = [64, 8, 7, 7]} backward in <"net/conv"> : (tensor<8x64x64x8xf16>, tensor<8x64x64x64xf16>) -> tensor<64x8x7x7xf16>
// CHECK-NEXT: %[[DW:.*]] = mpc.slice %[[D]] {sizes = [64, 3, 7, 7], starts = [0, 0, 0, 0]} : (tensor<64x8x7x7xf16>) -> tensor<64x3x7x7xf16>
// CHECK-NEXT: return %[[Y]], %[[DW]]
func.func @step(%x: tensor<8x64x64x3xf16>, %w: tensor<64x3x7x7xf16>, %dy: tensor<8x64x64x64xf16>)
    -> (tensor<8x64x64x64xf16>, tensor<64x3x7x7xf16>) {
  %y = mpc.conv2d %x, %w {data_format = NHWC, pad_mode = same} in <"net/conv"> : (tensor<8x64x64x3xf16>, tensor<64x3x7x7xf16>) -> tensor<8x64x64x64xf16>
  %dw = mpc.conv2d_grad_weight %x, %dy {data_format = NHWC, pad_mode = same, weight_shape = [64, 3, 7, 7]} backward in <"net/conv"> : (tensor<8x64x64x3xf16>, tensor<8x64x64x64xf16>) -> tensor<64x3x7x7xf16>
  return %y, %dw : tensor<8x64x64x64xf16>, tensor<64x3x7x7xf16>
}

// Not taken: f32, little work, channels enough, results that are no whole groups, groups, channels first.
// CHECK-LABEL: func @others(
// CHECK-NOT: mpc.pad
// EVERYWHERE-LABEL: func @others(
// EVERYWHERE: mpc.conv2d %arg0, %arg1
// EVERYWHERE: mpc.conv2d {{.*}} : (tensor<1x16x16x8xf16>, tensor<64x8x7x7xf16>)
// EVERYWHERE: mpc.conv2d {{.*}} : (tensor<8x64x64x16xf16>, tensor<64x16x7x7xf16>)
// EVERYWHERE: mpc.conv2d {{.*}} : (tensor<8x64x64x8xf16>, tensor<65x8x7x7xf16>)
// EVERYWHERE: mpc.conv2d {{.*}} groups = 4
// EVERYWHERE: mpc.conv2d {{.*}} : (tensor<8x8x64x64xf16>, tensor<64x8x7x7xf16>)
func.func @others(%x: tensor<8x64x64x3xf32>, %w: tensor<64x3x7x7xf32>, %s: tensor<1x16x16x3xf16>, %v: tensor<64x3x7x7xf16>,
                  %m: tensor<8x64x64x12xf16>, %u: tensor<64x12x7x7xf16>, %l: tensor<8x64x64x3xf16>, %o: tensor<65x3x7x7xf16>,
                  %k: tensor<64x1x7x7xf16>, %g: tensor<8x64x64x4xf16>, %f: tensor<8x3x64x64xf16>)
    -> (tensor<8x64x64x64xf32>, tensor<1x16x16x64xf16>, tensor<8x64x64x64xf16>, tensor<8x64x64x65xf16>,
        tensor<8x64x64x64xf16>, tensor<8x64x64x64xf16>) {
  %0 = mpc.conv2d %x, %w {data_format = NHWC, pad_mode = same} : (tensor<8x64x64x3xf32>, tensor<64x3x7x7xf32>) -> tensor<8x64x64x64xf32>
  %1 = mpc.conv2d %s, %v {data_format = NHWC, pad_mode = same} : (tensor<1x16x16x3xf16>, tensor<64x3x7x7xf16>) -> tensor<1x16x16x64xf16>
  %2 = mpc.conv2d %m, %u {data_format = NHWC, pad_mode = same} : (tensor<8x64x64x12xf16>, tensor<64x12x7x7xf16>) -> tensor<8x64x64x64xf16>
  %3 = mpc.conv2d %l, %o {data_format = NHWC, pad_mode = same} : (tensor<8x64x64x3xf16>, tensor<65x3x7x7xf16>) -> tensor<8x64x64x65xf16>
  %4 = mpc.conv2d %g, %k {data_format = NHWC, pad_mode = same, groups = 4} : (tensor<8x64x64x4xf16>, tensor<64x1x7x7xf16>) -> tensor<8x64x64x64xf16>
  %5 = mpc.conv2d %f, %v {pad_mode = same} : (tensor<8x3x64x64xf16>, tensor<64x3x7x7xf16>) -> tensor<8x64x64x64xf16>
  return %0, %1, %2, %3, %4, %5 : tensor<8x64x64x64xf32>, tensor<1x16x16x64xf16>, tensor<8x64x64x64xf16>, tensor<8x64x64x65xf16>, tensor<8x64x64x64xf16>, tensor<8x64x64x64xf16>
}
