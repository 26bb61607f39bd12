// `--mpc-check-program`: what becomes of IR behind the passes.
#pragma once

namespace mpc::opt {

/// Registers the pass. It generates the code of each function for the CPU and lowers the function, as compiling does,
/// and leaves the IR as it is. A function that cannot be lowered is an error. A Program that the runtime would refuse
/// ends the process, since no IR that verifies may become one. The tests run it on mutated IR.
void RegisterCheckProgramPass();

}  // namespace mpc::opt
