// Attributes that are missing, of another kind, or out of every range.
func.func @groups(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %0 = mpc.conv2d %x, %w {groups = 0} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}
// -----
func.func @groups(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %0 = mpc.conv2d %x, %w {groups = -9223372036854775808} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}
// -----
func.func @groups(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %0 = mpc.conv2d %x, %w {groups = 4611686018427387904} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}
// -----
func.func @strides(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %0 = mpc.conv2d %x, %w {strides = [0, 0]} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}
// -----
func.func @strides(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %0 = mpc.conv2d %x, %w {strides = [9223372036854775807, 9223372036854775807], pad_mode = same} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}
// -----
func.func @dilations(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %0 = mpc.conv2d %x, %w {dilations = [9223372036854775807, 4611686018427387904]} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}
// -----
func.func @padding(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %0 = mpc.conv2d %x, %w {pad_mode = pad, padding = [9223372036854775807, 9223372036854775807, 1, 1]} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}
// -----
func.func @rank(%x: tensor<f32>, %w: tensor<f32>) -> tensor<f32> {
  %0 = mpc.conv2d %x, %w : tensor<f32>
  %1 = mpc.matmul %x, %w : tensor<f32>
  %2 = mpc.softmax %x : tensor<f32>
  %3:4 = mpc.batch_norm_train %x, %x, %x : (tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>)
  return %0 : tensor<f32>
}
// -----
func.func @rank(%x: tensor<f32>) -> tensor<i32> {
  %0 = mpc.argmax %x {axis = -9223372036854775808} : (tensor<f32>) -> tensor<i32>
  return %0 : tensor<i32>
}
// -----
func.func @rank(%x: tensor<f32>, %l: tensor<i32>) -> tensor<f32> {
  %0:2 = mpc.softmax_cross_entropy %x, %l : (tensor<f32>, tensor<i32>) -> (tensor<f32>, tensor<f32>)
  return %0#0 : tensor<f32>
}
// -----
func.func @shape(%dy: tensor<1x4x6x6xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32> {
  %0 = mpc.conv2d_grad_input %dy, %w {input_shape = []} : (tensor<1x4x6x6xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
  return %0 : tensor<1x4x8x8xf32>
}
// -----
func.func @shape(%dy: tensor<1x4x6x6xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32> {
  %0 = mpc.conv2d_grad_input %dy, %w {input_shape = [-1, 4, 9223372036854775807, 8]} : (tensor<1x4x6x6xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x8x8xf32>
  return %0 : tensor<1x4x8x8xf32>
}
// -----
func.func @shape(%x: tensor<1x4x8x8xf32>, %dy: tensor<1x4x6x6xf32>) -> tensor<4x4x3x3xf32> {
  %0 = mpc.conv2d_grad_weight %x, %dy {weight_shape = [0, 0, 0, 0]} : (tensor<1x4x8x8xf32>, tensor<1x4x6x6xf32>) -> tensor<4x4x3x3xf32>
  return %0 : tensor<4x4x3x3xf32>
}
// -----
func.func @shape(%dy: tensor<1x1x2x2xf32>, %i: tensor<1x1x2x2xi32>) -> tensor<1x1x4x4xf32> {
  %0 = mpc.max_pool2d_grad %dy, %i {input_shape = [1, 1, 4], kernel_size = [2]} : (tensor<1x1x2x2xf32>, tensor<1x1x2x2xi32>) -> tensor<1x1x4x4xf32>
  return %0 : tensor<1x1x4x4xf32>
}
// -----
func.func @shape(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mpc.reshape %x {shape = [4611686018427387904, 4, 4]} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
func.func @shape(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mpc.reshape %x {shape = [4611686018427387905, 4]} : (tensor<4xf32>) -> tensor<4611686018427387905x4xf32>
  return %x : tensor<4xf32>
}
// -----
func.func @shape(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = mpc.broadcast_to %x {shape = [-1, 4]} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
func.func @shape(%seed: tensor<i64>) -> tensor<4xf32> {
  %0 = mpc.random %seed {distribution = uniform, shape = [4611686018427387904, 4611686018427387904]} : (tensor<i64>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
func.func @axes(%x: tensor<4x4xf32>) -> tensor<4xf32> {
  %0 = mpc.reduce_sum %x {axes = [0, 0, -1, 9223372036854775807]} : (tensor<4x4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
func.func @permutation(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = mpc.transpose %x {permutation = [0, 2]} : tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
// -----
func.func @permutation(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  %0 = "mpc.transpose"(%x) : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}
// -----
func.func @kinds(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %0 = "mpc.conv2d"(%x, %w) {strides = 1 : i64, padding = "x", groups = 1.0 : f32, pad_mode = 3 : i64, data_format = unit, activation = array<i64: 1>} : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}
// -----
func.func @kinds(%x: tensor<1x4x8x8xf32>, %w: tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32> {
  %0 = "mpc.conv2d"(%x, %w) <{data_format = "NCWH"}> : (tensor<1x4x8x8xf32>, tensor<4x4x3x3xf32>) -> tensor<1x4x6x6xf32>
  return %0 : tensor<1x4x6x6xf32>
}
// -----
func.func @kinds(%x: tensor<4xf32>, %s: tensor<i64>, %t: tensor<i32>) -> tensor<4xf32> {
  %0 = mpc.dropout %x, %s, %t {p = 0x7FC00000 : f32} : (tensor<4xf32>, tensor<i64>, tensor<i32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
func.func @kinds(%x: tensor<4xf32>) -> tensor<4xf32> attributes {mpc.precision = 3 : i64} {
  %0 = mpc.relu %x {mpc.scope = "lenet5/fc1", mpc.state = 3 : i64} : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
func.func @names(%x: tensor<4xf32> {mpc.state = 1 : i64, mpc.name = 2.0 : f32}) -> (tensor<4xf32> {mpc.state = unit, mpc.name = [1]}) {
  %0 = mpc.relu %x : tensor<4xf32>
  return %0 : tensor<4xf32>
}
// -----
func.func @step(%w: tensor<4xf32>) -> tensor<4xf32> {
  %s = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %l, %g = mpc.value_and_grad @step(%w) seed(%s) {wrt = array<i64: -1>} : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %g : tensor<4xf32>
}
// -----
func.func @step(%w: tensor<4xf32>) -> tensor<4xf32> {
  %s = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %l, %g = mpc.value_and_grad @missing(%w) seed(%s) {wrt = array<i64: 9223372036854775807>} : (tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %g : tensor<4xf32>
}
