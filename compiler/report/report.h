// The precision report: what runs in which type and why, what is cast, what is stored. Free of MLIR headers.
#pragma once

#include <string>

#include "compiler/module/compile_result.h"

namespace mpc::compiler {

/// The whole report of a compiled step. It has a row for each operation (Cell, storage types read and written, compute
/// type, reason). It lists regions with what they save and what was left out, and for a GPU the resources that their
/// kernels take. It lists the messages to other processes with their bytes. It lists casts by kind with counts and
/// bytes, parameters and state, and the planned arena with what is live at its peak. It ends with state copies and
/// their reasons, and remarks of the passes.
std::string PrecisionReport(const CompileResult &result);

/// The same as JSON. The members are "function", "device", "operations", "regions", "messages", "casts", "cast_count",
/// "cast_bytes", "matrix_work", "arguments", "memory" and "remarks". Device "cuda" has "generated_kernels" too. Each of
/// "operations" has "ordinal", "op", "cell", "reads", "writes", "compute", "why", "direction", "bytes" and "flops".
/// Each of "regions" has "number", "operations", "cells", "cell" (which those share), "bytes", "bytes_saved" and
/// "left_out". Each of "messages" has "number", "processes", "operations" and "bytes". Each of "casts" has "kind",
/// "from", "to", "count", "bytes" and "of". "matrix_work" has "flops", "low_flops" and "low_share". "memory" has
/// "arena_bytes", "activation_bytes", "state_bytes", "constant_bytes", "filled_constant_bytes", "planned_bytes",
/// "state_copies" and "peak". "peak" has "instruction", "op", "cell", "bytes" and "live". Each of "live" has "use",
/// "op", "cell", "type", "bytes", "first" and "last". "generated_kernels" has "regions", "no_ptxas" and
/// "not_assembled". Each of these "regions" has "region", "architecture", "kernels" and "instructions". Where ptxas is
/// installed, it also has "registers", "spill_bytes", "stack_bytes" and "shared_bytes". "no_ptxas" says why nothing was
/// assembled, else it is empty. "not_assembled" has by architecture what ptxas said where it failed. A report without a
/// table has the member "error" alone.
std::string PrecisionReportJson(const CompileResult &result);

/// The functions of a module as a JSON array, without "device", "memory" and "remarks".
std::string ModuleReportJson(const Module &module);

/// A few lines of the same, for the end of a training run.
std::string PrecisionSummary(const CompileResult &result);

/// Operations, regions, casts and arguments of every function of a module at any stage.
std::string ModuleReport(const Module &module);

} // namespace mpc::compiler
