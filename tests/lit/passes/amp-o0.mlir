// RUN: mpc-opt %s --mpc-amp="level=O0" --verify-diagnostics | FileCheck %s
// RUN: mpc-opt %s --mpc-amp="level=O0" 2>/dev/null > %t.once && mpc-opt %t.once --mpc-amp="level=O0" | diff %t.once -

#network = #mpc.scope<"net", network>
#manual = #mpc.scope<"net/fc", network, pin = bf16>

// ToFloat acts at O0 too; what surrounds it stays f32.
// CHECK-LABEL: func @manual
// CHECK-SAME: %[[X:[a-z0-9]+]]: tensor<2x4xf32>, %[[W:[a-z0-9]+]]: tensor<4x4xf32>
// CHECK: %[[R:.*]] = mpc.relu %[[X]] as <f32, level "O0">{{.*}} : tensor<2x4xf32>
// CHECK-DAG: %[[RL:.*]] = mpc.cast %[[R]] : (tensor<2x4xf32>) -> tensor<2x4xbf16>
// CHECK-DAG: %[[WL:.*]] = mpc.cast %[[W]] : (tensor<4x4xf32>) -> tensor<4x4xbf16>
// CHECK: %[[H:.*]] = mpc.matmul %[[RL]], %[[WL]] as <bf16, to_float "bf16", user>{{.*}} -> tensor<2x4xbf16>
// CHECK: %[[HF:.*]] = mpc.cast %[[H]] : (tensor<2x4xbf16>) -> tensor<2x4xf32>
// CHECK: mpc.relu %[[HF]] as <f32, level "O0">
func.func @manual(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %r = mpc.relu %x in #network : tensor<2x4xf32>
  // expected-remark @below {{'net/fc': ToFloat(bf16) beats level O0 (f32)}}
  %h = mpc.matmul %r, %w in #manual : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %y = mpc.relu %h in #network : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// What the user cast stays low where every operand is low, as tracing says.
// CHECK-LABEL: func @user_low
// CHECK: mpc.cast {{.*}}, user_cast, user>{{.*}} -> tensor<2x4xf16>
// CHECK: mpc.relu {{.*}}, level "O0">{{.*}} : tensor<2x4xf16>
func.func @user_low(%x: tensor<2x4xf32>) -> tensor<2x4xf16> {
  %c = mpc.cast %x {user = true} in #network : (tensor<2x4xf32>) -> tensor<2x4xf16>
  %r = mpc.relu %c in #network : tensor<2x4xf16>
  return %r : tensor<2x4xf16>
}

// Nor does a user's cast to f32 decide what reads it: two types stay as tracing says.
// CHECK-LABEL: func @user_wide
// CHECK: %[[C:.*]] = mpc.cast {{.*}}, user_cast, user>{{.*}} -> tensor<2x4xf32>
// CHECK-NEXT: mpc.add %[[C]], %{{.*}}, level "O0">{{.*}} : (tensor<2x4xf32>, tensor<2x4xf16>) -> tensor<2x4xf32>
func.func @user_wide(%x: tensor<2x4xf16>) -> tensor<2x4xf32> {
  %c = mpc.cast %x {user = true} in #network : (tensor<2x4xf16>) -> tensor<2x4xf32>
  %y = mpc.add %c, %x in #network : (tensor<2x4xf32>, tensor<2x4xf16>) -> tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}
