// Every graph-to-graph rewrite of the compiler.
#ifndef MPC_PASSES_TD
#define MPC_PASSES_TD

include "mlir/Pass/PassBase.td"

def AmpPass : Pass<"mpc-amp", "::mlir::ModuleOp"> {
  let summary = "Assigns f32 or a low type to every operation of a network by level, and inserts the casts";
  let description = [{
    Levels O0, O2 and O3 pin each operation; `Cell::ToFloat` pins (`mpc.scope`'s `pin`) and the user's own casts beat the
    level. Norms are matched by class and at O2 read and write the low type directly where every user of y takes it (the
    norm fold). Losses are f32 at every level, and so is the operation that produces the value that `value_and_grad`
    differentiates. There is one cast for each (value, type). Every operation it decides receives `mpc.amp_reason`.

    An operation belongs to a network if its `mpc.scope` says so; in a module where no operation has a scope, every
    operation outside training steps (functions with `mpc.value_and_grad`) does. A loss written by hand inside the
    network is f32 back to the last matrix work or norm, and so is what the network does to labels. Function signatures
    keep their types.

    ```mlir
    // before, level=O2
    %y = mpc.matmul %x, %w : (tensor<2x4xf32>, tensor<4x3xf32>) -> tensor<2x3xf32>
    // after
    %0 = mpc.cast %x : (tensor<2x4xf32>) -> tensor<2x4xf16>
    %1 = mpc.cast %w : (tensor<4x3xf32>) -> tensor<4x3xf16>
    %y = mpc.matmul %0, %1 {mpc.amp_reason = "level O2"} : (tensor<2x4xf16>, tensor<4x3xf16>) -> tensor<2x3xf16>
    ```
  }];
  let options = [
    Option<"level", "level", "std::string", "\"O0\"", "O0, O2 or O3 (O1 and auto: not in this version)">,
    Option<"dtype", "dtype", "std::string", "\"f16\"", "The low type: f16 or bf16">,
    Option<"keepBatchNormFp32", "keep-batchnorm-fp32", "std::string", "\"\"",
           "true or false; empty: the level's default (O2 true, O3 false)">];
  let dependentDialects = ["::mpc::MpcDialect"];
}

def LossScalePass : Pass<"mpc-loss-scale", "::mlir::ModuleOp"> {
  let summary = "Wraps a training step in loss scale, finite check, guarded update and scale update";
  let description = [{
    Works on functions with one `mpc.value_and_grad` whose seed is the constant 1: the seed becomes the scale, the state
    updates move into `mpc.guarded_update` on unscaled gradients, and the scaler's fields become state arguments and
    results (`mpc.role = "scaler"`, `mpc.name = "scaler.scale"`, `good`, `bad`, `skipped`, `consecutive`, `growth`,
    `backoff`, `minimum`, `maximum`, `interval`, `bad_limit`, `dynamic`, `skip`). Three results of role `record` follow:
    `finite`, `first_bad`, and `loss_scale`, the scale that this step used. State that no update operation computes is
    chosen by `mpc.select`; arithmetic of the user on gradients sees them unscaled. A step with a seed of its own is left
    as it is, with a remark; several losses are an error.
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"none\"", "none, static or dynamic">,
    Option<"skip", "skip", "bool", "true", "Skip the update of a step that is not finite">,
    Option<"unscale", "unscale", "bool", "true",
           "Divide gradients by the scale; false where the optimizer's own loss_scale does">];
  let dependentDialects = ["::mpc::MpcDialect"];
}

def AutodiffPass : Pass<"mpc-autodiff", "::mlir::ModuleOp"> {
  let summary = "Expands mpc.value_and_grad into the forward graph and its reverse";
  let description = [{
    Inlines the callee and walks it backwards, asking each operation on the gradient path for its VJP
    (DifferentiableOpInterface). Cotangents of several uses are added by one `mpc.sum_n`. An operation on the path
    without a rule is an error that names it, with notes from the loss to the parameter. Functions that nothing calls
    any more are removed.
  }];
  let dependentDialects = ["::mpc::MpcDialect", "::mlir::func::FuncDialect"];
}

def CastCleanupPass : Pass<"mpc-cast-cleanup", "::mlir::func::FuncOp"> {
  let summary = "Removes and moves casts where no value changes";
  let description = [{
    One cast for each (value, type); trunc(ext(x)) is x; the widening of a gradient is read by unscale, the finite check
    and the optimizer, never materialised; narrowing casts move through pure data movement towards fewer bytes; dead
    operations go. The rounding of a user's cast stays.
  }];
  let dependentDialects = ["::mpc::MpcDialect"];
}

def FlattenGuardsPass : Pass<"mpc-flatten-guards", "::mlir::func::FuncOp"> {
  let summary = "Turns guarded updates into predicate operands";
  let description = [{
    State updates inside `mpc.guarded_update` receive the condition as their predicate; any other yielded value is chosen
    by `mpc.select`. The region disappears.
  }];
  let dependentDialects = ["::mpc::MpcDialect"];
}

def LayoutPass : Pass<"mpc-layout", "::mlir::func::FuncOp"> {
  let summary = "Makes images channels-last, with explicit transposes that cancel or sink";
  let description = [{
    Convolution, pooling and batch normalisation on rank-4 operands get `data_format = "NHWC"`. Transposes appear at the
    borders, move through element-wise operations and cancel. Weights keep their canonical layout.
  }];
  let dependentDialects = ["::mpc::MpcDialect"];
}

def VerifyPrecisionPass : Pass<"mpc-verify-precision", "::mlir::ModuleOp"> {
  let summary = "Proves that losses, statistics and kept norms are f32";
  let description = [{
    After AMP: losses compute f32 and return f32; norm parameters and statistics are f32; integer labels were never cast
    to a floating type and floating labels never passed through a low type; running statistics are f32. At a failure the
    message names the operation and its `mpc.scope`.
  }];
}

#endif
