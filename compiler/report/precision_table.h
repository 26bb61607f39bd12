// The precision of each operation of a function, as plain rows. They are the data behind the precision report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"
#include "compiler/report/cast_statistics.h"

namespace mpc::compiler {

/// One operation that reads or writes a floating tensor. Casts, constants and data movement are left out.
struct PrecisionRow {
  std::string op;         ///< "conv2d"
  std::string path;       ///< Cell path, "lenet5/conv1"; empty outside Cells
  std::string inputs;     ///< distinct floating storage types of the operands, in order: "f16 f32"
  std::string outputs;    ///< the same of the results
  std::string compute;    ///< "f32"; "f64" in reference graphs
  std::string reason;     ///< the reasons of `mpc.precision`; "backward" or "update" where an operation follows others
  bool backward = false;  ///< it computes cotangents
  bool update = false;    ///< it is part of the update of state
  std::int64_t bytes = 0; ///< bytes of its operands and results, in all of its runs
  double flops = 0;       ///< operations of its matrix work, two a multiply-add; 0 for other operations
  bool low = false;       ///< its matrix work reads a 16-bit type
  std::string loop = {};  ///< the function that `mpc.repeat` calls and that holds it, as "body"; empty outside loops
  std::int64_t runs = 1;  ///< how often it runs in a run of the function

  std::string types() const; ///< "f16 f32 -> f16", "-" for a side without floating types
};

/// "forward", "backward" or "update".
const char *DirectionName(bool backward, bool update);

/// Arguments of one role: state, inputs.
struct ArgumentGroup {
  Role role = Role::kInput;
  std::int64_t count = 0;
  std::int64_t elements = 0;
  std::int64_t bytes = 0;
};

struct PrecisionTable {
  std::string function;
  std::vector<PrecisionRow> rows; ///< in program order; an operation's ordinal is its position, from 1
  CastStatistics casts;
  std::vector<CastRecord> cast_records; ///< what `casts` counts, in program order
  std::vector<ArgumentGroup> arguments;

  std::int64_t bytes() const;      ///< bytes that operations read and write
  double matrix_flops() const;     ///< operations of all matrix work
  double low_matrix_flops() const; ///< operations of the matrix work that reads a 16-bit type
};

/// The table of function `function`, its regions (`mpc.fusion`) taken apart. What `mpc.repeat` calls stands where its
/// first call is, once, with the bytes and the work of all runs. Errors: NOT_FOUND where the module has no
/// such function with a body.
absl::StatusOr<PrecisionTable> TabulatePrecision(const Module &module, const std::string &function);

/// Functions that have a body, in module order.
std::vector<std::string> FunctionNames(const Module &module);

/// The function that a reader means without naming one. It is the step of a model, else the first function with a body,
/// a public one where there is any. Errors: NOT_FOUND where there is none.
absl::StatusOr<std::string> MainFunction(const Module &module);

} // namespace mpc::compiler
