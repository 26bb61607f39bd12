// The stages that read several data sets: Zip and Concat. Not part of the public API.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "frontend/data/stages.h"

namespace mpc::data::internal {

/// An input whose size only a run can tell is read up to the end of the shortest one. It may be endless.
class ZipNode : public CountedNode {
 public:
  ZipNode(std::vector<NodePointer> inputs, ColumnNames column_names)
      : CountedNode(std::move(column_names)), inputs_(std::move(inputs)) {}
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override;
  bool size_is_known() const override;
  bool random_access() const override;
  absl::StatusOr<Row> Get(std::int64_t index) const override;
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewOrderedIterator(std::int64_t epoch,
                                                                      std::vector<std::int64_t> order) const override;
  bool reads_parts() const override;
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewPartIterator(std::int64_t epoch,
                                                                   const Places& places) const override;
  absl::StatusOr<bool> IsShort(std::int64_t place) const override;
  std::int64_t batch_rows() const override;

 protected:
  absl::StatusOr<std::int64_t> Count() const override;

 private:
  std::vector<NodePointer> inputs_;
};

class ConcatNode : public DatasetNode {
 public:
  explicit ConcatNode(std::vector<NodePointer> inputs)
      : DatasetNode(inputs[0]->column_names()), inputs_(std::move(inputs)) {}
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewIterator(std::int64_t epoch) const override;
  absl::StatusOr<std::int64_t> size() const override;
  bool size_is_known() const override;
  bool random_access() const override;
  absl::StatusOr<Row> Get(std::int64_t index) const override;
  bool reads_parts() const override;
  absl::StatusOr<std::unique_ptr<DatasetIterator>> NewPartIterator(std::int64_t epoch,
                                                                   const Places& places) const override;
  absl::StatusOr<bool> IsShort(std::int64_t place) const override;
  std::int64_t batch_rows() const override;

 private:
  std::vector<NodePointer> inputs_;
};

}  // namespace mpc::data::internal
