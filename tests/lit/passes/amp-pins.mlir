// RUN: mpc-opt %s --mpc-amp="level=O2" --verify-diagnostics | FileCheck %s
// RUN: mpc-opt %s --mpc-amp="level=O2" 2>/dev/null > %t.once && mpc-opt %t.once --mpc-amp="level=O2" | diff %t.once -

#network = #mpc.scope<"net", network>
#manual = #mpc.scope<"net/conv1", network, pin = f16>
#wide = #mpc.scope<"net/head", network, pin = f32>
#narrow_loss = #mpc.scope<"net/loss", network, pin = f16>

// AMP-31: conv1.ToFloat(f16), the user's cast to f32, relu: relu stays f32 until the next Allow operation.
// CHECK-LABEL: func @manual
// CHECK: %[[C:.*]] = mpc.conv2d {{.*}}, to_float "f16", user>{{.*}} -> tensor<1x2x4x4xf16>
// CHECK: %[[U:.*]] = mpc.cast %[[C]] {user = true} as <f32, user_cast, user>{{.*}} : (tensor<1x2x4x4xf16>) -> tensor<1x2x4x4xf32>
// CHECK: %[[R:.*]] = mpc.relu %[[U]] as <f32, user_cast, user>{{.*}} : tensor<1x2x4x4xf32>
// CHECK: %[[S:.*]] = mpc.add %[[R]], %[[R]] as <f32, user_cast, user>{{.*}} : tensor<1x2x4x4xf32>
// CHECK: %[[L:.*]] = mpc.cast %[[S]] : (tensor<1x2x4x4xf32>) -> tensor<1x2x4x4xf16>
// CHECK: mpc.conv2d %[[L]], {{.*}}, level "O2">{{.*}} -> tensor<1x2x4x4xf16>
func.func @manual(%x: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> {
  %c = mpc.conv2d %x, %w in #manual
      : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  %u = mpc.cast %c {user = true} in #network : tensor<1x2x4x4xf32>
  %r = mpc.relu %u in #network : tensor<1x2x4x4xf32>
  %s = mpc.add %r, %r in #network : tensor<1x2x4x4xf32>
  %d = mpc.conv2d %s, %w in #network
      : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %d : tensor<1x2x4x4xf32>
}

// ToFloat beats the level: one remark a Cell path.
// CHECK-LABEL: func @head
// CHECK: mpc.matmul {{.*}}, to_float "f32", user>{{.*}} -> tensor<2x4xf32>
// CHECK: mpc.relu {{.*}}, to_float "f32", user>{{.*}} : tensor<2x4xf32>
func.func @head(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  // expected-remark @below {{'net/head': ToFloat(f32) beats level O2 (f16)}}
  %h = mpc.matmul %x, %w in #wide : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %r = mpc.relu %h in #wide : tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}

// AMP-33: floating labels stay f32 on their whole way; a loss ignores a low pin.
// CHECK-LABEL: func @labels
// CHECK: %[[S:.*]] = mpc.mul_scalar {{.*}}, label>{{.*}} : tensor<2x4xf32>
// CHECK: mpc.softmax_cross_entropy %{{.*}}, %[[S]] {{.*}}, loss>{{.*}} : (tensor<2x4xf32>, tensor<2x4xf32>)
func.func @labels(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>, %labels: tensor<2x4xf32>) -> tensor<f32> {
  %h = mpc.matmul %x, %w in #network : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %smooth = mpc.mul_scalar %labels {value = 0.9} in #network : tensor<2x4xf32>
  // expected-remark @below {{'net/loss': ToFloat(f16) is ignored: a loss is f32 at every level}}
  %loss, %lse = mpc.softmax_cross_entropy %h, %smooth in #narrow_loss
      : (tensor<2x4xf32>, tensor<2x4xf32>) -> (tensor<f32>, tensor<2xf32>)
  return %loss : tensor<f32>
}

// AMP-32: a loss written by hand inside the network is f32 back to the last matrix work.
// CHECK-LABEL: func @hand_written
// CHECK: mpc.matmul {{.*}}, level "O2">{{.*}} -> tensor<2x4xf16>
// CHECK: mpc.mul {{.*}}, differentiated_value>{{.*}} : tensor<2x4xf32>
// CHECK: mpc.reduce_mean {{.*}}, differentiated_value>{{.*}} -> tensor<f32>
// CHECK-NOT: mpc.cast
// CHECK: return
func.func @hand_written(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<f32> {
  %h = mpc.matmul %x, %w in #network : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %s = mpc.mul %h, %h in #network : tensor<2x4xf32>
  %m = mpc.reduce_mean %s {axes = []} in #network : (tensor<2x4xf32>) -> tensor<f32>
  return %m : tensor<f32>
}

func.func @step(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> (tensor<f32>, tensor<4x4xf32>) {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dw = mpc.value_and_grad @hand_written(%x, %w) seed(%one) {wrt = array<i64: 1>}
      : (tensor<2x4xf32>, tensor<4x4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4x4xf32>)
  return %loss, %dw : tensor<f32>, tensor<4x4xf32>
}

// AMP-34: a constant that low cannot hold.
// CHECK-LABEL: func @mask
func.func @mask(%x: tensor<2x4xf32>) -> tensor<2x4xf32> {
  %c = mpc.constant {value = dense<-1.0e9> : tensor<2x4xf32>} : () -> tensor<2x4xf32>
  // expected-remark @below {{'net': constant -1e+09 becomes zero or infinite in 'f16'}}
  %y = mpc.add %x, %c in #network : tensor<2x4xf32>
  return %y : tensor<2x4xf32>
}

// A loss obeys ToFloat(f32), which asks for what it is anyway. A kept norm that nothing reads stays f32.
// CHECK-LABEL: func @wide_loss
// CHECK: mpc.batch_norm_train {{.*}}, norm_kept_f32>{{.*}} -> (tensor<2x4xf32>, {{.*}})
// CHECK: mpc.mse {{.*}}, to_float "f32", user>{{.*}} -> tensor<f32>
func.func @wide_loss(%x: tensor<2x4xf32>, %s: tensor<4xf32>) -> tensor<f32> {
  %y, %m, %v, %i = mpc.batch_norm_train %x, %s, %s in #network
      : (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  %loss = mpc.mse %x, %x in #wide : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<f32>
  return %loss : tensor<f32>
}
