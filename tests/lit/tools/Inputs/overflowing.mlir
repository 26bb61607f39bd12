func.func @net(%x: tensor<4xf16>) -> tensor<4xf16> {
  %p = mpc.sigmoid %x in "net" : tensor<4xf16>
  %a = mpc.add_scalar %p {value = 1.0 : f32} in "net" : tensor<4xf16>
  %b = mpc.mul_scalar %a {value = 1.0e5 : f32} in "net" : tensor<4xf16>
  return %b : tensor<4xf16>
}
