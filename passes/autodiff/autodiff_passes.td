// The backward pass.
#ifndef MPC_AUTODIFF_PASSES_TD
#define MPC_AUTODIFF_PASSES_TD

include "passes/pass_base.td"

def AutodiffPass : MpcPass<"mpc-autodiff", "::mlir::ModuleOp"> {
  let summary = "Expands mpc.value_and_grad and mpc.backward into the forward graph and its reverse";
  let description = [{
    Walks the callee of `value_and_grad`, inlined, or the block before `backward` in reverse, asking each operation on
    the gradient path for its VJP (DifferentiableOpInterface). Cotangents of several uses are added by one `mpc.sum_n`.
    What is created carries `mpc.backward` and the scope of its forward operation. Where `mpc-amp` has decided nothing
    yet, what gives the loss carries `mpc.differentiated`, so that `mpc-amp` keeps the loss f32 behind this pass, too. An operation on the path without a
    rule is an error that names it, with notes from the loss to the parameter. `mpc.custom_vjp` is differentiated by the
    user's rule; both functions are inlined. Functions that nothing calls any more are removed.
  }];
  let dependentDialects = ["::mpc::MpcDialect", "::mlir::func::FuncDialect"];
}

#endif
