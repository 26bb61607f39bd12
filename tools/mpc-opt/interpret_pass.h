// `--mpc-interpret`: what IR computes, without kernels and Programs.
#pragma once

namespace mpc::opt {

/// Registers the pass. It runs each function without arguments with the reference functions. The function then returns
/// what came out, as constants. Functions with arguments stay as they are.
void RegisterInterpretPass();

}  // namespace mpc::opt
