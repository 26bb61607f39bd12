// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | FileCheck %s --check-prefix=GENERIC
// RUN: mpc-opt %s > %t && mpc-opt %t | diff %t -

// The text of operations, whatever they compute. What they print is checked for each in the files beside this one.

#net = #mpc.scope<"net/fc", network>
#pinned = #mpc.scope<"net", network, pin = f16>
#outside = #mpc.scope<"loss">
#decided = #mpc.precision<f32, cut>

// CHECK-NOT: {{^}}#

// A word may have quotes, or be the attribute that it stands for.
// CHECK-LABEL: func @words(
// CHECK-COUNT-4: mpc.conv2d %{{.*}}, %{{.*}} {data_format = NHWC, pad_mode = same} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
// CHECK: mpc.random %{{.*}} {distribution = truncated_normal, shape = [2]} :
// CHECK: mpc.bce_with_logits %{{.*}}, %{{.*}} {reduction = none} :
// CHECK: mpc.gelu %{{.*}} {approximate = tanh} :
// GENERIC-LABEL: sym_name = "words"
// GENERIC: "mpc.conv2d"
// GENERIC-SAME: data_format = #mpc.data_format<NHWC>
// GENERIC-SAME: pad_mode = #mpc.pad_mode<same>
func.func @words(%x: tensor<1x4x4x3xf32>, %w: tensor<2x3x1x1xf32>, %v: tensor<2xf32>, %seed: tensor<i64>) {
  %0 = mpc.conv2d %x, %w {data_format = NHWC, pad_mode = same} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  %1 = mpc.conv2d %x, %w {data_format = "NHWC", pad_mode = "same"} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  %2 = mpc.conv2d %x, %w {data_format = #mpc.data_format<NHWC>, pad_mode = #mpc.pad_mode<same>}
      : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  %3 = mpc.conv2d %x, %w {"pad_mode" = same, "data_format" = NHWC} : (tensor<1x4x4x3xf32>, tensor<2x3x1x1xf32>) -> tensor<1x4x4x2xf32>
  %4 = mpc.random %seed {distribution = truncated_normal, shape = [2]} : (tensor<i64>) -> tensor<2xf32>
  %5 = mpc.bce_with_logits %v, %v {reduction = none} : tensor<2xf32>
  %6 = mpc.gelu %v {approximate = "tanh"} : tensor<2xf32>
  return
}

// CHECK-LABEL: func @arrays(
// CHECK-COUNT-2: mpc.pad %{{.*}} {high = [1, 0], low = [0, 2]} : (tensor<2x3xf32>) -> tensor<3x5xf32>
// CHECK-COUNT-3: mpc.reduce_sum %{{.*}} {axes = []} : (tensor<2x3xf32>) -> tensor<f32>
// CHECK: mpc.relu %{{.*}} {sizes = [9223372036854775807], starts = [-9223372036854775808]} backward :
// GENERIC-LABEL: sym_name = "arrays"
// GENERIC: "mpc.pad"
// GENERIC-SAME: high = array<i64: 1, 0>, low = array<i64: 0, 2>
// GENERIC: "mpc.reduce_sum"
// GENERIC-SAME: axes = array<i64>
func.func @arrays(%x: tensor<2x3xf32>, %y: tensor<4xf32>) {
  %0 = mpc.pad %x {high = [1, 0], low = [0, 2]} : (tensor<2x3xf32>) -> tensor<3x5xf32>
  %1 = mpc.pad %x {high = array<i64: 1, 0>, low = array<i64: 0, 2>} : (tensor<2x3xf32>) -> tensor<3x5xf32>
  %2 = mpc.reduce_sum %x {axes = []} : (tensor<2x3xf32>) -> tensor<f32>
  %3 = mpc.reduce_sum %x {axes = array<i64>} : (tensor<2x3xf32>) -> tensor<f32>
  %4 = mpc.reduce_sum %x {axes = [ ]} : (tensor<2x3xf32>) -> tensor<f32>
  %5 = mpc.relu %y {sizes = [9223372036854775807], starts = [-9223372036854775808]} backward : tensor<4xf32>
  return
}

// i64 and f32 need no type. Every f32 comes back as it was: shortest digits, denormals, both zeros, infinities and NaN.
// CHECK-LABEL: func @numbers(
// CHECK-COUNT-2: mpc.dropout %{{.*}}, %{{.*}}, %{{.*}} {call_site = -3, p = 5.000000e-01} :
// CHECK-COUNT-3: mpc.mul_scalar %{{.*}} {value = 1.000000e-01} :
// CHECK: mpc.mul_scalar %{{.*}} {value = 0.333333343} :
// CHECK: mpc.mul_scalar %{{.*}} {value = 0.333333313} :
// CHECK: mpc.mul_scalar %{{.*}} {value = 1.401300e-45} :
// CHECK: mpc.mul_scalar %{{.*}} {value = 3.40282347E+38} :
// CHECK: mpc.mul_scalar %{{.*}} {value = 0.000000e+00} :
// CHECK: mpc.mul_scalar %{{.*}} {value = -0.000000e+00} :
// CHECK: mpc.mul_scalar %{{.*}} {value = 0x7F800000 : f32} :
// CHECK: mpc.mul_scalar %{{.*}} {value = 0xFF800000 : f32} :
// CHECK: mpc.mul_scalar %{{.*}} {value = 0x7FC00000 : f32} :
// CHECK: mpc.mul_scalar %{{.*}} {value = 0xFFC00001 : f32} :
// CHECK: mpc.relu %{{.*}} {bits = 5 : i32, flag = true, half = 5.000000e-01 : f16, mark, place = 7 : index} :
// GENERIC-LABEL: sym_name = "numbers"
// GENERIC: "mpc.dropout"
// GENERIC-SAME: call_site = -3 : i64
// GENERIC-SAME: p = 5.000000e-01 : f32
func.func @numbers(%x: tensor<4xf32>, %seed: tensor<i64>, %step: tensor<i32>) {
  %0 = mpc.dropout %x, %seed, %step {call_site = -3, p = 0.5} : (tensor<4xf32>, tensor<i64>, tensor<i32>) -> tensor<4xf32>
  %1 = mpc.dropout %x, %seed, %step {call_site = -3 : i64, p = 0.5 : f32} : (tensor<4xf32>, tensor<i64>, tensor<i32>) -> tensor<4xf32>
  %2 = mpc.mul_scalar %x {value = 0.1} : tensor<4xf32>
  %3 = mpc.mul_scalar %x {value = 0.1 : f32} : tensor<4xf32>
  %4 = mpc.mul_scalar %x {value = 0x3DCCCCCD : f32} : tensor<4xf32>
  %5 = mpc.mul_scalar %x {value = 0x3EAAAAAB : f32} : tensor<4xf32>
  %6 = mpc.mul_scalar %x {value = 0x3EAAAAAA : f32} : tensor<4xf32>
  %7 = mpc.mul_scalar %x {value = 0x00000001 : f32} : tensor<4xf32>
  %8 = mpc.mul_scalar %x {value = 0x7F7FFFFF : f32} : tensor<4xf32>
  %9 = mpc.mul_scalar %x {value = 0.0} : tensor<4xf32>
  %10 = mpc.mul_scalar %x {value = -0.0} : tensor<4xf32>
  %11 = mpc.mul_scalar %x {value = 0x7F800000 : f32} : tensor<4xf32>
  %12 = mpc.mul_scalar %x {value = 0xFF800000 : f32} : tensor<4xf32>
  %13 = mpc.mul_scalar %x {value = 0x7FC00000 : f32} : tensor<4xf32>
  %14 = mpc.mul_scalar %x {value = 0xFFC00001 : f32} : tensor<4xf32>
  // An operation may have attributes that it does not know. Their numbers have types.
  %15 = mpc.relu %x {bits = 5 : i32, flag = true, half = 0.5 : f16, mark, place = 7 : index} : tensor<4xf32>
  return
}

// A default is left out, given or not.
// CHECK-LABEL: func @defaults(
// CHECK-NEXT: mpc.softmax %{{[a-z0-9]+}} : tensor<2x3xf32>
// CHECK-NEXT: mpc.softmax %{{[a-z0-9]+}} : tensor<2x3xf32>
// CHECK-NEXT: mpc.softmax %{{[a-z0-9]+}} {axis = 1} : tensor<2x3xf32>
// CHECK-NEXT: mpc.matmul %{{[a-z0-9]+}}, %{{[a-z0-9]+}} {transpose_b = true} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
// GENERIC-LABEL: sym_name = "defaults"
// GENERIC-COUNT-2: "mpc.softmax"(%{{[a-z0-9]+}}) <{axis = -1 : i64}>
func.func @defaults(%x: tensor<2x3xf32>) {
  %0 = mpc.softmax %x : tensor<2x3xf32>
  %1 = mpc.softmax %x {axis = -1} : tensor<2x3xf32>
  %2 = mpc.softmax %x {axis = 1} : tensor<2x3xf32>
  %3 = mpc.matmul %x, %x {activation = none, transpose_a = false, transpose_b = true} : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x2xf32>
  return
}

// What autodiff, mpc-amp and the tracer say of an operation stands behind keywords, in this order, and may be given in the
// dictionary.
// CHECK-LABEL: func @keywords(
// CHECK-COUNT-4: mpc.relu %{{[a-z0-9]+}} {mark} backward as <f32, level "O2"> in "net/fc" : tensor<4xf32>
// CHECK: mpc.relu %{{[a-z0-9]+}} backward : tensor<4xf32>
// CHECK: mpc.relu %{{[a-z0-9]+}} as <f32, cut> : tensor<4xf32>
// CHECK: mpc.relu %{{[a-z0-9]+}} as <f32, cut> in <"loss"> : tensor<4xf32>
// CHECK: mpc.constant {value = dense<1.000000e+00> : tensor<2xf32>} backward in "net" : () -> tensor<2xf32>
// GENERIC-LABEL: sym_name = "keywords"
// GENERIC: "mpc.relu"{{.*}}mark, mpc.backward, mpc.precision = #mpc.precision<f32, level "O2">, mpc.scope = #{{.*}}}
func.func @keywords(%x: tensor<4xf32>) {
  %0 = mpc.relu %x {mark} backward as <f32, level "O2"> in "net/fc" : tensor<4xf32>
  %1 = mpc.relu %x {mpc.scope = #net, mark, mpc.precision = #mpc.precision<f32, level "O2">, mpc.backward} : tensor<4xf32>
  %2 = mpc.relu %x {mark, mpc.scope = #mpc.scope<"net/fc", network>} backward as <f32, level "O2"> : tensor<4xf32>
  %3 = mpc.relu %x {mark, mpc.backward, mpc.precision = #mpc.precision<f32, level "O2">} in #net : tensor<4xf32>
  %4 = mpc.relu %x backward : tensor<4xf32>
  %5 = mpc.relu %x {} as #decided : tensor<4xf32>
  %6 = mpc.relu %x as #decided in #outside : tensor<4xf32>
  %7 = mpc.constant {value = dense<1.0> : tensor<2xf32>} backward in "net" : () -> tensor<2xf32>
  return
}

// A scope of a network with nothing else is its path.
// CHECK-LABEL: func @scopes(
// CHECK: mpc.relu %{{[a-z0-9]+}} in "net" :
// CHECK: mpc.relu %{{[a-z0-9]+}} in "net" :
// CHECK: mpc.relu %{{[a-z0-9]+}} in "" :
// CHECK: mpc.relu %{{[a-z0-9]+}} in <""> :
// CHECK: mpc.relu %{{[a-z0-9]+}} in <"net"> :
// CHECK: mpc.relu %{{[a-z0-9]+}} in "a\22b\\c\0A" :
// CHECK: mpc.relu %{{[a-z0-9]+}} in <"net", network, pin = f16> :
// CHECK: mpc.relu %{{[a-z0-9]+}} in <"net", pin = bf16> :
// CHECK: mpc.relu %{{[a-z0-9]+}} in <"net", network, pin = f16, level = "O1", low = bf16> :
// GENERIC-LABEL: sym_name = "scopes"
func.func @scopes(%x: tensor<4xf32>) {
  %0 = mpc.relu %x in "net" : tensor<4xf32>
  %1 = mpc.relu %x in <"net", network> : tensor<4xf32>
  %2 = mpc.relu %x in "" : tensor<4xf32>
  %3 = mpc.relu %x in <""> : tensor<4xf32>
  %4 = mpc.relu %x in <"net"> : tensor<4xf32>
  %5 = mpc.relu %x in "a\22b\\c\0A" : tensor<4xf32>
  %6 = mpc.relu %x in #pinned : tensor<4xf32>
  %7 = mpc.relu %x in <"net", pin = bf16> : tensor<4xf32>
  %8 = mpc.relu %x in <"net", low = bf16, network, level = "O1", pin = f16> : tensor<4xf32>
  return
}

// One type stands for all operands and the only result; a list of types is read too.
// CHECK-LABEL: func @types(
// CHECK-COUNT-2: mpc.add %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : tensor<4xf32>{{$}}
// CHECK: mpc.add %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>{{$}}
// CHECK: mpc.add %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf16>{{$}}
// CHECK: %{{.*}}:2 = mpc.split %{{[a-z0-9]+}} {sizes = [2, 2]} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>){{$}}
// CHECK: %{{.*}} = mpc.split %{{[a-z0-9]+}} {sizes = [4]} : tensor<4xf32>{{$}}
// CHECK: mpc.constant {value = dense<1.000000e+00> : tensor<4xf32>} : () -> tensor<4xf32>{{$}}
// GENERIC-LABEL: sym_name = "types"
// GENERIC-COUNT-2: "mpc.add"(%{{.*}}) : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
func.func @types(%x: tensor<4xf32>, %y: tensor<1xf32>) {
  %0 = mpc.add %x, %x : tensor<4xf32>
  %1 = mpc.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  %2 = mpc.add %x, %y : (tensor<4xf32>, tensor<1xf32>) -> tensor<4xf32>
  %3 = mpc.add %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf16>
  %4:2 = mpc.split %x {sizes = [2, 2]} : (tensor<4xf32>) -> (tensor<2xf32>, tensor<2xf32>)
  %5 = mpc.split %x {sizes = [4]} : (tensor<4xf32>) -> tensor<4xf32>
  %6 = mpc.constant {value = dense<1.0> : tensor<4xf32>} : () -> tensor<4xf32>
  return
}

// An update of state has no arrow where its results have the types of its first operands. A shadow may have the type of the
// gradient. Results that nobody reads have names all the same.
// CHECK-LABEL: func @updates(
// CHECK-COUNT-4: %{{.*}}, %{{.*}} = mpc.momentum %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>){{$}}
// CHECK: %{{.*}}, %{{.*}}, %{{.*}} = mpc.momentum {{.*}} {shadow = f16} in <"optimizer"> : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>){{$}}
// CHECK: %{{.*}}, %{{.*}}, %{{.*}} = mpc.momentum {{.*}} {shadow = bf16} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>){{$}}
// CHECK: mpc.increment %{{[a-z0-9]+}}, %{{[a-z0-9]+}} : (tensor<i32>, tensor<i1>){{$}}
// CHECK-COUNT-3: mpc.increment %{{[a-z0-9]+}} : tensor<i32>{{$}}
// GENERIC-LABEL: sym_name = "updates"
// GENERIC-COUNT-4: "mpc.momentum"{{.*}} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>){{$}}
// GENERIC: "mpc.momentum"{{.*}} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>){{$}}
// GENERIC: "mpc.increment"{{.*}} : (tensor<i32>, tensor<i1>) -> tensor<i32>{{$}}
func.func @updates(%p: tensor<4xf32>, %v: tensor<4xf32>, %g: tensor<4xf16>, %rate: tensor<f32>, %step: tensor<i32>, %finite: tensor<i1>) {
  %0, %1 = mpc.momentum %p, %v, %g, %rate : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>)
  %2:2 = mpc.momentum %p, %v, %g, %rate : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>)
  %3, %4 = mpc.momentum %p, %v, %g, %rate : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  mpc.momentum %p, %v, %g, %rate : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %5:3 = mpc.momentum %p, %v, %g, %rate {shadow = f16} in <"optimizer"> : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>)
  %6:3 = mpc.momentum %p, %v, %g, %rate {shadow = bf16}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xbf16>)
  %7 = mpc.increment %step, %finite : (tensor<i32>, tensor<i1>)
  %8 = mpc.increment %step : (tensor<i32>)
  %9 = mpc.increment %step : tensor<i32>
  %10 = mpc.increment %step : (tensor<i32>) -> tensor<i32>
  return
}

// The types of a guarded update are those of the held state. Its attributes stand in the dictionary.
// CHECK-LABEL: func @guards(
// CHECK: mpc.guarded_update %{{[a-z0-9]+}} else(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) {
// CHECK: } : tensor<4xf32>, tensor<i32>{{$}}
// CHECK: mpc.guarded_update %{{[a-z0-9]+}} else(%{{[a-z0-9]+}}, %{{[a-z0-9]+}}) {
// CHECK: } {mark, mpc.scope = #mpc.scope<"net">} : tensor<4xf32>, tensor<i32>{{$}}
// CHECK: mpc.guarded_update %{{[a-z0-9]+}} else() {
// CHECK-NEXT: } : (tensor<i1>) -> (){{$}}
// GENERIC-LABEL: sym_name = "guards"
// GENERIC: "mpc.guarded_update"
// GENERIC: }) : (tensor<i1>, tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<i32>){{$}}
func.func @guards(%finite: tensor<i1>, %p: tensor<4xf32>, %step: tensor<i32>) {
  %0:2 = mpc.guarded_update %finite else(%p, %step) {
    mpc.yield %p, %step : tensor<4xf32>, tensor<i32>
  } : tensor<4xf32>, tensor<i32>
  %1:2 = mpc.guarded_update %finite else(%p, %step) {
    mpc.yield %p, %step : tensor<4xf32>, tensor<i32>
  } {mark, mpc.scope = #mpc.scope<"net">} : (tensor<i1>, tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<i32>)
  mpc.guarded_update %finite else() {
  } : (tensor<i1>) -> ()
  return
}
