// Scopes that pin what is no low or f32 type.
#p = #mpc.scope<"x", network, pin = i32>
func.func @pin(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = mpc.matmul %a, %a in #p : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
// -----
#p = #mpc.scope<"x", network, pin = tensor<4xf16>>
func.func @pin(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = mpc.matmul %a, %a in #p : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
// -----
#p = #mpc.scope<"x", network, pin = f64>
func.func @pin(%a: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = mpc.matmul %a, %a in #p : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
// -----
func.func @intops(%a: tensor<4x4xf64>) -> tensor<4x4xf64> {
  %0 = mpc.matmul %a, %a : tensor<4x4xf64>
  %1 = mpc.cast %0 : (tensor<4x4xf64>) -> tensor<4x4xi1>
  %2 = mpc.cast %1 : (tensor<4x4xi1>) -> tensor<4x4xf64>
  return %2 : tensor<4x4xf64>
}
