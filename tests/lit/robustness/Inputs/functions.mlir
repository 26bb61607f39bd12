// Functions without a body, recursion, extents that overflow, empty tensors, arguments that are no tensors, attributes of another kind.
func.func private @ext(tensor<4xf32>) -> tensor<f32>
func.func @step(%a: tensor<4xf32>) -> tensor<4xf32> {
  %s = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %l, %g = mpc.value_and_grad @ext(%a) seed(%s) {wrt = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return %g : tensor<4xf32>
}
// -----
func.func @multi(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
^bb1:
  %l = mpc.relu %a : tensor<4xf32>
  return %l : tensor<4xf32>
}
// -----
func.func @f(%a: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mpc.constant {value = dense<1> : tensor<4xi32>} : () -> tensor<4xf32>
  %1 = mpc.constant {value = sparse<[[0]], [1.0]> : tensor<4xf32>} : () -> tensor<4xf32>
  %2 = mpc.constant {value = dense_resource<blob> : tensor<4xf32>} : () -> tensor<4xf32>
  %3 = mpc.add %2, %1 : tensor<4xf32>
  %4 = mpc.add %3, %0 : tensor<4xf32>
  return %4 : tensor<4xf32>
}
// -----
func.func @rec(%a: tensor<f32>) -> tensor<f32> {
  %s = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %l, %g = mpc.value_and_grad @rec(%a) seed(%s) {wrt = array<i64: 0>} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %g : tensor<f32>
}
// -----
func.func @mb(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
^bb1:
  return %a : tensor<f32>
}
func.func @s(%a: tensor<f32>) -> tensor<f32> {
  %s = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %l, %g = mpc.value_and_grad @mb(%a) seed(%s) {wrt = array<i64: 0>} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %g : tensor<f32>
}
// -----
module { module { func.func @q(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> } } 
 func.func private @e2(tensor<4xf32>) -> tensor<4xf32>
}
// -----
func.func @dyn(%a: tensor<4611686018427387904x4xf32>) -> tensor<16xf32> {
  %0 = mpc.reshape %a {shape = [16]} : (tensor<4611686018427387904x4xf32>) -> tensor<16xf32>
  return %0 : tensor<16xf32>
}
// -----
func.func @zero(%a: tensor<0x3xf32>, %w: tensor<3x0xf32>) -> tensor<0xi32> {
  %0 = mpc.matmul %a, %w : (tensor<0x3xf32>, tensor<3x0xf32>) -> tensor<0x0xf32>
  %1 = mpc.softmax %0 : tensor<0x0xf32>
  %2 = mpc.argmax %1 : (tensor<0x0xf32>) -> tensor<0xi32>
  return %2 : tensor<0xi32>
}
// -----
func.func @scalars(%a: f32, %b: index) -> f32 { return %a : f32 }
// -----
func.func @calls(%a: tensor<f32>) -> tensor<f32> { %0 = func.call @calls(%a) : (tensor<f32>) -> tensor<f32> 
 return %0 : tensor<f32> }
// -----
func.func @step2(%a: tensor<f32>) -> tensor<f32> {
  %s = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %l, %g = mpc.value_and_grad @calls(%a) seed(%s) {wrt = array<i64: 0>} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %g : tensor<f32>
}
func.func @calls(%a: tensor<f32>) -> tensor<f32> { %0 = func.call @step2(%a) : (tensor<f32>) -> tensor<f32> 
 return %0 : tensor<f32> }
// -----
func.func @x(%a: tensor<f32> {mpc.state = 3, mpc.name = 4.0 : f32}) -> (tensor<f32> {mpc.state = unit}) attributes {mpc.scope = 3} { return %a : tensor<f32> }
// -----
"func.func"() <{function_type = i32, sym_name = "x"}> ({}) {mpc.step} : () -> ()
// -----
"func.func"() <{sym_name = "x"}> ({}) {mpc.step} : () -> ()
// -----
"func.func"() <{function_type = (tensor<f32>) -> (), sym_name = "x", sym_visibility = "private", arg_attrs = [3]}> ({}) {mpc.step} : () -> ()
// -----
"func.func"() <{function_type = () -> (), sym_name = "x", sym_visibility = "private", arg_attrs = [{mpc.state = #mpc.state<slot, "v">}]}> ({}) {mpc.step} : () -> ()
// -----
"func.func"() <{function_type = (f32, i32) -> (i32), sym_name = "x", sym_visibility = "private", arg_attrs = [{mpc.state = #mpc.state<slot, "v">}, {mpc.state = #mpc.state<slot, "w", of = "v">}], res_attrs = [{mpc.state = #mpc.state<slot, "w">}]}> ({}) {mpc.step} : () -> ()
