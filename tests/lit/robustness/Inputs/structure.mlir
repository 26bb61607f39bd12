// Blocks that nothing branches to, cycles in them, regions and functions of wrong form, misplaced operations.
func.func @m(%a: tensor<1x2x4x4xf32>, %w: tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32> {
  %0 = mpc.conv2d %a, %w : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %0 : tensor<1x2x4x4xf32>
^bb1:
  %1 = mpc.relu %0 : tensor<1x2x4x4xf32>
  %2 = mpc.conv2d %1, %w : (tensor<1x2x4x4xf32>, tensor<2x2x1x1xf32>) -> tensor<1x2x4x4xf32>
  return %2 : tensor<1x2x4x4xf32>
}
// -----
func.func @m(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
^bb1(%b: tensor<4xf32>):
  %0 = mpc.cast %b : (tensor<4xf32>) -> tensor<4xf16>
  %1 = mpc.cast %0 : (tensor<4xf16>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
// -----
func.func private @f(tensor<f32>) -> tensor<f32>
func.func @step(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
^bb1:
  %s = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %l, %g = mpc.value_and_grad @g(%a) seed(%s) {wrt = array<i64: 0>} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  return %g : tensor<f32>
}
func.func @g(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32>
}
// -----
func.func @step(%a: tensor<f32>, %c: tensor<i1>) -> tensor<f32> {
  %n = mpc.guarded_update %c else(%a) {
    %s = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
    mpc.yield %s : tensor<f32>
  } : (tensor<i1>, tensor<f32>) -> tensor<f32>
  return %n : tensor<f32>
}
// -----
func.func @step(%a: tensor<f32>, %c: tensor<i1>) -> tensor<f32> {
  %n = mpc.guarded_update %c else(%a) {
    mpc.yield %n : tensor<f32>
  } : (tensor<i1>, tensor<f32>) -> tensor<f32>
  return %n : tensor<f32>
}
// -----
func.func @step(%a: tensor<f32>, %c: tensor<i1>) -> tensor<f32> {
  mpc.guarded_update %c else() { } : (tensor<i1>) -> ()
  %n = "mpc.guarded_update"(%c, %a) ({ ^bb0(%x: tensor<f32>): mpc.yield %x : tensor<f32> }) : (tensor<i1>, tensor<f32>) -> tensor<f32>
  return %n : tensor<f32>
}
// -----
func.func @step(%a: tensor<f32>, %c: tensor<i1>) -> tensor<f32> {
  %n = "mpc.guarded_update"(%c, %a) ({ ^bb0: func.return %a : tensor<f32> }) : (tensor<i1>, tensor<f32>) -> tensor<f32>
  return %n : tensor<f32>
}
// -----
func.func @step(%a: tensor<f32>, %c: tensor<i1>) -> tensor<f32> {
  %n = "mpc.guarded_update"(%c, %a) ({ }) : (tensor<i1>, tensor<f32>) -> tensor<f32>
  return %n : tensor<f32>
}
// -----
func.func @step(%a: tensor<f32>, %c: tensor<i1>) -> tensor<f32> {
  %n = "mpc.guarded_update"(%a) ({ ^bb0: mpc.yield %a : tensor<f32> }) : (tensor<f32>) -> tensor<f32>
  return %n : tensor<f32>
}
// -----
func.func @cycle(%a: tensor<4xf32>) -> tensor<4xf32> {
  return %a : tensor<4xf32>
^bb1:
  %0 = mpc.cast %1 : (tensor<4xf16>) -> tensor<4xf32>
  %1 = mpc.cast %0 : (tensor<4xf32>) -> tensor<4xf16>
  %2 = mpc.reshape %3 {shape = [4]} : tensor<4xf32>
  %3 = mpc.reshape %2 {shape = [4]} : tensor<4xf32>
  %4 = mpc.transpose %4 {permutation = [0]} : tensor<4xf32>
  %5 = mpc.reshape %6 {shape = [4, 1]} : (tensor<2x2xf32>) -> tensor<4x1xf32>
  %6 = mpc.reshape %5 {shape = [2, 2]} : (tensor<4x1xf32>) -> tensor<2x2xf32>
  %7 = mpc.relu %7 : tensor<2x2xf32>
  return %2 : tensor<4xf32>
}
// -----
"func.func"() ({ }) {function_type = (tensor<4xf32>) -> (), sym_name = "x"} : () -> ()
// -----
"builtin.module"() ({
^bb0(%x: tensor<4xf32>):
  %0 = mpc.relu %x : tensor<4xf32>
}) : () -> ()
// -----
%c = mpc.constant {value = dense<1.0> : tensor<4xf32>} : () -> tensor<4xf32>
%0 = mpc.relu %c : tensor<4xf32>
%1 = mpc.matmul %2, %2 : tensor<1x1xf32>
%2 = mpc.constant {value = dense<1.0> : tensor<1x1xf32>} : () -> tensor<1x1xf32>
// -----
"mpc.conv2d"() : () -> ()
// -----
func.func @v() { 
  %s = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  "mpc.value_and_grad"(%s) {callee = @v, wrt = array<i64>} : (tensor<f32>) -> ()
  %l = "mpc.value_and_grad"(%s) {callee = @q, wrt = array<i64>} : (tensor<f32>) -> tensor<f32>
  return }
func.func private @q() -> tensor<f32>
// -----
func.func @s() -> tensor<f32> { 
  %s = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %l = "mpc.value_and_grad"(%s) {callee = @q, wrt = array<i64>} : (tensor<f32>) -> tensor<f32>
  return %l : tensor<f32> }
func.func @q() -> tensor<f32> {
  %s = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  return %s : tensor<f32> }
// -----
func.func @s(%a: tensor<f32>) -> tensor<f32> { 
  %s = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %l, %g, %h = "mpc.value_and_grad"(%a, %s) {callee = @q, wrt = array<i64: 0, 0>} : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>)
  return %l : tensor<f32> }
func.func private @q(%a: tensor<f32>) -> tensor<f32> {
  return %a : tensor<f32> }
func.func private @u(%a: tensor<f32>) -> tensor<f32> {
  %0 = func.call @q(%a) : (tensor<f32>) -> tensor<f32>
  return %a : tensor<f32> }
