// RUN: mpc-opt %s --mpc-loss-scale="mode=dynamic" --verify-diagnostics --split-input-file
// RUN: not mpc-opt %s --mpc-loss-scale="mode=always" --split-input-file 2>&1 | FileCheck %s
// RUN: not mpc-opt %s --mpc-loss-scale="mode=dynamic num-losses=0" --split-input-file 2>&1 | FileCheck %s --check-prefix=LOSSES
// RUN: not mpc-opt %s --mpc-loss-scale="accumulation-steps=0" --split-input-file 2>&1 | FileCheck %s --check-prefix=STEPS
// RUN: not mpc-opt %s --mpc-loss-scale="accumulation-steps=1048577" --split-input-file 2>&1 | FileCheck %s --check-prefix=MOST
// RUN: not mpc-opt %S/Inputs/three_losses.mlir --mpc-loss-scale="mode=dynamic num-losses=2" 2>&1 | FileCheck %s --check-prefix=PLACE
// RUN: not mpc-opt %S/Inputs/traced_scaler.mlir --mpc-loss-scale="accumulation-steps=2" 2>&1 | FileCheck %s --check-prefix=TRACED
// RUN: not mpc-opt %s --mpc-loss-scale="processes=3" --split-input-file 2>&1 | FileCheck %s --check-prefix=PROCESSES
// RUN: not mpc-opt %s --mpc-loss-scale="processes=2 accumulation-steps=3" --split-input-file 2>&1 | FileCheck %s --check-prefix=BOTH
// RUN: not mpc-opt %s --mpc-loss-scale="accumulation-steps=2 last-micro-step=false" --split-input-file 2>&1 | FileCheck %s --check-prefix=LAST
// RUN: not mpc-opt %S/Inputs/traced_scaler.mlir --mpc-loss-scale="processes=2 accumulation-steps=2" 2>&1 | FileCheck %s --check-prefix=TRACED
// RUN: not mpc-opt %S/Inputs/state_of_rows.mlir --mpc-loss-scale="processes=2" 2>&1 | FileCheck %s --check-prefix=ROWS
// RUN: not mpc-opt %s --mpc-loss-scale="communication-dtype=f8" --split-input-file 2>&1 | FileCheck %s --check-prefix=DTYPE
// RUN: not mpc-opt %s --mpc-loss-scale="communication-dtype=f16 accumulation-steps=3" --split-input-file 2>&1 | FileCheck %s --check-prefix=LOW
// RUN: not mpc-opt %S/Inputs/three_losses.mlir --mpc-loss-scale="processes=2 communication-dtype=f16" 2>&1 | FileCheck %s --check-prefix=CHECKS

// PROCESSES: error: processes must be a power of two, got 3
// BOTH: error: accumulation-steps must be a power of two where processes is 2, got 3
// LAST: error: last-micro-step=false is for several processes that accumulate; processes is 1, and accumulation-steps is 2
// DTYPE: error: unknown communication-dtype 'f8'; choose f32, f16 or bf16
// LOW: error: accumulation-steps must be a power of two where communication-dtype is f16, got 3
// CHECKS: error: '{{.*}}' has no loss scale: an f16 sum of its gradients may overflow, and no check would see it; communication-dtype may be bf16 or f32
// ROWS: error: 'seen' would move by the rows of one of 2 processes alone; state that the update does not compute may not depend on rows
// LOSSES: error: num-losses must be at least 1 and at most 1024, got 0
// STEPS: error: accumulation-steps must be at least 1 and at most 1048576, got 0
// MOST: error: accumulation-steps must be at least 1 and at most 1048576, got 1048577
// PLACE: error: the loss at place 2 has no scaler: num_losses is 2
// TRACED: error: 'train_step' has a scaler of its own: it cannot be run in accumulated micro-steps
// CHECK: error: unknown loss-scale mode 'always'; choose none, static or dynamic

func.func private @f(tensor<4xf32>) -> tensor<f32>

func.func @own_seed(%w: tensor<4xf32>, %sens: tensor<f32>) -> tensor<4xf32> {
  // expected-remark @below {{the step has a seed of its own: it is not wrapped in loss scaling}}
  %loss, %dw = mpc.value_and_grad @f(%w) seed(%sens) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return %dw : tensor<4xf32>
}

// -----

func.func private @f(tensor<4xf32>) -> tensor<f32>

func.func @no_such_scaler(%w: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %one = mpc.constant {value = dense<1.0> : tensor<f32>} : () -> tensor<f32>
  %loss0, %dw0 = mpc.value_and_grad @f(%w) seed(%one) {wrt = array<i64: 0>}
      : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  // expected-error @below {{loss_id 1 has no scaler: num_losses is 1}}
  %loss1, %dw1 = mpc.value_and_grad @f(%w) seed(%one) {wrt = array<i64: 0>, loss_id = 1 : i64}
      : (tensor<4xf32>, tensor<f32>) -> (tensor<f32>, tensor<4xf32>)
  return %dw0, %dw1 : tensor<4xf32>, tensor<4xf32>
}

// RUN: not mpc-opt %s --mpc-loss-scale="mode=dynamic num-losses=4611686018427387904" --split-input-file 2>&1 | FileCheck %s --check-prefix=MANY
// RUN: not mpc-opt %s --mpc-loss-scale="mode=dynamic processes=4611686018427387904 accumulation-steps=4" --split-input-file 2>&1 | FileCheck %s --check-prefix=CROWD
// MANY: error: num-losses must be at least 1 and at most 1024, got 4611686018427387904
// CROWD: error: processes must be at most 1048576, got 4611686018427387904
