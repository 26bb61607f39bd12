// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mpc-amp --mpc-cast-cleanup --mpc-layout | FileCheck %s --check-prefix=PASSES

// Types of one byte go through casts alone. Passes neither move casts of them nor fold their constants.
// CHECK-LABEL: func @stored
// CHECK: mpc.cast %{{.*}} {user = true} : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
// CHECK: mpc.cast %{{.*}} : (tensor<4xf8E4M3FN>) -> tensor<4xf8E5M2>
// CHECK: mpc.cast %{{.*}} : (tensor<4xf8E5M2>) -> tensor<4xf32>
// PASSES-LABEL: func @stored
// PASSES: mpc.cast %{{.*}} {{.*}} : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
// PASSES: mpc.cast %{{.*}} : (tensor<4xf8E4M3FN>) -> tensor<4xf8E5M2>
// PASSES: %[[WIDE:.*]] = mpc.cast %{{.*}} : (tensor<4xf8E5M2>) -> tensor<4xf32>
// PASSES: mpc.relu %[[WIDE]]
func.func @stored(%x: tensor<4xf32>) -> tensor<4xf32> {
  %a = mpc.cast %x {user = true} : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
  %b = mpc.cast %a : (tensor<4xf8E4M3FN>) -> tensor<4xf8E5M2>
  %c = mpc.cast %b : (tensor<4xf8E5M2>) -> tensor<4xf32>
  %y = mpc.relu %c : tensor<4xf32>
  return %y : tensor<4xf32>
}

// PASSES-LABEL: func @constant
// PASSES: mpc.constant {value = dense<3.000000e+00> : tensor<4xf32>}
// PASSES: mpc.cast %{{.*}} -> tensor<4xf8E5M2>
func.func @constant() -> tensor<4xf8E5M2> {
  %k = mpc.constant {value = dense<3.0> : tensor<4xf32>} : () -> tensor<4xf32>
  %y = mpc.cast %k : (tensor<4xf32>) -> tensor<4xf8E5M2>
  return %y : tensor<4xf8E5M2>
}

// A value that is widened and narrowed again is the value: f32 holds every f8.
// PASSES-LABEL: func @round_trip
// PASSES-SAME: %[[X:[a-z0-9]+]]: tensor<4xf8E4M3FN>
// PASSES: return %[[X]]
func.func @round_trip(%x: tensor<4xf8E4M3FN>) -> tensor<4xf8E4M3FN> {
  %wide = mpc.cast %x : (tensor<4xf8E4M3FN>) -> tensor<4xf16>
  %y = mpc.cast %wide : (tensor<4xf16>) -> tensor<4xf8E4M3FN>
  return %y : tensor<4xf8E4M3FN>
}

// No transpose moves f8: it stays in front of the cast.
// PASSES-LABEL: func @image
// PASSES: mpc.conv2d %{{.*}} {data_format = NHWC
// PASSES: %[[T:.*]] = mpc.transpose
// PASSES: mpc.cast %[[T]] {{.*}} -> tensor<2x3x6x6xf8E5M2>
func.func @image(%x: tensor<2x2x8x8xf16>, %w: tensor<3x2x3x3xf16>) -> tensor<2x3x6x6xf8E5M2> {
  %c = mpc.conv2d %x, %w : (tensor<2x2x8x8xf16>, tensor<3x2x3x3xf16>) -> tensor<2x3x6x6xf16>
  %y = mpc.cast %c : (tensor<2x3x6x6xf16>) -> tensor<2x3x6x6xf8E5M2>
  return %y : tensor<2x3x6x6xf8E5M2>
}
