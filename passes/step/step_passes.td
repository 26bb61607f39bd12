// Passes over training steps: loss scale, guards, updates, measurements.
#ifndef MPC_STEP_PASSES_TD
#define MPC_STEP_PASSES_TD

include "passes/pass_base.td"

def LossScalePass : MpcPass<"mpc-loss-scale", "::mlir::ModuleOp"> {
  let summary = "Wraps a training step in loss scale, finite check, guarded update and scale update";
  let description = [{
    Works on functions whose requests (`mpc.value_and_grad`, `mpc.backward`) all have the constant 1 as their seed. The
    seed becomes the scale, and each request gets a finite check. The state updates move into `mpc.guarded_update` on
    unscaled gradients. The scaler's fields become state arguments and results (`#mpc.state<scaler, "scaler.scale">`,
    `good`, `bad`, `skipped`, `consecutive`, `growth`, `backoff`, `minimum`, `maximum`, `interval`, `bad_limit`,
    `dynamic`, `skip`). Three results of role `record` follow: `finite`, `first_bad`, and `loss_scale`, the scale that
    this step used. State that no update operation computes is chosen by `mpc.select`; arithmetic of the user on
    gradients sees them unscaled. A step with a seed of its own is left as it is, with a remark. The function attribute
    `mpc.gradients` names what `first_bad` counts: the gradients, then norms that may overflow though the gradients are
    finite (`mpc.check_finite`).

    **Several losses.** With `num-losses=1` one scaler serves them all and moves once a step, by `mpc.merge_checks` (and
    a record `loss0.first_bad`, ... for each); else request i has scaler `loss_id`, or i: `scaler0.scale`, `finite0`, ...
    An optimizer (the updates of one scope path) holds where any request whose gradients reach it is not finite. Running
    statistics hold where any request that their forward pass feeds is not finite. The random generator's counter holds
    where no request is finite. There is one guarded update for each set of requests.

    **Scalers traced by hand** (the function has `mpc.all_finite`) stay as they are. Running statistics and generator
    counters get the predicates that follow from the rules above. Checks that an update waits for take in norms too.

    **Accumulation.** With `accumulation-steps` > 1 the function is one micro-step. State of role `accumulator` gathers
    the mean of the unscaled gradients in a balanced binary tree (`accumulator.<parameter>`, and
    `accumulator.<parameter>.level1`, ... for 3 micro-steps and more). It counts micro-steps (`accumulator.micro_step`).
    It keeps the first position that was not finite (`accumulator.first_bad`). It keeps what statistics and counters were
    before the first micro-step (`accumulator.old.<name>`). Optimizers and scalers act in the last micro-step; a
    micro-step that is not finite makes the whole step one.

    **Several processes.** With `processes` = N > 1, a power of two, the step is that of one of N processes, each on rows of
    its own. The state of all stays the same, bit for bit, and is that of N accumulated micro-steps of one process. Each
    process is a micro-step: rank r is number r.

    * The mean over processes (`mpc.all_reduce` of 1/N of the unscaled gradient) replaces each gradient. Scalers traced by
      hand unscale, so there it is the mean of the scaled gradients.
    * A check holds where it holds in every process (`mpc.all_reduce_max` of its first bad position). The position is that
      of a norm where no gradient is bad anywhere.
    * Running statistics move by the batches of all processes in the order of ranks (`mpc.all_gather`). Statistics that a
      collective operation of the network has made equal move once.
    * Batches may differ in their rows. So a process multiplies its variance by what the running one takes of it, before
      the gather. The update has a `count` of 0 then, and takes variances as they are.
    * A random generator's counter moves by N. A process draws by the counter plus its rank (`mpc.process_rank`).
    * State that a process would move by its own rows alone is an error. So is a running statistic that the forward pass
      reads. The loss stays that of the process.

    With `gradients-mean=false` the sum over processes replaces each gradient: of the means over micro-steps, where a
    process has several. A sum of finite gradients may overflow, so it has a check of its own. `communication-dtype` is
    what gradients are rounded to before they are added, and what each addition rounds to. They are still scaled then,
    and the sum is unscaled. It is checked, too. Without a loss scale nothing is checked, and f16 is an error. Micro-steps
    of one process are added in the same way, so that the bits are those of several processes.

    **Weights.** A loss that leaves elements out may record which share of them it counts, as `loss_weight`. Then each
    gradient is multiplied by this number before it is added. The mean over micro-steps and processes is divided by the
    mean of the numbers (`accumulator.loss_weight`), or by 1 where that is 0. f32 adds them. A loss with two such records
    is an error. A step of one micro-step in one process stays as it is.

    The function attribute `mpc.processes` says N.

    **Accumulation in several processes.** With `accumulation-steps` = K > 1, a power of two, the state is that of V = NK
    accumulated micro-steps of one process. Rank r runs the micro-steps rK to rK + K - 1 of them. No collective stands
    where a condition decides. So there are two functions, and the host chooses. `last-micro-step=false` gives the one for
    the micro-steps of a process before its last.

    * Both add 1/V of the unscaled gradient to the process's own sums, and merge what they find. The last reduces the
      sums and the findings.
    * Both keep the statistics of the micro-step's batch (`accumulator.batches.<statistic>`, with a first axis of K). The
      last gathers them, and running statistics move by the batches of all V micro-steps in order.
    * Other state that moves in every micro-step is an error, and so are collectives of the network itself.
    * Before the last all other state stays as it is. A process draws by the generator's counter plus the number of the
      micro-step among all V. The counter moves by V in the last.
  }];
  let options = [
    Option<"mode", "mode", "std::string", "\"none\"", "none, static or dynamic">,
    Option<"skip", "skip", "bool", "true", "Skip the update of a step that is not finite">,
    Option<"unscale", "unscale", "bool", "true",
           "Divide gradients by the scale; false where the optimizer's own loss_scale does">,
    Option<"numLosses", "num-losses", "int64_t", "1", "Loss scalers; one is shared by every loss">,
    Option<"accumulationSteps", "accumulation-steps", "int64_t", "1", "Micro-steps before an optimizer acts">,
    Option<"processes", "processes", "int64_t", "1", "Processes that train together, a power of two">,
    Option<"lastMicroStep", "last-micro-step", "bool", "true",
           "Of several processes that accumulate: the function is the last micro-step; false: one before it">,
    Option<"gradientsMean", "gradients-mean", "bool", "true",
           "Divide the sum of gradients over processes by their number">,
    Option<"communicationDtype", "communication-dtype", "std::string", "\"f32\"",
           "What micro-steps and processes add gradients in: f32, f16 or bf16">];
}

def VerifyLossScalePass : MpcPass<"mpc-verify-loss-scale", "::mlir::ModuleOp"> {
  let summary = "Finds gradients that are unscaled without a scale or twice, used while they are scaled, or of two scales";
  let description = [{
    Follows the scale of gradients from `mpc.scale_loss` (or a seed that is scaler state) through `mpc.unscale`, casts,
    data movement, sums, clipping and accumulation. It reports these errors, with notes and parameters' names:

    * A gradient is unscaled twice, by a scale that has not scaled its loss, or by another one than has.
    * A loss is scaled twice.
    * The norm, the clipping or the accumulation reads gradients that are still scaled.
    * An optimizer's update reads gradients that are still scaled, unless its `loss_scale` divides.
    * A `loss_scale` has nothing to divide, or is not the seed. A loss may end in products with numbers: one of them, or
      all together, may be what it divides. Of a product with a value it is not known.
    * Gradients of two scales are added.

    Other arithmetic makes the scale unknown, and unknown is never an error.
  }];
}

def FlattenGuardsPass : MpcPass<"mpc-flatten-guards", "::mlir::func::FuncOp"> {
  let summary = "Turns guarded updates into predicate operands";
  let description = [{
    State updates inside `mpc.guarded_update` receive the condition as their predicate; any other yielded value is chosen
    by `mpc.select`. The region disappears.
  }];
}

def FoldGradientScalingPass : MpcPass<"mpc-fold-gradient-scaling", "::mlir::func::FuncOp"> {
  let summary = "Lets updates unscale and clip the gradients that they read";
  let description = [{
    `mpc.unscale` and `mpc.clip_by_norm` each read a gradient and write it in f32, and the optimizer reads it again.
    Where optimizers alone read what they write, the optimizer does their work. It takes the scale or the norm as a
    scalar and multiplies in registers. It rounds as they round, so the bits stay the same. `mpc.global_norm` takes the
    scale likewise where all of its gradients are unscaled by it. A gradient whose unscaled value something else reads
    is left as it is. The pass runs after flatten-guards and after cast-cleanup, which lets `mpc.unscale` read low
    gradients. Then the optimizer reads them. The report says of an optimizer what it has taken over.

    ```mlir
    // before
    %u = mpc.unscale %g, %scale : (tensor<4xf16>, tensor<f32>) -> tensor<4xf32>
    %n = mpc.global_norm %u : (tensor<4xf32>) -> tensor<f32>
    %c = mpc.clip_by_norm %u, %n {max_norm = 1.0} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
    %p2, %v2 = mpc.momentum %p, %v, %c, %rate, %finite : ...
    // after
    %n = mpc.global_norm %scale, %g {unscale = true} : (tensor<f32>, tensor<4xf16>) -> tensor<f32>
    %p2, %v2 = mpc.momentum %p, %v, %g, %rate, %scale, %n, %finite {max_norm = 1.0, unscale = true} : ...
    ```
  }];
}

def GroupUpdatesPass : MpcPass<"mpc-group-updates", "::mlir::func::FuncOp"> {
  let summary = "Brings optimizers together that a device can run as one kernel";
  let description = [{
    The runtime makes one kernel of instructions that follow each other and agree in mnemonic, attributes, element types
    and used results. Parameters that are read low alternate in a network with those that are not (of norms), and so do
    their updates. Within a run of updates, those that agree are moved behind the first of their kind. The pass runs
    after the shadows, which are part of an update. A run in which one update reads what another writes stays as it is.
  }];
}

def BucketsPass : MpcPass<"mpc-buckets", "::mlir::func::FuncOp"> {
  let summary = "Puts collectives side by side that travel as one message";
  let description = [{
    Runs after the schedule and before the flat updates. Collectives of several processes get a number as `mpc.bucket`.
    Those of one number stand side by side, and a device sends their operands as one message. Sums and maxima share
    messages, whatever their types are, and gathers share others.

    A collective joins the last bucket of its kind while the operands of both are at most `bucket-mib` MiB. Its operand
    must not follow from that bucket. It must be there before the first state update, and the first operation of the
    network, that reads the bucket. Such operations are not held up. Others are, to behind the bucket: the cast of a
    mean, the decision of a check. A bucket stands where its last member stood, or before what is not held up. Gathers
    join while a process gives at most 64 KiB, since their kernel copies them.

    A sum over processes adds element by element in a tree over ranks. So its bits depend neither on the place of the
    operation nor on what else travels with it. All processes run the same function and find the same order. An operation
    of one process is no message, and a function without messages stays as it is.

    ```mlir
    // before: three messages
    %worst = mpc.all_reduce_max %code {processes = 2} : tensor<i32>
    %finite = mpc.equal %worst, %none : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %sum = mpc.all_reduce %dw {processes = 2} : tensor<4xf32>
    %sum2 = mpc.all_reduce %db {processes = 2} : tensor<2xf32>
    // after: one
    %worst = mpc.all_reduce_max %code {mpc.bucket = 0, processes = 2} : tensor<i32>
    %sum = mpc.all_reduce %dw {mpc.bucket = 0, processes = 2} : tensor<4xf32>
    %sum2 = mpc.all_reduce %db {mpc.bucket = 0, processes = 2} : tensor<2xf32>
    %finite = mpc.equal %worst, %none : (tensor<i32>, tensor<i32>) -> tensor<i1>
    ```
  }];
  let options = [
    Option<"bucketMib", "bucket-mib", "int64_t", "25", "MiB that travel as one message; 0: each operand alone">];
}

def FlatUpdatesPass : MpcPass<"mpc-flat-updates", "::mlir::func::FuncOp"> {
  let summary = "Decides which optimizer updates share flat buffers";
  let description = [{
    Runs after the schedule, which settles the order of operations. Element-wise updates that follow each other get one
    number as `mpc.flat_group`. They agree in kernel, attributes and types, and share their scalars. No tensor belongs
    to two of them. Tensors at one place of their operands are all state, or all computed in the step. Lowering lays the
    tensors of a group behind each other (docs/update.md). Where storage or the size of the arena forbids it, the
    updates run as a group of tensors.

    ```mlir
    // before
    %p0_1, %v0_1 = mpc.momentum %p0, %v0, %g0, %rate : ...
    %p1_1, %v1_1 = mpc.momentum %p1, %v1, %g1, %rate : ...
    // after
    %p0_1, %v0_1 = mpc.momentum %p0, %v0, %g0, %rate {mpc.flat_group = 0 : i64} : ...
    %p1_1, %v1_1 = mpc.momentum %p1, %v1, %g1, %rate {mpc.flat_group = 0 : i64} : ...
    ```
  }];
}

def InstrumentPass : MpcPass<"mpc-instrument", "::mlir::func::FuncOp"> {
  let summary = "Makes a step measure its values instead of updating state";
  let description = [{
    Runs after autodiff. Every floating value of the forward and the backward pass, every parameter and input gets a
    `mpc.tensor_statistics`. Its results become the results of the function, in program order. They have the role
    `record` and the name `statistics|<Cell path>|<operation>|forward or backward|<result>|<element type>|<field>`.
    Parameters and inputs have their role as the operation. State results go, and with them every update: running the
    step changes nothing. What happens to gradients after the backward pass is not measured. A function that has been
    instrumented stays.
  }];
}

#endif
