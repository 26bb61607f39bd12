// Operations by which processes that train together exchange values.
#ifndef MPC_COLLECTIVE_OPS_TD
#define MPC_COLLECTIVE_OPS_TD

include "compiler/dialect/mpc_base.td"
include "mlir/Interfaces/ViewLikeInterface.td"

// What the processes that train together compute of the values of each other. Every process runs the same collective
// operations in the same order: no pass may place one where a condition decides. A device runs them in the order of the
// block. With one process each is a copy of its operand.
def Mpc_AllReduceOp : Mpc_DifferentiableOp<"all_reduce", "Exempt", [Mpc_KeepsScale, Mpc_IsCollective]> {
  let summary = "The sum of the operand over all processes.";
  let description = [{
    `processes` is a power of two. Ranks are added in a balanced binary tree, ((0 + 1) + (2 + 3)) + ..., and every
    addition rounds to the type of the operand. All processes have the same bits. The derivative is the sum of the
    cotangents of all processes.

    ```mlir
    %sum = mpc.all_reduce %gradient {processes = 2} : tensor<4x4xf32>
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_Int<"1">:$processes);
  let results = (outs Mpc_FloatTensor:$y);
  let alike = 1;
  let gradientOp = "AllReduceOp";
  let gradientReads = "getProcesses()";
  let hasVerifier = 1;
}

def Mpc_AllReduceMaxOp : Mpc_Op<"all_reduce_max", "Exempt", [Pure, Mpc_IsCollective, Mpc_IsBesideNetwork]> {
  let summary = "The largest of the operands of all processes, element by element.";
  let description = [{
    For counts and codes: what a check found, whether a process is to stop. `processes` is a power of two.

    ```mlir
    %code = mpc.constant {value = dense<[3, -1]> : tensor<2xi32>} : () -> tensor<2xi32>
    %largest = mpc.all_reduce_max %code : tensor<2xi32>
    // %largest = [3, -1]
    ```
  }];
  let arguments = (ins Mpc_I32Tensor:$x, Mpc_Int<"1">:$processes);
  let results = (outs Mpc_I32Tensor:$y);
  let alike = 1;
  let hasVerifier = 1;
}

def Mpc_AllGatherOp : Mpc_DifferentiableOp<"all_gather", "Exempt", [Mpc_KeepsScale, Mpc_IsCollective]> {
  let summary = "The operands of all processes, in the order of ranks.";
  let description = [{
    The result has a first axis of `processes`, then the axes of the operand. The derivative is the part of this process
    in the sum of the cotangents of all processes.

    ```mlir
    %mean = mpc.constant {value = dense<[3.0, 5.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %means = mpc.all_gather %mean : (tensor<2xf32>) -> tensor<1x2xf32>
    // %means = [[3.0, 5.0]]
    ```
  }];
  let arguments = (ins Mpc_Tensor:$x, Mpc_Int<"1">:$processes);
  let results = (outs Mpc_Tensor:$y);
  let hasVerifier = 1;
}

def Mpc_ProcessRankOp : Mpc_Op<"process_rank", "Exempt", [Pure, Mpc_IsCollective, Mpc_IsBesideNetwork]> {
  let summary = "The rank of the process that runs the step, from 0 to processes - 1.";
  let description = [{
    The only value by which the steps of the processes differ, beside their inputs.

    ```mlir
    %rank = mpc.process_rank : () -> tensor<i32>
    // %rank = 0
    ```
  }];
  let arguments = (ins Mpc_Int<"1">:$processes);
  let results = (outs Mpc_I32Tensor:$rank);
  let hasVerifier = 1;
}

// A sum that other operations run beside. No pass merges, copies or drops either part: both have effects.
class Mpc_AllReducePart<string mnemonic, list<Trait> traits = []>
    : Op<Mpc_Dialect, mnemonic, [
        MemoryEffects<[MemRead, MemWrite]>, AllTypesMatch<["x", "y"]>, Mpc_KeepsScale] # traits> {
  let results = (outs Mpc_FloatTensor:$y);
  let hasVerifier = 1;
}

def Mpc_AllReduceStartOp : Mpc_AllReducePart<"all_reduce_start"> {
  let summary = "Begins to sum the operand over all processes.";
  let description = [{
    The result is written, and the operand read, until the one `mpc.all_reduce_wait` of the result. It stands behind it in
    the same block, and alone reads the result. Nothing may write over the operand before. `processes` is that of
    `mpc.all_reduce`: a Program runs in one, where the kernel of that operation copies the operand. The front end traces
    no such operation, and autodiff has no derivative of it.

    ```mlir
    %gradient = mpc.constant {value = dense<[1.0, 2.0]> : tensor<2xf32>} : () -> tensor<2xf32>
    %started = mpc.all_reduce_start %gradient : tensor<2xf32>
    %sum = mpc.all_reduce_wait %started : tensor<2xf32>
    // %sum = [1.0, 2.0]
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$x, Mpc_Int<"1">:$processes);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

def Mpc_AllReduceWaitOp
    : Mpc_AllReducePart<"all_reduce_wait", [DeclareOpInterfaceMethods<ViewLikeOpInterface>]> {
  let summary = "Waits for the sum that an mpc.all_reduce_start has begun.";
  let description = [{
    The result is a view of what `mpc.all_reduce_start` writes: only what comes after the wait may read that.

    ```mlir
    %started = mpc.all_reduce_start %gradient : tensor<4x4xf32>
    %sum = mpc.all_reduce_wait %started : tensor<4x4xf32>
    ```
  }];
  let arguments = (ins Mpc_FloatTensor:$x);
  let assemblyFormat = "$x attr-dict `:` type($x)";
}

#endif
