// RUN: mpc-opt %s --mpc-flat-updates | FileCheck %s
// RUN: mpc-opt %s --mpc-flat-updates > %t.once && mpc-opt %t.once --mpc-flat-updates | diff %t.once -

// Two that follow each other, views and constants aside. Another operation ends a group; alone an update has none.
// CHECK-LABEL: func @neighbours
// CHECK: mpc.sgd {{.*}}{mpc.flat_group = 0 : i64}
// CHECK: mpc.reshape
// CHECK: mpc.sgd {{.*}}{mpc.flat_group = 0 : i64}
// CHECK: mpc.increment
// CHECK: mpc.sgd
// CHECK-NOT: mpc.flat_group
// CHECK: return
func.func @neighbours(%p: tensor<4xf32> {mpc.state = #mpc.state<parameter, "p">},
                      %q: tensor<2x3xf32> {mpc.state = #mpc.state<parameter, "q">},
                      %r: tensor<5xf32> {mpc.state = #mpc.state<parameter, "r">},
                      %vp: tensor<4xf32> {mpc.state = #mpc.state<slot, "p.v", of = "p">},
                      %vq: tensor<2x3xf32> {mpc.state = #mpc.state<slot, "q.v", of = "q">},
                      %vr: tensor<5xf32> {mpc.state = #mpc.state<slot, "r.v", of = "r">},
                      %n: tensor<i32> {mpc.state = #mpc.state<step, "n">},
                      %rate: tensor<f32> {mpc.state = #mpc.state<learning_rate, "rate">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "p">}, tensor<2x3xf32> {mpc.state = #mpc.state<parameter, "q">},
        tensor<5xf32> {mpc.state = #mpc.state<parameter, "r">}, tensor<4xf32> {mpc.state = #mpc.state<slot, "p.v">},
        tensor<2x3xf32> {mpc.state = #mpc.state<slot, "q.v">}, tensor<5xf32> {mpc.state = #mpc.state<slot, "r.v">},
        tensor<i32> {mpc.state = #mpc.state<step, "n">}) attributes {mpc.step} {
  %gp = mpc.exp %p : tensor<4xf32>
  %flat = mpc.reshape %q {shape = [6]} : (tensor<2x3xf32>) -> tensor<6xf32>
  %gq6 = mpc.exp %flat : tensor<6xf32>
  %gr = mpc.exp %r : tensor<5xf32>
  %p1, %vp1 = mpc.sgd %p, %vp, %gp, %rate, %n
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  %gq = mpc.reshape %gq6 {shape = [2, 3]} : (tensor<6xf32>) -> tensor<2x3xf32>
  %q1, %vq1 = mpc.sgd %q, %vq, %gq, %rate, %n
      : (tensor<2x3xf32>, tensor<2x3xf32>, tensor<2x3xf32>, tensor<f32>, tensor<i32>)
      -> (tensor<2x3xf32>, tensor<2x3xf32>)
  %n1 = mpc.increment %n : tensor<i32>
  %r1, %vr1 = mpc.sgd %r, %vr, %gr, %rate, %n
      : (tensor<5xf32>, tensor<5xf32>, tensor<5xf32>, tensor<f32>, tensor<i32>) -> (tensor<5xf32>, tensor<5xf32>)
  return %p1, %q1, %r1, %vp1, %vq1, %vr1, %n1
      : tensor<4xf32>, tensor<2x3xf32>, tensor<5xf32>, tensor<4xf32>, tensor<2x3xf32>, tensor<5xf32>, tensor<i32>
}

// A gradient belongs to one update of a group. What comes from outside of the step lies where its owner put it.
// CHECK-LABEL: func @tensors
// CHECK-NOT: mpc.flat_group
// CHECK: return
func.func @tensors(%p: tensor<4xf32> {mpc.state = #mpc.state<parameter, "p">},
                   %q: tensor<4xf32> {mpc.state = #mpc.state<parameter, "q">},
                   %r: tensor<4xf32> {mpc.state = #mpc.state<parameter, "r">},
                   %vp: tensor<4xf32> {mpc.state = #mpc.state<slot, "p.v", of = "p">},
                   %vq: tensor<4xf32> {mpc.state = #mpc.state<slot, "q.v", of = "q">},
                   %vr: tensor<4xf32> {mpc.state = #mpc.state<slot, "r.v", of = "r">}, %given: tensor<4xf32>,
                   %n: tensor<i32> {mpc.state = #mpc.state<step, "n">},
                   %rate: tensor<f32> {mpc.state = #mpc.state<learning_rate, "rate">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "p">}, tensor<4xf32> {mpc.state = #mpc.state<parameter, "q">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "r">}, tensor<4xf32> {mpc.state = #mpc.state<slot, "p.v">},
        tensor<4xf32> {mpc.state = #mpc.state<slot, "q.v">}, tensor<4xf32> {mpc.state = #mpc.state<slot, "r.v">})
    attributes {mpc.step} {
  %g = mpc.exp %p : tensor<4xf32>
  %p1, %vp1 = mpc.sgd %p, %vp, %g, %rate, %n
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  %q1, %vq1 = mpc.sgd %q, %vq, %g, %rate, %n
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  %r1, %vr1 = mpc.sgd %r, %vr, %given, %rate, %n
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %p1, %q1, %r1, %vp1, %vq1, %vr1
      : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>
}

// A scalar is no tensor of a buffer, and scalars are shared.
// CHECK-LABEL: func @scalars
// CHECK-NOT: mpc.flat_group
// CHECK: return
func.func @scalars(%p: tensor<f32> {mpc.state = #mpc.state<parameter, "p">},
                   %q: tensor<f32> {mpc.state = #mpc.state<parameter, "q">},
                   %r: tensor<4xf32> {mpc.state = #mpc.state<parameter, "r">},
                   %s: tensor<4xf32> {mpc.state = #mpc.state<parameter, "s">},
                   %vp: tensor<f32> {mpc.state = #mpc.state<slot, "p.v", of = "p">},
                   %vq: tensor<f32> {mpc.state = #mpc.state<slot, "q.v", of = "q">},
                   %vr: tensor<4xf32> {mpc.state = #mpc.state<slot, "r.v", of = "r">},
                   %vs: tensor<4xf32> {mpc.state = #mpc.state<slot, "s.v", of = "s">},
                   %rate: tensor<f32> {mpc.state = #mpc.state<learning_rate, "rate">},
                   %other: tensor<f32> {mpc.state = #mpc.state<learning_rate, "other">})
    -> (tensor<f32> {mpc.state = #mpc.state<parameter, "p">}, tensor<f32> {mpc.state = #mpc.state<parameter, "q">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "r">}, tensor<4xf32> {mpc.state = #mpc.state<parameter, "s">})
    attributes {mpc.step} {
  %gp = mpc.exp %p : tensor<f32>
  %gq = mpc.exp %q : tensor<f32>
  %gr = mpc.exp %r : tensor<4xf32>
  %gs = mpc.exp %s : tensor<4xf32>
  %p1, %vp1 = mpc.momentum %p, %vp, %gp, %rate
      : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %q1, %vq1 = mpc.momentum %q, %vq, %gq, %other
      : (tensor<f32>, tensor<f32>, tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
  %r1, %vr1 = mpc.momentum %r, %vr, %gr, %rate
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %s1, %vs1 = mpc.momentum %s, %vs, %gs, %other
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %p1, %q1, %r1, %s1 : tensor<f32>, tensor<f32>, tensor<4xf32>, tensor<4xf32>
}

// What a group has, no later one takes.
// CHECK-LABEL: func @groups
// CHECK: mpc.sgd {{.*}}{mpc.flat_group = 0 : i64}
// CHECK: mpc.sgd {{.*}}{mpc.flat_group = 0 : i64}
// CHECK: mpc.increment
// CHECK: mpc.sgd
// CHECK-NOT: mpc.flat_group
// CHECK: return
func.func @groups(%p: tensor<4xf32> {mpc.state = #mpc.state<parameter, "p">},
                  %q: tensor<4xf32> {mpc.state = #mpc.state<parameter, "q">},
                  %r: tensor<4xf32> {mpc.state = #mpc.state<parameter, "r">},
                  %s: tensor<4xf32> {mpc.state = #mpc.state<parameter, "s">},
                  %vp: tensor<4xf32> {mpc.state = #mpc.state<slot, "p.v", of = "p">},
                  %vq: tensor<4xf32> {mpc.state = #mpc.state<slot, "q.v", of = "q">},
                  %vr: tensor<4xf32> {mpc.state = #mpc.state<slot, "r.v", of = "r">},
                  %vs: tensor<4xf32> {mpc.state = #mpc.state<slot, "s.v", of = "s">},
                  %n: tensor<i32> {mpc.state = #mpc.state<step, "n">},
                  %rate: tensor<f32> {mpc.state = #mpc.state<learning_rate, "rate">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "p">}, tensor<4xf32> {mpc.state = #mpc.state<parameter, "q">},
        tensor<4xf32> {mpc.state = #mpc.state<parameter, "r">}, tensor<4xf32> {mpc.state = #mpc.state<parameter, "s">},
        tensor<i32> {mpc.state = #mpc.state<step, "n">}) attributes {mpc.step} {
  %gp = mpc.exp %p : tensor<4xf32>
  %gq = mpc.exp %q : tensor<4xf32>
  %gs = mpc.exp %s : tensor<4xf32>
  %p1, %vp1 = mpc.sgd %p, %vp, %gp, %rate, %n
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  %q1, %vq1 = mpc.sgd %q, %vq, %gq, %rate, %n
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  %n1 = mpc.increment %n : tensor<i32>
  %r1, %vr1 = mpc.sgd %r, %vr, %gp, %rate, %n
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  %s1, %vs1 = mpc.sgd %s, %vs, %gs, %rate, %n
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %p1, %q1, %r1, %s1, %n1 : tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<i32>
}

// Gradients from outside of the step lie where their owner put them, all of them.
// CHECK-LABEL: func @given
// CHECK-NOT: mpc.flat_group
// CHECK: return
func.func @given(%p: tensor<4xf32> {mpc.state = #mpc.state<parameter, "p">},
                 %q: tensor<4xf32> {mpc.state = #mpc.state<parameter, "q">},
                 %vp: tensor<4xf32> {mpc.state = #mpc.state<slot, "p.v", of = "p">},
                 %vq: tensor<4xf32> {mpc.state = #mpc.state<slot, "q.v", of = "q">}, %gp: tensor<4xf32>,
                 %gq: tensor<4xf32>, %rate: tensor<f32> {mpc.state = #mpc.state<learning_rate, "rate">})
    -> (tensor<4xf32> {mpc.state = #mpc.state<parameter, "p">}, tensor<4xf32> {mpc.state = #mpc.state<parameter, "q">})
    attributes {mpc.step} {
  %p1, %vp1 = mpc.momentum %p, %vp, %gp, %rate
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  %q1, %vq1 = mpc.momentum %q, %vq, %gq, %rate
      : (tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<f32>) -> (tensor<4xf32>, tensor<4xf32>)
  return %p1, %q1 : tensor<4xf32>, tensor<4xf32>
}
