// The base class of passes.
#ifndef MPC_PASS_BASE_TD
#define MPC_PASS_BASE_TD

include "mlir/Pass/PassBase.td"

// A pass that makes operations of the dialect, or reads its attributes.
class MpcPass<string argument, string operation> : Pass<argument, operation> {
  let dependentDialects = ["::mpc::MpcDialect"];
}

#endif
