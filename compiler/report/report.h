// The precision report: what runs in which type and why, what is cast, what is stored. Free of MLIR headers.
#pragma once

#include <string>

#include "compiler/module/compile_result.h"

namespace mpc::compiler {

/// The whole report of a compiled step: a row for each operation (Cell, storage types read and written, compute type,
/// reason), regions with what they save and what was left out, for a GPU what their kernels take of it, casts by kind
/// with counts and bytes, parameters and state, planned arena and what is live at its peak, state copies with their
/// reasons, remarks of the passes.
std::string PrecisionReport(const CompileResult &result);

/// The same as JSON: "function", "device", "operations" (each with "ordinal", "op", "cell", "reads", "writes",
/// "compute", "why", "direction", "bytes", "flops"), "regions" (each with "number", "operations", "cells", "cell",
/// which those share, "bytes", "bytes_saved", "left_out"), "casts" (each with "kind", "from", "to", "count", "bytes",
/// "of"), "cast_count", "cast_bytes", "matrix_work" ("flops", "low_flops", "low_share"), "arguments", "memory"
/// ("arena_bytes", "activation_bytes", "state_bytes", "constant_bytes", "filled_constant_bytes", "planned_bytes",
/// "state_copies", "peak": "instruction", "op", "cell", "bytes" and what is "live" there, each with "use", "op",
/// "cell", "type", "bytes", "first", "last"), "remarks", and for device "cuda" "generated_kernels" ("regions", each
/// with "region", "architecture", "kernels", "instructions" and, where ptxas is installed, "registers", "spill_bytes",
/// "stack_bytes", "shared_bytes"; "no_ptxas": why it is not, else empty; "not_assembled": by architecture, what ptxas
/// said where it failed). A report without a table has the member "error" alone.
std::string PrecisionReportJson(const CompileResult &result);

/// The functions of a module as a JSON array, without "device", "memory" and "remarks".
std::string ModuleReportJson(const Module &module);

/// A few lines of the same, for the end of a training run.
std::string PrecisionSummary(const CompileResult &result);

/// Operations, regions, casts and arguments of every function of a module at any stage.
std::string ModuleReport(const Module &module);

} // namespace mpc::compiler
