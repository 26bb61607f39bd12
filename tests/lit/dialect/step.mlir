// RUN: mpc-opt %s | mpc-opt | FileCheck %s
// RUN: mpc-opt %s --mlir-print-op-generic | mpc-opt | FileCheck %s

// Loss scaling, guarded updates, optimizers and differentiation.

// CHECK-LABEL: func @unscale(
// CHECK: mpc.unscale %{{.*}}, %{{.*}} : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
func.func @unscale(%0: tensor<4xf16>, %1: tensor<f32>) -> tensor<4xf32> {
  %r0 = mpc.unscale %0, %1 : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
  return %r0 : tensor<4xf32>
}

// CHECK-LABEL: func private @halve(
// CHECK-SAME: attributes {mpc.sequence}
func.func private @halve(%x: tensor<4xf16>, %half: tensor<f16>) -> tensor<4xf16> attributes {mpc.sequence} {
  %0 = mpc.mul %x, %half : (tensor<4xf16>, tensor<f16>) -> tensor<4xf16>
  return %0 : tensor<4xf16>
}

// CHECK-LABEL: func @repeat(
// CHECK: mpc.repeat @halve(%{{.*}}, %{{.*}}) {count = 3 : i64} : (tensor<4xf16>, tensor<f16>) -> tensor<4xf16>
func.func @repeat(%0: tensor<4xf16>, %1: tensor<f16>) -> tensor<4xf16> {
  %r0 = mpc.repeat @halve(%0, %1) {count = 3 : i64} : (tensor<4xf16>, tensor<f16>) -> tensor<4xf16>
  return %r0 : tensor<4xf16>
}

// CHECK-LABEL: func @all_finite(
// CHECK: mpc.all_finite %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<f32>, tensor<f32>, tensor<4xf16>, tensor<2x2xf32>) -> (tensor<i1>, tensor<i32>)
func.func @all_finite(%0: tensor<f32>, %1: tensor<f32>, %2: tensor<4xf16>, %3: tensor<2x2xf32>) -> (tensor<i1>, tensor<i32>) {
  %r0, %r1 = mpc.all_finite %0, %1, %2, %3
      : (tensor<f32>, tensor<f32>, tensor<4xf16>, tensor<2x2xf32>) -> (tensor<i1>, tensor<i32>)
  return %r0, %r1 : tensor<i1>, tensor<i32>
}

// CHECK-LABEL: func @update_loss_scale(
// CHECK: mpc.update_loss_scale %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<i32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>)
func.func @update_loss_scale(%0: tensor<i32>, %1: tensor<f32>, %2: tensor<i32>, %3: tensor<i32>, %4: tensor<i32>, %5: tensor<i32>, %6: tensor<f32>, %7: tensor<f32>, %8: tensor<f32>, %9: tensor<f32>, %10: tensor<i32>, %11: tensor<i32>, %12: tensor<i32>, %13: tensor<i32>) -> (tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) {
  %r0, %r1, %r2, %r3, %r4 = mpc.update_loss_scale %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13
      : (tensor<i32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>) -> (tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>)
  return %r0, %r1, %r2, %r3, %r4 : tensor<f32>, tensor<i32>, tensor<i32>, tensor<i32>, tensor<i32>
}

// CHECK-LABEL: func @increment(
// CHECK: mpc.increment %{{.*}} : tensor<i32>
func.func @increment(%0: tensor<i32>) -> tensor<i32> {
  %r0 = mpc.increment %0 : tensor<i32>
  return %r0 : tensor<i32>
}

// CHECK-LABEL: func @increment_if(
// CHECK: mpc.increment %{{.*}}, %{{.*}} : (tensor<i32>, tensor<i1>){{$}}
func.func @increment_if(%0: tensor<i32>, %1: tensor<i1>) -> tensor<i32> {
  %r0 = mpc.increment %0, %1 : (tensor<i32>, tensor<i1>) -> tensor<i32>
  return %r0 : tensor<i32>
}

// CHECK-LABEL: func @batch_norm_running_update(
// CHECK: mpc.batch_norm_running_update %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {count = 32, momentum = 8.000000e-01} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>){{$}}
func.func @batch_norm_running_update(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r0, %r1 = mpc.batch_norm_running_update %0, %1, %2, %3 {count = 32, momentum = 8.000000e-01}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r0, %r1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func @sgd(
// CHECK: mpc.sgd %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {dampening = 1.000000e-01, momentum = 8.000000e-01, nesterov = true} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>, tensor<i32>){{$}}
func.func @sgd(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf16>, %3: tensor<f32>, %4: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r0, %r1 = mpc.sgd %0, %1, %2, %3, %4 {dampening = 1.000000e-01, momentum = 8.000000e-01, nesterov = true}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r0, %r1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func @momentum(
// CHECK: mpc.momentum %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {loss_scale = 1.280000e+02} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>){{$}}
func.func @momentum(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<f32>, %4: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>) {
  %r0, %r1 = mpc.momentum %0, %1, %2, %3, %4 {loss_scale = 1.280000e+02}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>)
  return %r0, %r1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func @adam(
// CHECK: mpc.adam %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {weight_decay = 7.812500e-03} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>, tensor<i1>){{$}}
func.func @adam(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>, %4: tensor<f32>, %5: tensor<i32>, %6: tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %r0, %r1, %r2 = mpc.adam %0, %1, %2, %3, %4, %5, %6 {weight_decay = 7.812500e-03}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>, tensor<i1>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %r0, %r1, %r2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func @adam_weight_decay(
// CHECK: mpc.adam_weight_decay %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} {beta1 = 8.000000e-01} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>){{$}}
func.func @adam_weight_decay(%0: tensor<4xf32>, %1: tensor<4xf32>, %2: tensor<4xf32>, %3: tensor<4xf32>, %4: tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %r0, %r1, %r2 = mpc.adam_weight_decay %0, %1, %2, %3, %4 {beta1 = 8.000000e-01}
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>)
  return %r0, %r1, %r2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: func @guarded_update(
// CHECK: %[[NEW:.*]]:2 = mpc.guarded_update %{{.*}} else(%{{.*}}, %{{.*}}) {
// CHECK: mpc.yield %{{.*}}, %{{.*}} : tensor<4xf32>, tensor<i32>
// CHECK: } : tensor<4xf32>, tensor<i32>{{$}}
func.func @guarded_update(%finite: tensor<i1>, %p: tensor<4xf32>, %v: tensor<4xf32>, %g: tensor<4xf16>,
                          %rate: tensor<f32>, %scale: tensor<f32>, %step: tensor<i32>)
    -> (tensor<4xf32>, tensor<i32>) {
  %new:2 = mpc.guarded_update %finite else(%p, %step) {
    %unscaled = mpc.unscale %g, %scale : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
    %p1, %v1 = mpc.momentum %p, %v, %unscaled, %rate
        : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
    %next = mpc.increment %step : tensor<i32>
    mpc.yield %p1, %next : tensor<4xf32>, tensor<i32>
  } : (tensor<i1>, tensor<4xf32>, tensor<i32>) -> (tensor<4xf32>, tensor<i32>)
  return %new#0, %new#1 : tensor<4xf32>, tensor<i32>
}

// CHECK-LABEL: func @guarded_nothing(
// CHECK: mpc.guarded_update %{{.*}} else() {
// CHECK-NEXT: } : (tensor<i1>) -> ()
func.func @guarded_nothing(%finite: tensor<i1>) {
  mpc.guarded_update %finite else() {
  } : (tensor<i1>) -> ()
  return
}

func.func private @loss(%w: tensor<4xf32>, %x: tensor<4xf16>) -> (tensor<f32>, tensor<4xf16>) {
  %y = mpc.mul %w, %x : (tensor<4xf32>, tensor<4xf16>) -> tensor<4xf32>
  %loss = mpc.reduce_sum %y {axes = []} : (tensor<4xf32>) -> tensor<f32>
  return %loss, %x : tensor<f32>, tensor<4xf16>
}

// CHECK-LABEL: func @value_and_grad(
// CHECK: mpc.value_and_grad @loss(%{{.*}}, %{{.*}}) seed(%{{.*}}) {wrt = array<i64: 1, 0>} : (tensor<4xf32>, tensor<4xf16>, tensor<f32>) -> (tensor<f32>, tensor<4xf16>, tensor<4xf16>, tensor<4xf32>)
func.func @value_and_grad(%w: tensor<4xf32>, %x: tensor<4xf16>, %seed: tensor<f32>)
    -> (tensor<f32>, tensor<4xf16>, tensor<4xf32>) {
  %loss, %aux, %dx, %dw = mpc.value_and_grad @loss(%w, %x) seed(%seed) {wrt = array<i64: 1, 0>}
      : (tensor<4xf32>, tensor<4xf16>, tensor<f32>) -> (tensor<f32>, tensor<4xf16>, tensor<4xf16>, tensor<4xf32>)
  return %loss, %dx, %dw : tensor<f32>, tensor<4xf16>, tensor<4xf32>
}

// CHECK-LABEL: func @scope(
// CHECK: mpc.relu %{{.*}} as <f32, level "O2"> in <"lenet5/conv1", network, pin = f16> :
func.func @scope(%x: tensor<4xf32>) -> tensor<4xf32> {
  %y = mpc.relu %x {mpc.precision = #mpc.precision<f32, level "O2">,
                    mpc.scope = #mpc.scope<"lenet5/conv1", network, pin = f16>}
      : tensor<4xf32>
  return %y : tensor<4xf32>
}
