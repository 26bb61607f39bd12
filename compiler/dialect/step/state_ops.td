// Operations that update state: operand i becomes result i where the optional predicate holds.
#ifndef MPC_STATE_OPS_TD
#define MPC_STATE_OPS_TD

include "compiler/dialect/step/step_ops.td"

// The first operands are state in the order of the results. `predicate`, the last operand, is written by
// flatten-guards: where it is false every result equals its state operand, bit for bit.
class Mpc_UpdateOp<string mnemonic, list<Trait> traits = []>
    : Mpc_Op<mnemonic, "Exempt", [Pure, Mpc_StateUpdateTrait, Mpc_EndsScale] # traits>;

def Mpc_IncrementOp : Mpc_UpdateOp<"increment"> {
  let summary = "Counts: counter + by.";
  let description = [{
    For step and RNG counters. `by` is 1 where it is not given.

    ```mlir
    %step = mpc.constant {value = dense<7> : tensor<i32>} : () -> tensor<i32>
    %next = mpc.increment %step : tensor<i32>
    // %next = 8
    ```
  }];
  let arguments = (ins Mpc_I32Tensor:$counter, Optional<Mpc_BoolTensor>:$predicate, Mpc_Int<"1">:$by);
  let results = (outs Mpc_I32Tensor:$updated);
}

def Mpc_AccumulateGradientOp : Mpc_UpdateOp<"accumulate_gradient", [Mpc_GradientReaderInterface]> {
  let summary = "Adds one micro-step's gradient to a level of the step's sum.";
  let description = [{
    Micro-steps are added in a balanced binary tree: ((0 + 1) + (2 + 3)) + ... The sum does not depend on how many of them
    a process runs. The operations of the levels 0, 1, ... form a chain. Level 0 reads the gradient, and each level reads
    the result of the level below. An operation does one of three things in micro-step j.

    * It keeps its accumulator where a bit of j below `level` is zero, unless j is the first or the last micro-step.
    * Else it adds what it reads to the accumulator, a' = a + g, where bit `level` of j is one.
    * Else what it reads replaces the accumulator, a' = g.

    Level 0 divides the gradient by `count` first, so that a sum of finite gradients is finite. In the last micro-step the
    result of the highest level is the mean over all micro-steps.

    ```mlir
    %sum = mpc.constant {value = dense<[1.0, 1.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %dw = mpc.constant {value = dense<[4.0, 8.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %micro_step = mpc.constant {value = dense<1> : tensor<i32>} : () -> tensor<i32>
    %new_sum = mpc.accumulate_gradient %sum, %dw, %micro_step {count = 4}
        : (tensor<2xf32>, tensor<2xf32>, tensor<i32>) -> tensor<2xf32>
    // %new_sum = [2.0, 3.0]
    ```
  }];
  let arguments = (ins Mpc_F32Tensor:$accumulator, Mpc_FloatTensor:$gradient, Mpc_I32Tensor:$micro_step,
                       Optional<Mpc_BoolTensor>:$predicate, I64Attr:$count, Mpc_Int<"0">:$level);
  let results = (outs Mpc_F32Tensor:$updated);
}

def Mpc_NextMicroStepOp : Mpc_UpdateOp<"next_micro_step"> {
  let summary = "(micro_step + 1) mod count.";
  let description = [{
    The place inside a step of `count` accumulated micro-steps.

    ```mlir
    %micro_step = mpc.constant {value = dense<3> : tensor<i32>} : () -> tensor<i32>
    %next = mpc.next_micro_step %micro_step {count = 4} : tensor<i32>
    // %next = 0
    ```
  }];
  let arguments = (ins Mpc_I32Tensor:$micro_step, Optional<Mpc_BoolTensor>:$predicate, I64Attr:$count);
  let results = (outs Mpc_I32Tensor:$updated);
}

def Mpc_BatchNormRunningUpdateOp : Mpc_UpdateOp<"batch_norm_running_update"> {
  let summary = "Moves running statistics towards those of the batch.";
  let description = [{
    r' = momentum * r + (1 - momentum) * batch: momentum is the weight of the *old* statistic (MindSpore's meaning). The
    running variance takes the unbiased variance, batch * count / (count - 1), of `count` elements a channel. A `count`
    of 0 says that variances are multiplied already by (1 - momentum) * count / (count - 1) of their own batch.

    With `batches` above 1 the statistics of a batch have a first axis of that many batches. They move the running
    statistics one after the other.

    ```mlir
    %running_mean = mpc.constant {value = dense<[0.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %running_variance = mpc.constant {value = dense<[1.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %mean = mpc.constant {value = dense<[10.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %variance = mpc.constant {value = dense<[3.0]> : tensor<1xf32>} : () -> tensor<1xf32>
    %new_mean, %new_variance = mpc.batch_norm_running_update %running_mean, %running_variance, %mean, %variance
        {momentum = 0.5 : f32, count = 4 : i64}
        : (tensor<1xf32>, tensor<1xf32>, tensor<1xf32>, tensor<1xf32>) -> (tensor<1xf32>, tensor<1xf32>)
    // %new_mean = [5.0]
    // %new_variance = [2.5]
    ```
  }];
  let arguments = (ins Mpc_F32Tensor:$running_mean, Mpc_F32Tensor:$running_variance, Mpc_F32Tensor:$mean,
                       Mpc_F32Tensor:$variance, Optional<Mpc_BoolTensor>:$predicate, Mpc_Int<"1">:$batches,
                       Mpc_Momentum:$momentum, I64Attr:$count);
  let results = (outs Mpc_F32Tensor:$new_mean, Mpc_F32Tensor:$new_variance);
}

#endif
