// Every graph-to-graph rewrite of the compiler.
#ifndef MPC_PASSES_TD
#define MPC_PASSES_TD

include "mlir/Pass/PassBase.td"

// A pass that makes operations of the dialect, or reads its attributes.
class MpcPass<string argument, string operation> : Pass<argument, operation> {
  let dependentDialects = ["::mpc::MpcDialect"];
}

// What the AMP pass and the precision verifier both need to know.
class PrecisionListOptions {
  list<Option> common = [
    Option<"level", "level", "std::string", "\"O0\"", "O0, O1, O2, O3 or auto">,
    ListOption<"allow", "allow", "std::string", "Operations or Cell paths to run low">,
    ListOption<"deny", "deny", "std::string", "Operations or Cell paths to run in f32">,
    ListOption<"infer", "infer", "std::string", "Operations or Cell paths that follow their operands">,
    ListOption<"clear", "clear", "std::string", "Operations or Cell paths that move or compare values">];
}

def AttachTargetPass : MpcPass<"mpc-attach-target", "::mlir::ModuleOp"> {
  let summary = "Says which device a module is compiled for";
  let description = [{
    Gives the module `#mpc.target`, in place of the one that it may have. Passes behind it ask that target.

    ```mlir
    // before
    module {}
    // after, name=cuda arch=sm_90
    module attributes {mpc.target = #mpc.target<"cuda", arch = "sm_90">} {}
    ```
  }];
  let options = [
    Option<"name", "name", "std::string", "\"cpu\"", "cpu or cuda">,
    Option<"arch", "arch", "std::string", "\"\"", "of a device that need not be here: sm_80, sm_90">];
}

def AmpPass : MpcPass<"mpc-amp", "::mlir::ModuleOp"> {
  let summary = "Assigns f32 or a low type to every operation of a network by level, and inserts the casts";
  let description = [{
    Levels O0, O2 and O3 pin each operation. O1 and auto pin by class (matrix work low; reductions, exponentials and norm
    parameters f32; element-wise arithmetic fed by f32 work f32) and leave the rest to the minimum cut over the values
    that would be cast; for auto the pins of matrix work are what it saves on the device whose rates are given.
    Entries of the lists (`softmax`, `lenet5/fc1` with all that is inside), `Cell::ToFloat` pins (`mpc.scope`'s `pin`)
    and the user's own casts beat the level, in this order; `mpc.scope`'s `level` and `low` replace level and low type.

    Norms are matched by class and read and write the low type directly where their neighbours do (the norm fold).
    Losses are f32 at every level, and so is the operation that produces the value that `value_and_grad` or `backward`
    differentiates. There is one cast for each (value, type). Every operation it decides receives
    `#mpc.precision`. What O1 and auto decided becomes the module attribute `mpc.assignment`; slots that it names already are not decided
    again.

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
    %y = mpc.matmul %0, %1 {mpc.precision = #mpc.precision<f16, level "O2">}
        : (tensor<2x4xf16>, tensor<4x3xf16>) -> tensor<2x3xf16>
    ```
  }];
  let options = PrecisionListOptions<>.common # [
    Option<"dtype", "dtype", "std::string", "\"f16\"", "The low type: f16 or bf16">,
    Option<"keepBatchNormFp32", "keep-batchnorm-fp32", "std::string", "\"\"",
           "true or false; empty: the level's default (O2 true, O3 false)">,
    Option<"bytesPerSecond", "bytes-per-second", "double", "0", "auto: memory rate of the device; 0: the default">,
    Option<"lowFlops", "low-flops", "double", "0", "auto: matrix work a second in the low type; 0: the default">,
    Option<"f32Flops", "f32-flops", "double", "0", "auto: matrix work a second in f32; 0: the default">,
    Option<"secondsPerOperation", "seconds-per-operation", "double", "0",
           "auto: what an operation costs beyond its work; 0: the default">];
}

def LossScalePass : MpcPass<"mpc-loss-scale", "::mlir::ModuleOp"> {
  let summary = "Wraps a training step in loss scale, finite check, guarded update and scale update";
  let description = [{
    Works on functions whose requests (`mpc.value_and_grad`, `mpc.backward`) all have the constant 1 as their seed: the
    seed becomes the scale, each request gets a finite check, the state updates move into `mpc.guarded_update` on unscaled
    gradients, and the scaler's fields become state arguments and results (`#mpc.state<scaler, "scaler.scale">`,
    `good`, `bad`, `skipped`, `consecutive`, `growth`, `backoff`, `minimum`, `maximum`, `interval`, `bad_limit`,
    `dynamic`, `skip`). Three results of role `record` follow: `finite`, `first_bad`, and
    `loss_scale`, the scale that this step used. State that no update operation computes is chosen by `mpc.select`;
    arithmetic of the user on gradients sees them unscaled. A step with a seed of its own is left as it is, with a remark.
    The function attribute `mpc.gradients` names what `first_bad` counts: the gradients, then norms that may overflow
    though the gradients are finite (`mpc.check_finite`).

    **Several losses.** With `num-losses=1` one scaler serves them all and moves once a step, by `mpc.merge_checks` (and
    a record `loss0.first_bad`, ... for each); else request i has scaler `loss_id`, or i: `scaler0.scale`, `finite0`, ...
    An optimizer (the updates of one scope path) holds where any request whose gradients reach it is not finite;
    running statistics hold where any request that their forward pass feeds is not finite; the random generator's counter
    holds where no request is finite. There is one guarded update for each set of requests.

    **Scalers traced by hand** (the function has `mpc.all_finite`) stay as they are; running statistics and generator
    counters get the predicates that follow from the rules above.

    **Accumulation.** With `accumulation-steps` > 1 the function is one micro-step. State of role `accumulator` gathers
    the mean of the unscaled gradients (`accumulator.<parameter>`), counts (`accumulator.micro_step`), keeps the first
    position that was not finite (`accumulator.first_bad`) and what statistics and counters were before the first
    micro-step (`accumulator.old.<name>`). Optimizers and scalers act in the last micro-step; a micro-step that is not
    finite makes the whole step one.

    **Several processes.** With `all-reduce` each gradient is summed over the processes (`mpc.all_reduce`) before
    anything reads it, while it is scaled. So the update is that of all processes; the loss stays that of one.
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"none\"", "none, static or dynamic">,
    Option<"skip", "skip", "bool", "true", "Skip the update of a step that is not finite">,
    Option<"unscale", "unscale", "bool", "true",
           "Divide gradients by the scale; false where the optimizer's own loss_scale does">,
    Option<"numLosses", "num-losses", "int64_t", "1", "Loss scalers; one is shared by every loss">,
    Option<"accumulationSteps", "accumulation-steps", "int64_t", "1", "Micro-steps before an optimizer acts">,
    Option<"allReduce", "all-reduce", "bool", "false", "Sum each gradient over processes">];
}

def VerifyLossScalePass : MpcPass<"mpc-verify-loss-scale", "::mlir::ModuleOp"> {
  let summary = "Finds gradients that are unscaled without a scale or twice, used while they are scaled, or of two scales";
  let description = [{
    Follows the scale of gradients from `mpc.scale_loss` (or a seed that is scaler state) through `mpc.unscale`, casts,
    data movement and sums. Errors, with notes and parameters' names: a gradient unscaled twice, by a scale that has not
    scaled its loss, or by another one than has; the norm or the clipping of gradients that are still scaled; an
    optimizer's update by them, unless its `loss_scale` divides; a `loss_scale` that has nothing to divide, or is not the
    seed; the sum of gradients of two scales. Other arithmetic makes the scale unknown, and unknown is never an error.
  }];
}

def AutodiffPass : MpcPass<"mpc-autodiff", "::mlir::ModuleOp"> {
  let summary = "Expands mpc.value_and_grad and mpc.backward into the forward graph and its reverse";
  let description = [{
    Walks the callee of `value_and_grad`, inlined, or the block before `backward` in reverse, asking each operation on
    the gradient path for its VJP (DifferentiableOpInterface). Cotangents of several uses are added by one `mpc.sum_n`.
    What is created carries `mpc.backward` and the scope of its forward operation. An operation on the path without a
    rule is an error that names it, with notes from the loss to the parameter. `mpc.custom_vjp` is differentiated by the
    user's rule; both functions are inlined. Functions that nothing calls any more are removed.
  }];
  let dependentDialects = ["::mpc::MpcDialect", "::mlir::func::FuncDialect"];
}

def CastCleanupPass : MpcPass<"mpc-cast-cleanup", "::mlir::func::FuncOp"> {
  let summary = "Removes and moves casts where no value changes";
  let description = [{
    One cast for each (value, type); trunc(ext(x)) is x; the widening of a gradient is read by unscale, the finite check
    and the optimizer, never materialised; narrowing casts move through pure data movement towards fewer bytes; dead
    operations go. The rounding of a user's cast stays.
  }];
}

def FlattenGuardsPass : MpcPass<"mpc-flatten-guards", "::mlir::func::FuncOp"> {
  let summary = "Turns guarded updates into predicate operands";
  let description = [{
    State updates inside `mpc.guarded_update` receive the condition as their predicate; any other yielded value is chosen
    by `mpc.select`. The region disappears.
  }];
}

def ShadowPass : MpcPass<"mpc-shadows", "::mlir::func::FuncOp"> {
  let summary = "Keeps the low copies of parameters as state that optimizers write";
  let description = [{
    A cast of a state argument with the role `parameter` to f16 or bf16, the user's or not, directly or behind
    reshapes and transposes, gives way to a new argument: its *shadow*,
    `#mpc.state<derived, "w.f16", of = "w">` for the parameter `w`. Where an optimizer writes the parameter, it gets
    `shadow = "f16"`, and its new result is returned under the same role and name, so that the next step finds the low
    copy of the new parameter. A parameter that nothing in the function updates has a shadow that is only read. Rows and
    slices are taken from a shadow that exists for another reason.

    ```mlir
    // before
    func.func @step(%w: tensor<4xf32> {mpc.state = #mpc.state<parameter, "w">}, ...) attributes {mpc.step} {
      %0 = mpc.cast %w : (tensor<4xf32>) -> tensor<4xf16>
      ...
      %w2, %v2 = mpc.momentum %w, %v, %g, %rate : ... -> (tensor<4xf32>, tensor<4xf32>)
      return %w2, ...
    // after: %ws stands for %0
    func.func @step(%w: ..., %ws: tensor<4xf16> {mpc.state = #mpc.state<derived, "w.f16", of = "w">}) attributes {mpc.step} {
      ...
      %w2, %v2, %ws2 = mpc.momentum %w, %v, %g, %rate {shadow = "f16"}
          : ... -> (tensor<4xf32>, tensor<4xf32>, tensor<4xf16>)
      return %w2, ..., %ws2
    ```

    An optimizer writes one shadow: where a parameter is read in both low types, or something that is no optimizer writes
    it, the runtime rebuilds the other shadow before the next step.

    With `master-weights=false` a parameter that is used only through casts to one low type is stored in that type: the
    argument, the optimizer's operand and its result become low, slots stay f32, and there is no shadow. An argument
    with a `form` is stored in that type whatever its uses are: uses in f32 read it through a cast.
  }];
  let options = [
    Option<"masterWeights", "master-weights", "bool", "true",
           "Keep parameters in f32; false: those that are only used low are stored low">];
}

def GroupUpdatesPass : MpcPass<"mpc-group-updates", "::mlir::func::FuncOp"> {
  let summary = "Brings optimizers together that a device can run as one kernel";
  let description = [{
    The runtime makes one kernel of instructions that follow each other and agree in mnemonic, attributes, element types
    and used results. Parameters that are read low and those that are not (of norms) take turns in a network, so their
    updates do: within a run of updates, those that agree are moved behind the first of their kind. After the shadows,
    which are part of it. A run in which one update reads what another writes stays as it is.
  }];
}

def SinkReluPass : MpcPass<"mpc-sink-relu", "::mlir::func::FuncOp"> {
  let summary = "Moves relu behind max pooling and dropout, so that less is saved for it";
  let description = [{
    The largest of several values and relu commute, so pooling first leaves relu, its derivative and what is saved for it
    a quarter of the elements for 2x2 windows. Values and gradients are the same bits, since relu gives +0 for all that is
    not above zero: where no element of a window is, another one may win, but its derivative is zero.

    Dropout gives +0 or multiplies by at least 1, so it keeps signs and relu commutes with it, bit by bit, backward too:
    relu's result is then what the product behind dropout keeps anyway, and dropout's is not kept.

    relu moves where the other operation alone reads it, reshapes and transposes between them aside, and where neither
    rounds to another type. It runs before autodiff.

    ```mlir
    // before
    %r = mpc.relu %x : (tensor<2x3x4x4xf32>) -> tensor<2x3x4x4xf32>
    %y, %i = mpc.max_pool2d %r {...} : (tensor<2x3x4x4xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x3x2x2xi8>)
    // after
    %p, %i = mpc.max_pool2d %x {...} : (tensor<2x3x4x4xf32>) -> (tensor<2x3x2x2xf32>, tensor<2x3x2x2xi8>)
    %y = mpc.relu %p : (tensor<2x3x2x2xf32>) -> tensor<2x3x2x2xf32>
    ```
  }];
}

def FoldActivationPass : MpcPass<"mpc-fold-activation", "::mlir::func::FuncOp"> {
  let summary = "Gives gelu to the product that it is applied to";
  let description = [{
    A matmul or conv2d whose result gelu alone reads, reshapes between them aside, takes gelu as its `activation`: the
    library computes it before it stores the sums. In training that is so in frozen parts alone: elsewhere gelu's
    derivative reads the product, too. Behind autodiff, layout and cast cleanup, and before fusion, which would make a
    region of gelu. Product and gelu have one element type, to which the product is no longer rounded; a cast between
    them keeps them apart. So does bf16 for convolutions, which would take longer, and a GPU: of cuBLASLt's gelu neither
    form nor error is stated, and a product of mpc's own takes longer than the library's and a region.

    ```mlir
    // before
    %z = mpc.matmul %x, %w, %b : (tensor<32x84xbf16>, tensor<84x336xbf16>, tensor<336xbf16>) -> tensor<32x336xbf16>
    %y = mpc.gelu %z {approximate = "tanh"} : (tensor<32x336xbf16>) -> tensor<32x336xbf16>
    // after
    %y = mpc.matmul %x, %w, %b {activation = "gelu_tanh"}
        : (tensor<32x84xbf16>, tensor<84x336xbf16>, tensor<336xbf16>) -> tensor<32x336xbf16>
    ```
  }];
}

def FoldGradientScalingPass : MpcPass<"mpc-fold-gradient-scaling", "::mlir::func::FuncOp"> {
  let summary = "Lets updates unscale and clip the gradients that they read";
  let description = [{
    `mpc.unscale` and `mpc.clip_by_norm` each read a gradient and write it in f32, and the optimizer reads it again. Where
    optimizers alone read what they write, the optimizer does their work: it takes the scale or the norm as a scalar and
    multiplies in registers, rounding as they round, so that the bits stay the same. `mpc.global_norm` takes the scale
    likewise where all of its gradients are unscaled by it. A gradient whose unscaled value something else reads is left as
    it is. After flatten-guards and cast-cleanup, which lets `mpc.unscale` read low gradients: the optimizer reads them then.
    The report says of an optimizer what it has taken over.

    ```mlir
    // before
    %u = mpc.unscale %g, %scale : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
    %n = mpc.global_norm %u : (tensor<4xf32>) -> tensor<f32>
    %c = mpc.clip_by_norm %u, %n {max_norm = 1.0 : f32} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %p2, %v2 = mpc.momentum %p, %v, %c, %rate, %finite : ...
    // after
    %n = mpc.global_norm %scale, %g {unscale = true} : (tensor<f32>, tensor<4xf16>) -> tensor<f32>
    %p2, %v2 = mpc.momentum %p, %v, %g, %rate, %scale, %n, %finite {max_norm = 1.0 : f32, unscale = true} : ...
    ```
  }];
}

def LayoutPass : MpcPass<"mpc-layout", "::mlir::func::FuncOp"> {
  let summary = "Makes images channels-last, with explicit transposes that cancel or sink";
  let description = [{
    Convolution, pooling and batch normalisation on rank-4 operands get `data_format = "NHWC"`. Transposes appear at the
    borders, move through element-wise operations and cancel. Weights keep their canonical layout.
  }];
}

def ConvStatisticsPass : MpcPass<"mpc-conv-statistics", "::mlir::func::FuncOp"> {
  let summary = "Takes the statistics of batch normalisation from the convolution in front of it";
  let description = [{
    A convolution whose result `mpc.batch_norm_train` normalises becomes `mpc.conv2d_statistics`, and the normalisation
    `mpc.batch_norm_infer` by these statistics: nothing reads the whole result for them. The derivative stays what it
    was. A convolution is taken where a library computes the statistics with it: operands and result f16 and
    channels-last, one group, neither bias nor activation, at least 32 channels on both sides and multiples of 8. The
    variance is a difference of sums in f32, so that its relative error grows with 1 + mean^2 / variance: the pass is
    in the pipelines only where that is allowed.

    ```mlir
    // before
    %y = mpc.conv2d %x, %w {data_format = "NHWC"} : ...
    %n, %mean, %variance, %inv_std = mpc.batch_norm_train %y, %gamma, %beta {data_format = "NHWC"} : ...
    // after
    %y, %mean, %variance, %inv_std = mpc.conv2d_statistics %x, %w {data_format = "NHWC"} : ...
    %n = mpc.batch_norm_infer %y, %gamma, %beta, %mean, %variance {data_format = "NHWC"} : ...
    ```
  }];
}

def FusionPass : MpcPass<"mpc-fusion", "::mlir::func::FuncOp"> {
  let summary = "Puts operations that one generated kernel computes together into mpc.fusion";
  let description = [{
    The last pass: layout, casts and shadows have settled what is read and written. Regions grow from single operations:
    of all pairs of neighbours (one hands a value to the other, or both read a whole tensor) the one that saves most is
    merged, as long as any saves something. Two may be merged where

    * both are computed element by element, maybe after reductions, over one space of rows and columns (RegionPlan);
    * no way leads out of the region and back through another operation;
    * no element that takes many instructions (exp, gelu, dropout) is computed in two phases, unless it is stored anyway;
    * operations smaller than the region come after a reduction of it;
    * loads and stores of intermediate values that go, and launches that go, outweigh loads that later sweeps repeat;
    * what operations of the forward pass read, where they would wait for backward ones, is no larger than what they make.

    Updates of state, unscale, clipping, constants and random values stay outside, and so does every operation of a
    library. Views join regions where both sides do; they move nothing.

    An operation that no other joins keeps its own kernel, with two exceptions on the CPU: one that has none written by
    hand (softmax, layer_norm, batch_norm_train, ...) is a region of its own, and so is one whose region is expected to
    be faster (isWorthAlone). So that its rows are contiguous, a softmax along another axis than the last is put between
    transposes. With max-operations=1 only operations without a kernel become regions.

    Checks and norms of all gradients (mpc.all_finite, mpc.global_norm) stay outside. But a gradient that a region
    produces may be checked (mpc.check_finite) and squared (mpc.sum_of_squares) there, where the bytes that are not read
    again outweigh the launch that combines the partial values; the flag or sum takes its place among the gradients.

    Operations keep their order as far as regions allow; an update of state stays behind the readers of the old state.
    The region has the Cell path that its operations share, and `mpc.fusion_choice` says how many bytes it saves and why
    each neighbour was left out.

    ```mlir
    // before
    %s = mpc.add %x, %r : (tensor<32x84xf32>, tensor<32x84xf32>) -> tensor<32x84xf32>
    %y = mpc.relu %s : (tensor<32x84xf32>) -> tensor<32x84xf32>
    // after
    %y = mpc.fusion(%x, %r) {
    ^bb0(%a: tensor<32x84xf32>, %b: tensor<32x84xf32>):
      %s = mpc.add %a, %b : (tensor<32x84xf32>, tensor<32x84xf32>) -> tensor<32x84xf32>
      %t = mpc.relu %s : (tensor<32x84xf32>) -> tensor<32x84xf32>
      mpc.yield %t : tensor<32x84xf32>
    } {mpc.fusion_choice = {bytes_saved = 21504 : i64, left_out = []}} : ...
    ```
  }];
  let options = [
    Option<"maxOperations", "max-operations", "unsigned", "32",
           "Operations of one region; 1: regions only of operations that have no kernel written by hand">];
}

def VerifyPrecisionPass : MpcPass<"mpc-verify-precision", "::mlir::ModuleOp"> {
  let summary = "Proves that losses, statistics and kept norms are f32";
  let description = [{
    After AMP: losses compute f32 and return f32; norm parameters and statistics are f32; integer labels were never cast
    to a floating type and floating labels never passed through a low type; running statistics are f32. At O1 and auto no
    operation of class Deny reads or writes a low type, unless the user's ToFloat or a list entry says so or it is a
    folded norm. At a failure the message names the operation and its `mpc.scope`.
  }];
  let options = PrecisionListOptions<>.common;
}

def InstrumentPass : MpcPass<"mpc-instrument", "::mlir::func::FuncOp"> {
  let summary = "Makes a step measure its values instead of updating state";
  let description = [{
    After autodiff. Every floating value of the forward and the backward pass, every parameter and input gets a
    `mpc.tensor_statistics`, whose results become the results of the function, in program order, with role `record` and
    name `statistics|<Cell path>|<operation>|forward or backward|<result>|<element type>|<field>`; parameters and inputs
    have their role as the operation. State results go, and with them every update: running the step changes nothing.
    What happens to gradients after the backward pass is not measured. A function that has been instrumented stays.
  }];
}

include "passes/memory_passes.td"

#endif
