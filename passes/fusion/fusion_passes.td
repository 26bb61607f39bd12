// Passes that let one kernel compute several operations.
#ifndef MPC_FUSION_PASSES_TD
#define MPC_FUSION_PASSES_TD

include "passes/pass_base.td"

def FusionPass : MpcPass<"mpc-fusion", "::mlir::func::FuncOp"> {
  let summary = "Puts operations that one generated kernel computes together into mpc.fusion";
  let description = [{
    Runs after layout, casts and shadows, which have settled what is read and written. Regions grow from single
    operations. Operations are neighbours if one hands a value to the other, or both read a whole tensor. The pair of
    neighbours that saves most is merged, as long as any saves something. Two may be merged under these conditions:

    * Both are computed element by element, maybe after reductions, over one space of rows and columns (FusionPlan).
    * No path leads out of the region and back through another operation.
    * No element that takes many instructions (exp, gelu, dropout) is computed in two phases, unless it is stored
      anyway.
    * Operations smaller than the region come after a reduction of it.
    * The loads, stores and launches that are saved outweigh the loads that later sweeps repeat.
    * Where operations of the forward pass would wait for backward ones, what they read is no larger than what they
      make.

    Updates of state, unscale, clipping, constants and random values stay outside, and so does every operation of a
    library. Views join regions where both sides do; they move nothing.

    An operation that no other joins keeps its own kernel, with two exceptions on the CPU. One without a kernel written
    by hand (softmax, layer_norm, batch_norm_train, ...) is a region of its own. So is one whose region is expected to
    be faster (isWorthAlone). So that its rows are contiguous, a softmax along another axis than the last is put between
    transposes. With max-operations=1 only operations without a kernel become regions. No region reads and writes more
    than max-tensors.

    Checks and norms of all gradients (mpc.all_finite, mpc.global_norm) stay outside. But a gradient that a region
    produces may be checked (mpc.check_finite) and squared (mpc.sum_of_squares) there. That is done where the bytes that
    are not read again outweigh the launch that combines the partial values. The flag or sum takes the gradient's place
    among the gradients.

    Operations keep their order as far as regions allow; an update of state stays behind the readers of the old state.
    The region has the Cell path that its operations share, and `mpc.fusion_choice` says how many bytes it saves and why
    each neighbour was left out.

    ```mlir
    // before
    %s = mpc.add %x, %r : tensor<32x84xf32>
    %y = mpc.relu %s : tensor<32x84xf32>
    // after
    %y = mpc.fusion(%x, %r) {
    ^bb0(%a: tensor<32x84xf32>, %b: tensor<32x84xf32>):
      %s = mpc.add %a, %b : tensor<32x84xf32>
      %t = mpc.relu %s : tensor<32x84xf32>
      mpc.yield %t : tensor<32x84xf32>
    } {mpc.fusion_choice = {bytes_saved = 21504 : i64, left_out = []}} : ...
    ```
  }];
  let options = [
    Option<"maxOperations", "max-operations", "unsigned", "32",
           "Operations of one region; 1: regions only of operations that have no kernel written by hand">,
    Option<"maxTensors", "max-tensors", "unsigned", "256",
           "Tensors that one region reads and writes; a kernel of CUDA takes 4 KiB of parameters">];
}

def FoldActivationPass : MpcPass<"mpc-fold-activation", "::mlir::func::FuncOp"> {
  let summary = "Gives gelu or relu to the product that it is applied to";
  let description = [{
    A matmul or conv2d whose result only gelu reads takes gelu as its `activation`; reshapes may lie between them. The
    library computes gelu before it stores the sums. In training this applies to frozen parts alone: elsewhere gelu's
    derivative reads the product, too. The pass runs after autodiff, layout and cast cleanup, and before fusion, which
    would make a region of gelu. Product and gelu have one element type, to which the product is no longer rounded; a
    cast between them keeps them apart. Convolutions in bf16 are left alone, since they would take longer. On a GPU gelu
    stays. For cuBLASLt's gelu neither form nor error is stated. A product of mpc's own takes longer than the library's
    and a region.

    On a GPU relu is given to the product instead, in training, too: its derivative reads relu's result. Max pooling may
    lie between them. This saves the launch of a small relu. It is done where the product's result is not larger than
    what moves in the time of a launch. Relu commutes with rounding, so that no bit changes.

    ```mlir
    // before
    %z = mpc.matmul %x, %w, %b : (tensor<32x84xbf16>, tensor<84x336xbf16>, tensor<336xbf16>) -> tensor<32x336xbf16>
    %y = mpc.gelu %z {approximate = tanh} : tensor<32x336xbf16>
    // after
    %y = mpc.matmul %x, %w, %b {activation = gelu_tanh}
        : (tensor<32x84xbf16>, tensor<84x336xbf16>, tensor<336xbf16>) -> tensor<32x336xbf16>
    ```
  }];
}

def ConvStatisticsPass : MpcPass<"mpc-conv-statistics", "::mlir::func::FuncOp"> {
  let summary = "Takes the statistics of batch normalisation from the convolution in front of it";
  let description = [{
    A convolution whose result `mpc.batch_norm_train` normalises becomes `mpc.conv2d_statistics`, and the normalisation
    `mpc.batch_norm_apply` by these statistics: nothing reads the whole result for them. The derivative stays what it
    was. A convolution is taken where a library computes the statistics with it. Operands and result must be f16 and
    channels-last, with one group and neither bias nor activation. Both sides need at least 32 channels and multiples of
    8. The variance is a difference of sums in f32, so its relative error grows with 1 + mean^2 / variance. The pass is
    in the pipelines only where that is allowed.

    ```mlir
    // before
    %y = mpc.conv2d %x, %w {data_format = NHWC} : ...
    %n, %mean, %variance, %inv_std = mpc.batch_norm_train %y, %gamma, %beta {data_format = NHWC} : ...
    // after
    %y, %mean, %variance, %inv_std = mpc.conv2d_statistics %x, %w {data_format = NHWC} : ...
    %n = mpc.batch_norm_apply %y, %gamma, %beta, %mean, %inv_std {data_format = NHWC} : ...
    ```
  }];
}

#endif
