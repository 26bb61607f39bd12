// The operations that one kernel computes together, as plain rows. They are the data behind the fusion part of the
// report.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/module/graph_builder.h"

namespace mpc::compiler {

/// One region (`mpc.fusion`).
struct FusionRow {
  std::vector<std::string> operations; ///< "batch_norm_train", in program order, without reshapes
  std::vector<std::string> cells;      ///< Cell path of each operation; empty outside Cells
  std::string path;                    ///< what the paths share
  std::int64_t bytes = 0;              ///< bytes that it reads and writes
  std::int64_t bytes_saved = 0;        ///< memory traffic of the operations alone, less the region's
  std::vector<std::string> left_out;   ///< neighbours: "conv2d in net/conv1: it is not computed element by element"
};

struct FusionTable {
  std::vector<FusionRow> rows; ///< in program order; a region's number is its position, from 1

  std::int64_t operations() const;
  std::int64_t bytes_saved() const;
};

/// The regions of function `function`. Errors: NOT_FOUND where the module has no such function with a body.
absl::StatusOr<FusionTable> TabulateFusion(const Module &module, const std::string &function);

} // namespace mpc::compiler
