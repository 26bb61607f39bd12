// The stage behind a Map that skips rows. Not part of the public API.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "frontend/data/stages.h"

namespace mpc::data::internal {

/// Leaves out rows without columns, which MapNode gives for rows that it skips. An epoch of such rows alone is an
/// error.
class KeptRowsNode : public CountedNode {
 public:
  explicit KeptRowsNode(NodePointer input) : CountedNode(input->column_names()), input_(std::move(input)) {}
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override;
  std::int64_t batch_rows() const override { return input_->batch_rows(); }

 private:
  NodePointer input_;
};

}  // namespace mpc::data::internal
