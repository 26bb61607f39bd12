// RUN: mpc-opt %s --mpc-group-updates | FileCheck %s
// RUN: mpc-opt %s --mpc-group-updates > %t.once && mpc-opt %t.once --mpc-group-updates | diff %t.once -

// Weights have shadows and low gradients, what norms have is f32: each kind comes together, in its order.
// CHECK-LABEL: func @kinds
// CHECK-SAME: %[[W:[a-z0-9]+]]: tensor<4xf32>, %[[GAMMA:[a-z0-9]+]]: tensor<2xf32>, %[[X:[a-z0-9]+]]: tensor<8xf32>, %[[BETA:[a-z0-9]+]]: tensor<2xf32>
// CHECK-NEXT: mpc.momentum %[[W]],
// CHECK-NEXT: mpc.momentum %[[X]],
// CHECK-NEXT: mpc.momentum %[[GAMMA]],
// CHECK-NEXT: mpc.momentum %[[BETA]],
// CHECK-NEXT: return
func.func @kinds(%w: tensor<4xf32>, %gamma: tensor<2xf32>, %x: tensor<8xf32>, %beta: tensor<2xf32>, %dw: tensor<4xf16>, %dgamma: tensor<2xf32>, %dx: tensor<8xf16>, %dbeta: tensor<2xf32>,
                 %vw: tensor<4xf32>, %vgamma: tensor<2xf32>, %vx: tensor<8xf32>, %vbeta: tensor<2xf32>, %rate: tensor<f32>) -> (tensor<4xf16>, tensor<2xf32>, tensor<8xf16>, tensor<2xf32>) {
  %w2, %vw2, %ws = mpc.momentum %w, %vw, %dw, %rate {shadow = f16} in <"a">
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
  %gamma2, %vgamma2 = mpc.momentum %gamma, %vgamma, %dgamma, %rate : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
  %x2, %vx2, %xs = mpc.momentum %x, %vx, %dx, %rate {shadow = f16} in <"b">
      : (tensor<8xf32>, tensor<8xf32>, tensor<8xf16>, tensor<f32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf16>)
  %beta2, %vbeta2 = mpc.momentum %beta, %vbeta, %dbeta, %rate : (tensor<2xf32>, tensor<2xf32>, tensor<2xf32>, tensor<f32>) -> (tensor<2xf32>, tensor<2xf32>)
  return %ws, %gamma2, %xs, %beta2 : tensor<4xf16>, tensor<2xf32>, tensor<8xf16>, tensor<2xf32>
}

// Rules, attributes and used results differ.
// CHECK-LABEL: func @alike
// CHECK-SAME: %[[A:[a-z0-9]+]]: tensor<4xf32>, %[[B:[a-z0-9]+]]: tensor<4xf32>, %[[C:[a-z0-9]+]]: tensor<4xf32>, %[[D:[a-z0-9]+]]: tensor<4xf32>, %[[E:[a-z0-9]+]]: tensor<4xf32>
// CHECK: mpc.momentum %[[A]],
// CHECK-NEXT: mpc.momentum %[[E]],
// CHECK-NEXT: mpc.sgd %[[B]],
// CHECK-NEXT: mpc.momentum %[[C]],
// CHECK-NEXT: mpc.momentum %[[D]],
func.func @alike(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %d: tensor<4xf32>, %e: tensor<4xf32>, %va: tensor<4xf32>, %vb: tensor<4xf32>, %vc: tensor<4xf32>, %vd: tensor<4xf32>, %ve: tensor<4xf32>,
                 %g: tensor<4xf32>, %rate: tensor<f32>, %step: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a2, %va2 = mpc.momentum %a, %va, %g, %rate : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %b2, %vb2 = mpc.sgd %b, %vb, %g, %rate, %step : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  %c2, %vc2 = mpc.momentum %c, %vc, %g, %rate {weight_decay = 0.1} : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %d2, %vd2 = mpc.momentum %d, %vd, %g, %rate : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %e2, %ve2 = mpc.momentum %e, %ve, %g, %rate : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %a2, %b2, %c2, %d2, %vd2, %e2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// An update that reads what another one writes keeps the order of all.
// CHECK-LABEL: func @chain
// CHECK: mpc.momentum
// CHECK-NEXT: mpc.sgd
// CHECK-NEXT: mpc.momentum
func.func @chain(%a: tensor<4xf32>, %b: tensor<4xf32>, %va: tensor<4xf32>, %vb: tensor<4xf32>, %g: tensor<4xf32>, %rate: tensor<f32>, %step: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %a2, %va2 = mpc.momentum %a, %va, %g, %rate : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %b2, %vb2 = mpc.sgd %b, %vb, %g, %rate, %step : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  %a3, %va3 = mpc.momentum %a2, %va2, %g, %rate : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %a3, %b2 : tensor<4xf32>, tensor<4xf32>
}

// What stands between updates is no part of a run.
// CHECK-LABEL: func @runs
// CHECK: mpc.sgd
// CHECK-NEXT: mpc.momentum
// CHECK-NEXT: mpc.mul
// CHECK-NEXT: mpc.sgd
func.func @runs(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %va: tensor<4xf32>, %vb: tensor<4xf32>, %vc: tensor<4xf32>, %g: tensor<4xf32>, %rate: tensor<f32>, %step: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a2, %va2 = mpc.sgd %a, %va, %g, %rate, %step : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  %b2, %vb2 = mpc.momentum %b, %vb, %g, %rate : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %slow = mpc.mul %rate, %rate : tensor<f32>
  %c2, %vc2 = mpc.sgd %c, %vc, %g, %slow, %step : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %a2, %b2, %c2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// So does one that reads it as its gradient.
// CHECK-LABEL: func @gradient_of_another
// CHECK: mpc.sgd
// CHECK-NEXT: mpc.momentum
// CHECK-NEXT: mpc.sgd
func.func @gradient_of_another(%a: tensor<4xf32>, %b: tensor<4xf32>, %c: tensor<4xf32>, %va: tensor<4xf32>, %vb: tensor<4xf32>, %vc: tensor<4xf32>, %g: tensor<4xf32>, %rate: tensor<f32>, %step: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a2, %va2 = mpc.sgd %a, %va, %g, %rate, %step : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  %b2, %vb2 = mpc.momentum %b, %vb, %g, %rate : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %c2, %vc2 = mpc.sgd %c, %vc, %b2, %rate, %step : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %a2, %b2, %c2 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// Two updates of one state: the second one reads what was there before the first.
// CHECK-LABEL: func @one_state
// CHECK: mpc.sgd
// CHECK-NEXT: mpc.momentum
// CHECK-NEXT: mpc.sgd
func.func @one_state(%a: tensor<4xf32>, %b: tensor<4xf32>, %va: tensor<4xf32>, %vb: tensor<4xf32>, %g: tensor<4xf32>, %rate: tensor<f32>, %step: tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) {
  %a2, %va2 = mpc.sgd %a, %va, %g, %rate, %step : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  %b2, %vb2 = mpc.momentum %b, %vb, %g, %rate : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %a3, %va3 = mpc.sgd %a, %va, %g, %rate, %step : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %a2, %b2, %a3 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}
