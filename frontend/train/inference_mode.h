// A Cell that is in inference for a while. Not part of the public API.
#pragma once

#include <utility>
#include <vector>

#include "frontend/graph/cell_members.h"

namespace mpc::internal {

/// Puts the Cell and its sub-cells into inference for a while. Afterwards each has its own mode again.
class InferenceMode {
 public:
  explicit InferenceMode(nn::Cell& cell) {
    nn::internal::ForEachCell(cell, [this](nn::Cell& each) { before_.emplace_back(&each, each.training()); });
    cell.SetTrain(false);
  }
  ~InferenceMode() {
    // A Cell's mode is set after those above it, which reach it too.
    for (const auto& [cell, training] : before_) {
      if (cell->training() != training) cell->SetTrain(training);
    }
  }
  InferenceMode(const InferenceMode&) = delete;
  InferenceMode& operator=(const InferenceMode&) = delete;

 private:
  std::vector<std::pair<nn::Cell*, bool>> before_;  ///< modes of Cells, each before those below it
};

}  // namespace mpc::internal
