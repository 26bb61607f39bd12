// The memory part of the report as text. Free of MLIR headers.
#pragma once

#include <string>

#include "compiler/module/compile_result.h"

namespace mpc::compiler {

/// Planned arena, state and constants, activations, what is live at the peak (the largest values), state copies with
/// their reasons: docs/memory.md.
std::string MemoryReport(const CompileResult &result);

} // namespace mpc::compiler
