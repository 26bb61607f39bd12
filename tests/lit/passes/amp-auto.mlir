// RUN: mpc-opt %s --mpc-amp="level=auto bytes-per-second=1e12 low-flops=2e14 f32-flops=2e13 seconds-per-operation=2e-6" --mpc-verify-precision="level=auto" 2>&1 | FileCheck %s --check-prefix=FAST
// RUN: mpc-opt %s --mpc-amp="level=auto bytes-per-second=1e10 low-flops=1e11 f32-flops=2e11 seconds-per-operation=1e-6" 2>&1 | FileCheck %s --check-prefix=SLOW
// RUN: mpc-opt %s --mpc-amp="level=auto" 2>/dev/null > %t.once && mpc-opt %t.once --mpc-amp="level=auto" | diff %t.once -

#big = #mpc.scope<"net/big", network>
#small = #mpc.scope<"net/small", network>

// A device with fast low matrix units: the large product pays for its casts, the small one does not.
// FAST: remark: 'net/small': matmul stays f32: f16 would save {{.*}} us, less than its casts cost
// FAST: mpc.assignment = {
// FAST-SAME: "net/big#matmul.0" = "f16"
// FAST-SAME: "net/small#matmul.0" = "f32"
// FAST-LABEL: func @large
// FAST: mpc.matmul {{.*}}, low_pays>{{.*}} : tensor<4096x4096xf16>
// FAST: mpc.relu {{.*}}, cut>{{.*}} : tensor<4096x4096xf16>
// FAST: mpc.matmul {{.*}}, low_pays>{{.*}} : tensor<4096x4096xf16>
// FAST: mpc.softmax {{.*}}, class "deny">{{.*}} : tensor<4096x4096xf32>
// FAST-LABEL: func @tiny
// FAST-NOT: mpc.cast
// FAST: mpc.matmul {{.*}}, low_does_not_pay>{{.*}} -> tensor<2x4xf32>
// FAST-NOT: mpc.cast
// FAST: return

// A device that is slower in low precision.
// SLOW: remark: 'net/big': matmul stays f32: it takes {{.*}} us longer in f16 on this device
// SLOW: func @large
// SLOW-NOT: f16>
// SLOW: func @tiny
func.func @large(%x: tensor<4096x4096xf32>, %w: tensor<4096x4096xf32>, %v: tensor<4096x4096xf32>) -> tensor<4096x4096xf32> {
  %a = mpc.matmul %x, %w in #big : tensor<4096x4096xf32>
  %r = mpc.relu %a in #big : tensor<4096x4096xf32>
  %b = mpc.matmul %r, %v in #big : tensor<4096x4096xf32>
  %s = mpc.softmax %b in #big : tensor<4096x4096xf32>
  return %s : tensor<4096x4096xf32>
}

func.func @tiny(%x: tensor<2x4xf32>, %w: tensor<4x4xf32>) -> tensor<2x4xf32> {
  %a = mpc.matmul %x, %w in #small : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
  %r = mpc.relu %a in #small : tensor<2x4xf32>
  return %r : tensor<2x4xf32>
}
