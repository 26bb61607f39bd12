// Every graph-to-graph rewrite of the compiler, room by room.
#ifndef MPC_PASSES_TD
#define MPC_PASSES_TD

include "passes/autodiff/autodiff_passes.td"
include "passes/fusion/fusion_passes.td"
include "passes/layout/layout_passes.td"
include "passes/memory/memory_passes.td"
include "passes/pass_base.td"
include "passes/precision/precision_passes.td"
include "passes/step/step_passes.td"

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

#endif
