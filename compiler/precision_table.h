// What a function computes in which precision, as plain rows: the data behind the precision report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph_builder.h"

namespace mpc::compiler {

/// One operation that reads or writes a floating tensor. Casts, constants and data movement are left out.
struct PrecisionRow {
  std::string op;      ///< "conv2d"
  std::string path;    ///< Cell path, "lenet5/conv1"; empty outside Cells
  std::string inputs;  ///< distinct floating storage types of the operands, in order: "f16 f32"
  std::string outputs; ///< the same of the results
  std::string compute; ///< "f32"; "f64" in reference graphs
  std::string reason;  ///< `mpc.amp_reason`; "backward" or "update" where an operation follows others
};

/// What a cast moves. A narrowing cast is named after what it narrows.
enum class CastKind {
  kWeight,     ///< f32 parameter to low
  kInput,      ///< f32 input of the function to low
  kActivation, ///< f32 forward value to low
  kGradient,   ///< f32 cotangent to low
  kWidening,   ///< low to f32, exact
  kUser,       ///< written by the user: its rounding stays
  kOther,      ///< from or to integers
};

/// "weight", "input", ...
const char *CastKindName(CastKind kind);

/// The casts of one kind between two types.
struct CastGroup {
  CastKind kind = CastKind::kOther;
  std::string from;
  std::string to;
  std::int64_t count = 0;
  std::int64_t bytes = 0;         ///< read and written
  std::vector<std::string> where; ///< one a cast: the argument's name, or the operation that made the value
};

/// Arguments of one role: state, inputs.
struct ArgumentGroup {
  std::string role; ///< `mpc.role`: "parameter", "slot", "input", ...
  std::int64_t count = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
};

struct PrecisionTable {
  std::string function;
  std::vector<PrecisionRow> rows; ///< in program order
  std::vector<CastGroup> casts;   ///< ordered by kind, then by types
  std::vector<ArgumentGroup> arguments;
};

/// The table of function `function`. Errors: NOT_FOUND where the module has no such function with a body.
absl::StatusOr<PrecisionTable> TabulatePrecision(const Module &module, const std::string &function);

/// Functions that have a body, in module order.
std::vector<std::string> FunctionNames(const Module &module);

} // namespace mpc::compiler
