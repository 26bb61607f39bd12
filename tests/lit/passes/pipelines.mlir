// RUN: mpc-opt %s --mpc-step-pipeline="stage=traced" > %t.traced && mpc-opt %s | diff %t.traced -
// RUN: mpc-opt %s --mpc-step-pipeline="stage=amp level=O2" | FileCheck %s --check-prefix=AMP
// RUN: mpc-opt %s --mpc-step-pipeline="stage=grad level=O2 loss-scale=dynamic" | FileCheck %s --check-prefix=GRAD
// RUN: mpc-opt %s --mpc-step-pipeline="level=O2 loss-scale=dynamic" | FileCheck %s --check-prefix=FINAL
// RUN: mpc-opt %s --mpc-step-pipeline="stage=fused level=O2 loss-scale=dynamic" | mpc-opt --mpc-recompute > %t.halves
// RUN: mpc-opt %s --mpc-step-pipeline="level=O2 loss-scale=dynamic" | diff %t.halves -
// RUN: mpc-opt %s --mpc-step-pipeline="level=O0" | FileCheck %s --check-prefix=O0
// RUN: mpc-opt %s --mpc-step-pipeline="level=O2 loss-scale=dynamic" > %t.once && mpc-opt %t.once --mpc-flatten-guards --mpc-layout --mpc-cast-cleanup --mpc-fold-gradient-scaling | diff %t.once -
// RUN: mpc-opt %s --mpc-step-pipeline="level=O2 loss-scale=dynamic fusion=true" | FileCheck %s --check-prefixes=FINAL,FUSED
// RUN: mpc-opt %s --mpc-step-pipeline="level=O2 loss-scale=dynamic fusion=true" > %t.fused && mpc-opt %t.fused --mpc-flatten-guards --mpc-layout --mpc-cast-cleanup --mpc-fold-gradient-scaling --mpc-shadows --mpc-group-updates --mpc-renormalize --mpc-relu-mask --mpc-fusion | diff %t.fused -
// RUN: mpc-opt %s --mpc-step-pipeline="level=O2 loss-scale=dynamic fusion=false" | FileCheck %s --check-prefix=ALONE
// RUN: mpc-opt %s --mpc-step-pipeline="level=O2 loss-scale=dynamic device=cuda fusion=false" | FileCheck %s --check-prefix=KERNELS
// RUN: mpc-opt %s --mpc-step-pipeline="level=O2 loss-scale=dynamic device=cuda" | FileCheck %s --check-prefix=FUSED
// RUN: not mpc-opt %s --mpc-step-pipeline="fusion=true device=tpu" 2>&1 | FileCheck %s --check-prefix=DEVICE
// RUN: not mpc-opt %s --mpc-step-pipeline="stage=last" 2>&1 | FileCheck %s --check-prefix=STAGE
// RUN: not mpc-opt %s --mpc-step-pipeline="level=O4" 2>&1 | FileCheck %s --check-prefix=LEVEL
// RUN: not mpc-opt %s --mpc-step-pipeline="level=O1 master-weights=false" 2>&1 | FileCheck %s --check-prefix=SOLVED
// RUN: not mpc-opt %s --mpc-step-pipeline="level=auto master-weights=false" 2>&1 | FileCheck %s --check-prefix=AUTO
// RUN: not mpc-opt %s --mpc-step-pipeline="master-weights=false" 2>&1 | FileCheck %s --check-prefix=FULL
// RUN: not mpc-opt %s --pass-pipeline="builtin.module(mpc-step-pipeline{dtype=bf16})" 2>&1 | FileCheck %s --check-prefix=DTYPE
// RUN: mpc-opt %s --mpc-step-pipeline="level=O3 dtype=bf16 master-weights=false" | FileCheck %s --check-prefix=STORED
// RUN: not mpc-opt %s --mpc-step-pipeline="level=O2 pad-classes=true" 2>&1 | FileCheck %s --check-prefix=PADDED
// RUN: not mpc-opt %s --mpc-step-pipeline="level=O2 pad-classes=true device=cpu" 2>&1 | FileCheck %s --check-prefix=PADDED
// RUN: mpc-opt %s --mpc-step-pipeline="level=O2 pad-classes=false" | FileCheck %s --check-prefix=AMPONLY
// RUN: mpc-opt %s --mpc-step-pipeline="level=O2 pad-classes=true device=cuda" 2>&1 | FileCheck %s --check-prefix=PADDED8
// RUN: not mpc-opt %s --mpc-step-pipeline="level=O2 processes=2 bucket-mib=0" 2>&1 | FileCheck %s --check-prefix=BUCKETS
// RUN: not mpc-opt %s --mpc-step-pipeline="recompute=1 stage=fused" 2>&1 | FileCheck %s --check-prefix=RECOMPUTE
// RUN: not mpc-opt %s --mpc-step-pipeline="fusion=false stage=grad" 2>&1 | FileCheck %s --check-prefix=UNFUSED
// RUN: not mpc-opt %s --mpc-step-pipeline="level=O2 loss-scale=dynamic stage=amp" 2>&1 | FileCheck %s --check-prefix=SCALE
// RUN: not mpc-opt %s --mpc-step-pipeline="level=O2 stage=traced" 2>&1 | FileCheck %s --check-prefix=TRACED

// BUCKETS: error: bucket-mib and stage=final contradict each other: passes behind that stage read it; leave it out, or use stage=scheduled{{$}}
// RECOMPUTE: error: recompute and stage=fused contradict each other: {{.*}}use stage=final or a later one
// UNFUSED: error: fusion and stage=grad contradict each other: {{.*}}use stage=fused or a later one
// SCALE: error: loss-scale and stage=amp contradict each other: {{.*}}use stage=grad or a later one
// TRACED: error: level and stage=traced contradict each other: {{.*}}use stage=amp or a later one
// PADDED: error: pad-classes=true and target "cpu" contradict each other: only target "cuda" has this option; leave it out, or use device=cuda
// PADDED8: 3 classes are padded to 8 in {{[0-9]+}} products
// AMPONLY: func.func @train_step
// SOLVED: level O1 with master-weights = false: O1 never changes stored parameters, they are f32; leave it out, or choose O2 or O3
// AUTO: level auto with master-weights = false: auto never changes stored parameters
// FULL: level O0 with master-weights = false: O0 is full f32 and has no low parameters; leave it out, or choose O2 or O3
// DTYPE: level O0 is full f32 and takes no dtype bf16; choose O1, O2, O3 or auto
// STORED: func.func @train_step(%{{[a-z0-9]+}}: tensor<4x3xbf16> {mpc.state = #mpc.state<parameter
// STAGE: Cannot find option named 'last'
// LEVEL: error: unknown level 'O4'; valid levels are O0, O1, O2, O3 and auto
// DEVICE: error: unknown target 'tpu'; choose cpu or cuda

#network = #mpc.scope<"net/fc", network>
#loss = #mpc.scope<"loss">

// AMP: func.func private @loss_fn
// AMP: mpc.matmul {{.*}} -> tensor<2x3xf16>
// AMP: func.func @train_step
// AMP: mpc.value_and_grad @loss_fn

// The widening of the weight's gradient is read inside the check and the unscale.
// GRAD: func.func @train_step
// GRAD-NOT: mpc.value_and_grad
// GRAD: %[[DW:.*]] = mpc.matmul {{.*}} -> tensor<4x3xf16>
// GRAD-NOT: mpc.cast %[[DW]]
// GRAD: mpc.all_finite %{{.*}}, %{{.*}}, %[[DW]] :
// GRAD: mpc.guarded_update
// GRAD: mpc.unscale %[[DW]],
// GRAD: mpc.update_loss_scale

// FINAL: func.func @train_step
// FINAL-NOT: mpc.guarded_update
// FUSED: mpc.matmul
// FUSED: mpc.fusion
// FUSED:   mpc.softmax_cross_entropy
// FUSED:   mpc.softmax_cross_entropy_grad
// FUSED:   mpc.yield
// FUSED: mpc.scope = #mpc.scope<"loss">
// FINAL: mpc.all_finite
// FINAL-NOT: mpc.unscale
// FINAL: mpc.momentum {{.*}}unscale = true

// A CUDA device has a kernel for each of these operations, so nothing is generated without fusion.
// KERNELS-NOT: mpc.fusion(
// KERNELS: mpc.softmax_cross_entropy %
// KERNELS: mpc.softmax_cross_entropy_grad
// KERNELS-NOT: mpc.fusion(

// Without fusion a region holds one operation, where the CPU has nothing but generated code.
// ALONE: mpc.fusion(
// ALONE-NEXT: ^bb0
// ALONE-NEXT: mpc.softmax_cross_entropy %
// ALONE-NEXT: mpc.yield
// ALONE: mpc.fusion(
// ALONE-NEXT: ^bb0
// ALONE-NEXT: mpc.softmax_cross_entropy_grad
// ALONE-NEXT: mpc.yield
// ALONE-NOT: mpc.fusion(

// O0: func.func @train_step
// O0-NOT: mpc.cast
// O0: mpc.momentum
// O0-NOT: mpc.update_loss_scale
// O0: return
func.func private @loss_fn(%w: tensor<4x3xf32>, %x: tensor<2x4xf32>, %labels: tensor<2xi32>) -> tensor<f32> {
  %y = mpc.matmul %x, %w in #network : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
  %loss, %lse = mpc.softmax_cross_entropy %y, %labels in #loss
      : (tensor<2x3xf32>, tensor<2xi32>) -> (tensor<f32>, tensor<2xf32>)
  return %loss : tensor<f32>
}

func.func @train_step(
    %w: tensor<4x3xf32> {mpc.state = #mpc.state<parameter, "w">},
    %v: tensor<4x3xf32> {mpc.state = #mpc.state<slot, "w.velocity">},
    %lr: tensor<f32> {mpc.state = #mpc.state<learning_rate, "learning_rate">},
    %x: tensor<2x4xf32> {mpc.state = #mpc.state<input, "x">},
    %labels: tensor<2xi32> {mpc.state = #mpc.state<input, "labels">})
    -> (tensor<f32> {mpc.state = #mpc.state<record, "loss">},
        tensor<4x3xf32> {mpc.state = #mpc.state<parameter, "w">},
        tensor<4x3xf32> {mpc.state = #mpc.state<slot, "w.velocity">}) attributes {mpc.step} {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss, %dw = mpc.value_and_grad @loss_fn(%w, %x, %labels) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4x3xf32>, tensor<2x4xf32>, tensor<2xi32>, tensor<f32>) -> (tensor<f32>, tensor<4x3xf32>)
  %w2, %v2 = mpc.momentum %w, %v, %dw, %lr
      : (tensor<4x3xf32>, tensor<4x3xf32>, tensor<4x3xf32>, tensor<f32>) -> (tensor<4x3xf32>, tensor<4x3xf32>)
  return %loss, %w2, %v2 : tensor<f32>, tensor<4x3xf32>, tensor<4x3xf32>
}
