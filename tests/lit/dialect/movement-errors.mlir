// RUN: mpc-opt %s --verify-diagnostics --split-input-file

func.func @concat() {
  // expected-error @+1 {{'mpc.concat' op concat expects at least one operand}}
  %r0 = mpc.concat : () -> tensor<2x3xf32>
  return
}

// -----

func.func @concat(%0: tensor<2x3xf32>, %1: tensor<2x4xf32>) {
  // expected-error @+1 {{'mpc.concat' op concat along axis 0 needs operands that agree on every other axis, got tensor<2x3xf32> and tensor<2x4xf32>}}
  %r0 = mpc.concat %0, %1 : (tensor<2x3xf32>, tensor<2x4xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @concat(%0: tensor<2x3xf32>, %1: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.concat' op concat along axis 1 needs operands that agree on every other axis, got tensor<2x3xf32> and tensor<2xf32>}}
  %r0 = mpc.concat %0, %1 {axis = 1} : (tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @concat(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.concat' op concat axis 2 is outside [-2, 2) of a rank-2 tensor}}
  %r0 = mpc.concat %0, %1 {axis = 2} : tensor<2x3xf32>
  return
}

// -----

func.func @concat(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.concat' op result 0 is 'tensor<2x3xf32>', its shape must be 4x3}}
  %r0 = mpc.concat %0, %1 : tensor<2x3xf32>
  return
}

// -----

func.func @slice(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.slice' op slice takes one of starts an axis: tensor<2x3xf32> has 2, got 1}}
  %r0 = mpc.slice %0 {sizes = [2, 3], starts = [0]} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @slice(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.slice' op slice takes one of sizes an axis: tensor<2x3xf32> has 2, got 3}}
  %r0 = mpc.slice %0 {sizes = [2, 3, 1], starts = [0, 0]} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @slice(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.slice' op slice of axis 1 takes 3 elements from 1 on, but tensor<2x3xf32> has elements 0 to 2 there}}
  %r0 = mpc.slice %0 {sizes = [2, 3], starts = [0, 1]} : tensor<2x3xf32>
  return
}

// -----

func.func @slice(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.slice' op slice of axis 0 takes 0 elements from 0 on}}
  %r0 = mpc.slice %0 {sizes = [0, 3], starts = [0, 0]} : tensor<2x3xf32>
  return
}

// -----

func.func @slice(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.slice' op slice of axis 0 takes 9223372036854775807 elements from 9223372036854775807 on}}
  %r0 = mpc.slice %0 {sizes = [9223372036854775807, 3], starts = [9223372036854775807, 0]} : tensor<2x3xf32>
  return
}

// -----

func.func @slice(%0: tensor<5xi32>) {
  // expected-error @+1 {{'mpc.slice' op result 0 is 'tensor<3xf32>', but it moves elements of 'i32', which keep their type; mpc.cast changes it}}
  %r0 = mpc.slice %0 {sizes = [3], starts = [1]} : (tensor<5xi32>) -> tensor<3xf32>
  return
}

// -----

func.func @slice(%0: tensor<5xi32>) {
  // expected-error @+1 {{'mpc.slice' op result 0 is 'tensor<3xi64>', but it moves elements of 'i32', which keep their type; mpc.cast changes it}}
  %r0 = mpc.slice %0 {sizes = [3], starts = [1]} : (tensor<5xi32>) -> tensor<3xi64>
  return
}

// -----

func.func @slice(%0: tensor<5xf32>) {
  // expected-error @+1 {{'mpc.slice' op result 0 is 'tensor<3xi32>', but it moves elements of 'f32', which keep their type; mpc.cast changes it}}
  %r0 = mpc.slice %0 {sizes = [3], starts = [1]} : (tensor<5xf32>) -> tensor<3xi32>
  return
}

// -----

func.func @split(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.split' op split sizes must add up to 2, the extent of axis 0 of tensor<2x3xf32>; got 2x2}}
  %r0, %r1 = mpc.split %0 {sizes = [2, 2]} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @split(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.split' op split sizes must add up to 2, the extent of axis 0 of tensor<2x3xf32>; got 1}}
  %r0 = mpc.split %0 {sizes = [1]} : (tensor<2x3xf32>) -> tensor<1x3xf32>
  return
}

// -----

func.func @split(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.split' op split takes sizes >= 1, got -1}}
  %r0, %r1 = mpc.split %0 {sizes = [-1, 3]} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<2x3xf32>)
  return
}

// -----

func.func @split(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.split' op split axis -3 is outside [-2, 2) of a rank-2 tensor}}
  %r0 = mpc.split %0 {axis = -3, sizes = [2]} : tensor<2x3xf32>
  return
}

// -----

func.func @split(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.split' op has 1 results, expected 2}}
  %r0 = mpc.split %0 {sizes = [1, 1]} : tensor<2x3xf32>
  return
}

// -----

func.func @pad(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.pad' op pad takes one of low an axis: tensor<2x3xf32> has 2, got 1}}
  %r0 = mpc.pad %0 {high = [0, 0], low = [0]} : tensor<2x3xf32>
  return
}

// -----

func.func @pad(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.pad' op pad takes one of high an axis: tensor<2x3xf32> has 2, got 0}}
  %r0 = mpc.pad %0 {high = [], low = [0, 0]} : tensor<2x3xf32>
  return
}

// -----

func.func @pad(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.pad' op pad takes widths in [0, 2^47], got low -1 and high 0; slice cuts}}
  %r0 = mpc.pad %0 {high = [0, 0], low = [-1, 0]} : tensor<2x3xf32>
  return
}

// -----

func.func @gather(%0: tensor<f32>, %1: tensor<2x3xi32>) {
  // expected-error @+1 {{'mpc.gather' op gather takes a table of rank 1 or more, got tensor<f32>}}
  %r0 = mpc.gather %0, %1 : (tensor<f32>, tensor<2x3xi32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gather(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.gather' op operand #1 must be statically shaped tensor of 32-bit signless integer or 64-bit signless integer values}}
  %r0 = mpc.gather %0, %1 : tensor<2x3xf32>
  return
}

// -----

func.func @gather(%0: tensor<10x4xf32>, %1: tensor<2x3xi32>) {
  // expected-error @+1 {{'mpc.gather' op result 0 is 'tensor<2x3xf32>', its shape must be 2x3x4}}
  %r0 = mpc.gather %0, %1 : (tensor<10x4xf32>, tensor<2x3xi32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_grad(%0: tensor<2x3xf32>, %1: tensor<3xi32>) {
  // expected-error @+1 {{'mpc.gather_grad' op gather_grad expects dy to begin with the shape of the indices, 3, got tensor<2x3xf32>}}
  %r0 = mpc.gather_grad %0, %1 {rows = 10} : (tensor<2x3xf32>, tensor<3xi32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @gather_grad(%0: tensor<2x3xf32>, %1: tensor<2xi32>) {
  // expected-error @+1 {{'mpc.gather_grad' op gather_grad takes rows >= 1, got 0}}
  %r0 = mpc.gather_grad %0, %1 {rows = 0} : (tensor<2x3xf32>, tensor<2xi32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @one_hot(%0: tensor<2x3xi32>) {
  // expected-error @+1 {{'mpc.one_hot' op one_hot takes a depth >= 1, got 0}}
  %r0 = mpc.one_hot %0 {depth = 0} : (tensor<2x3xi32>) -> tensor<2x3x4xf32>
  return
}

// -----

func.func @one_hot(%0: tensor<2x3xi32>) {
  // expected-error @+1 {{'mpc.one_hot' op result #0 must be statically shaped tensor of 32-bit float or 64-bit float values}}
  %r0 = mpc.one_hot %0 {depth = 4} : (tensor<2x3xi32>) -> tensor<2x3x4xf16>
  return
}

// -----

func.func @reduce_max(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reduce_max' op reduce_max axes must be distinct and in [0, 2), got 2}}
  %r0 = mpc.reduce_max %0 {axes = [2]} : tensor<2x3xf32>
  return
}

// -----

func.func @reduce_max(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reduce_max' op result 0 is 'tensor<2xf32>', its shape must be 2x1}}
  %r0 = mpc.reduce_max %0 {axes = [1], keep_dims = true} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @reduce_max_grad(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>, %2: tensor<2xf32>) {
  // expected-error @+1 {{'mpc.reduce_max_grad' op reduce_max_grad expects dy of shape 2, got tensor<2x3xf32>}}
  %r0 = mpc.reduce_max_grad %0, %1, %2 {axes = [1]} : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @reduce_max_grad(%0: tensor<2xf32>, %1: tensor<2x3xf32>, %2: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reduce_max_grad' op reduce_max_grad expects y of shape 2, got tensor<2x3xf32>}}
  %r0 = mpc.reduce_max_grad %0, %1, %2 {axes = [1]} : (tensor<2xf32>, tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x3xf32>
  return
}

// -----

func.func @reshape(%0: tensor<2x3xf16>) {
  // expected-error @+1 {{'mpc.reshape' op result 0 is 'tensor<6xbf16>', but it moves elements of 'f16', which keep their type; mpc.cast changes it}}
  %r0 = mpc.reshape %0 {shape = [6]} : (tensor<2x3xf16>) -> tensor<6xbf16>
  return
}

// -----

func.func @reshape(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reshape' op result 0 is 'tensor<2x3xi32>', but it moves elements of 'f32', which keep their type; mpc.cast changes it}}
  %r0 = mpc.reshape %0 {shape = [2, 3]} : (tensor<2x3xf32>) -> tensor<2x3xi32>
  return
}

// -----

func.func @transpose(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.transpose' op result 0 is 'tensor<2x3xf16>', but it moves elements of 'f32', which keep their type; mpc.cast changes it}}
  %r0 = mpc.transpose %0 {permutation = [0, 1]} : (tensor<2x3xf32>) -> tensor<2x3xf16>
  return
}

// -----

func.func @broadcast_to(%0: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.broadcast_to' op result 0 is 'tensor<2x3xf16>', but it moves elements of 'f32', which keep their type; mpc.cast changes it}}
  %r0 = mpc.broadcast_to %0 {shape = [2, 3]} : (tensor<3xf32>) -> tensor<2x3xf16>
  return
}

// -----

func.func @slice(%0: tensor<5xf32>) {
  // expected-error @+1 {{'mpc.slice' op result 0 is 'tensor<3xf16>', but it moves elements of 'f32', which keep their type; mpc.cast changes it}}
  %r0 = mpc.slice %0 {sizes = [3], starts = [1]} : (tensor<5xf32>) -> tensor<3xf16>
  return
}

// -----

func.func @split(%0: tensor<4xf16>) {
  // expected-error @+1 {{'mpc.split' op result 1 is 'tensor<2xf32>', but it moves elements of 'f16', which keep their type; mpc.cast changes it}}
  %r0, %r1 = mpc.split %0 {sizes = [2, 2]} : (tensor<4xf16>) -> (tensor<2xf16>, tensor<2xf32>)
  return
}

// -----

func.func @stop_gradient(%0: tensor<4xf16>) {
  // expected-error @+1 {{'mpc.stop_gradient' op result 0 is 'tensor<4xf32>', but it moves elements of 'f16', which keep their type; mpc.cast changes it}}
  %r0 = mpc.stop_gradient %0 : (tensor<4xf16>) -> tensor<4xf32>
  return
}

// -----

func.func @pad(%0: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.pad' op result 0 is 'tensor<5xbf16>', but it moves elements of 'f32', which keep their type; mpc.cast changes it}}
  %r0 = mpc.pad %0 {high = [1], low = [1]} : (tensor<3xf32>) -> tensor<5xbf16>
  return
}

// -----

func.func @gather(%0: tensor<5x2xf32>, %1: tensor<3xi64>) {
  // expected-error @+1 {{'mpc.gather' op result 0 is 'tensor<3x2xf16>', but it moves elements of 'f32', which keep their type; mpc.cast changes it}}
  %r0 = mpc.gather %0, %1 : (tensor<5x2xf32>, tensor<3xi64>) -> tensor<3x2xf16>
  return
}

// -----

func.func @concat(%0: tensor<3xf32>) {
  // expected-error @+1 {{'mpc.concat' op result 0 is 'tensor<6xf16>', but it moves elements of 'f32', which keep their type; mpc.cast changes it}}
  %r0 = mpc.concat %0, %0 : (tensor<3xf32>, tensor<3xf32>) -> tensor<6xf16>
  return
}

// -----

func.func @concat(%0: tensor<3xf32>, %1: tensor<3xf16>) {
  // expected-error @+1 {{'mpc.concat' op concat needs operands of one element type, got tensor<3xf32> and tensor<3xf16>; cast changes it}}
  %r0 = mpc.concat %0, %1 : (tensor<3xf32>, tensor<3xf16>) -> tensor<6xf32>
  return
}

// -----

func.func @select(%0: tensor<i1>, %1: tensor<3xi32>) {
  // expected-error @+1 {{'mpc.select' op result 0 is 'tensor<3xf32>', but it moves elements of 'i32', which keep their type; mpc.cast changes it}}
  %r0 = mpc.select %0, %1, %1 : (tensor<i1>, tensor<3xi32>, tensor<3xi32>) -> tensor<3xf32>
  return
}

// -----

func.func @reduce_min(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reduce_min' op reduce_min axes must be distinct and in [0, 2), got 2}}
  %r0 = mpc.reduce_min %0 {axes = [2]} : tensor<2x3xf32>
  return
}

// -----

func.func @reduce_prod(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reduce_prod' op result 0 is 'tensor<2xf32>', its shape must be 2x1}}
  %r0 = mpc.reduce_prod %0 {axes = [1], keep_dims = true} : (tensor<2x3xf32>) -> tensor<2xf32>
  return
}

// -----

func.func @reduce_prod_grad(%0: tensor<2x3xf32>, %1: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.reduce_prod_grad' op reduce_prod_grad expects dy of shape 2, got tensor<2x3xf32>}}
  %r0 = mpc.reduce_prod_grad %0, %1 {axes = [1]} : tensor<2x3xf32>
  return
}

// -----

func.func @cumsum(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.cumsum' op cumsum axis 2 is outside [-2, 2) of a rank-2 tensor}}
  %r0 = mpc.cumsum %0 {axis = 2} : tensor<2x3xf32>
  return
}

// -----

func.func @sort(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.sort' op result 1 is 'tensor<3xi32>', its shape must be 2x3}}
  %r0, %r1 = mpc.sort %0 : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<3xi32>)
  return
}

// -----

func.func @sort_scalar(%0: tensor<f32>) {
  // expected-error @+1 {{'mpc.sort' op sort axis -1 is outside [0, 0) of a rank-0 tensor}}
  %r0, %r1 = mpc.sort %0 : (tensor<f32>) -> (tensor<f32>, tensor<i32>)
  return
}

// -----

func.func @top_k(%0: tensor<2x3xf32>) {
  // expected-error @+1 {{'mpc.top_k' op top_k takes k in [1, 3], the extent of axis 1 of tensor<2x3xf32>, got 4}}
  %r0, %r1 = mpc.top_k %0 {k = 4} : (tensor<2x3xf32>) -> (tensor<2x4xf32>, tensor<2x4xi32>)
  return
}

// -----

func.func @top_k_grad(%0: tensor<2x3xf32>, %1: tensor<3xi32>) {
  // expected-error @+1 {{'mpc.top_k_grad' op top_k_grad expects indices of shape 2x3, got tensor<3xi32>}}
  %r0 = mpc.top_k_grad %0, %1 {extent = 5} : (tensor<2x3xf32>, tensor<3xi32>) -> tensor<2x5xf32>
  return
}

// -----

func.func @top_k_grad_extent(%0: tensor<2x3xf32>, %1: tensor<2x3xi32>) {
  // expected-error @+1 {{'mpc.top_k_grad' op top_k_grad takes an extent of 3 or more, that of axis 1 of tensor<2x3xf32>, got 2}}
  %r0 = mpc.top_k_grad %0, %1 {extent = 2} : (tensor<2x3xf32>, tensor<2x3xi32>) -> tensor<2x2xf32>
  return
}

// -----

func.func @scatter_add(%0: tensor<5x3xf32>, %1: tensor<4xi32>, %2: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.scatter_add' op scatter_add expects updates of shape 4x3, got tensor<4xf32>}}
  %r0 = mpc.scatter_add %0, %1, %2 : (tensor<5x3xf32>, tensor<4xi32>, tensor<4xf32>) -> tensor<5x3xf32>
  return
}

// -----

func.func @scatter_add_scalar(%0: tensor<f32>, %1: tensor<4xi32>, %2: tensor<4xf32>) {
  // expected-error @+1 {{'mpc.scatter_add' op scatter_add takes x of rank 1 or more, got tensor<f32>}}
  %r0 = mpc.scatter_add %0, %1, %2 : (tensor<f32>, tensor<4xi32>, tensor<4xf32>) -> tensor<f32>
  return
}

// -----

func.func @concat(%0: tensor<2xi32>, %1: tensor<3xi64>) {
  // expected-error @+1 {{'mpc.concat' op concat needs operands of one element type, got tensor<2xi32> and tensor<3xi64>; cast changes it}}
  %r0 = mpc.concat %0, %1 : (tensor<2xi32>, tensor<3xi64>) -> tensor<5xi64>
  return
}

// -----

func.func @split(%0: tensor<4xi1>) {
  // expected-error @+1 {{'mpc.split' op result 0 is 'tensor<2xi8>', but it moves elements of 'i1', which keep their type; mpc.cast changes it}}
  %r0, %r1 = mpc.split %0 {sizes = [2, 2]} : (tensor<4xi1>) -> (tensor<2xi8>, tensor<2xi1>)
  return
}

// -----

func.func @pad(%0: tensor<3xi32>) {
  // expected-error @+1 {{'mpc.pad' op pad of i32 takes a value that i32 holds, a whole number in its range, got 0.5}}
  %r0 = mpc.pad %0 {high = [2], low = [0], value = 0.5} : (tensor<3xi32>) -> tensor<5xi32>
  return
}

// -----

func.func @pad(%0: tensor<3xi8>) {
  // expected-error @+1 {{'mpc.pad' op pad of i8 takes a value that i8 holds, a whole number in its range, got 128}}
  %r0 = mpc.pad %0 {high = [2], low = [0], value = 128.0} : (tensor<3xi8>) -> tensor<5xi8>
  return
}

// -----

func.func @pad(%0: tensor<3xi1>) {
  // expected-error @+1 {{'mpc.pad' op pad of i1 takes a value that i1 holds, 0 or 1, got -1}}
  %r0 = mpc.pad %0 {high = [2], low = [0], value = -1.0} : (tensor<3xi1>) -> tensor<5xi1>
  return
}

// -----

func.func @gather(%0: tensor<4x3xi1>, %1: tensor<2xi64>) {
  // expected-error @+1 {{'mpc.gather' op result 0 is 'tensor<2x3xf32>', but it moves elements of 'i1', which keep their type; mpc.cast changes it}}
  %r0 = mpc.gather %0, %1 : (tensor<4x3xi1>, tensor<2xi64>) -> tensor<2x3xf32>
  return
}
