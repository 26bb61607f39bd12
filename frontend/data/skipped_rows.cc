#include "frontend/data/skipped_rows.h"

#include <utility>

#include "frontend/data/kept_rows_node.h"

namespace mpc::data {
namespace internal {
namespace {

class KeptRowsIterator : public DatasetIterator {
 public:
  explicit KeptRowsIterator(std::unique_ptr<DatasetIterator> input) : input_(std::move(input)) {}

  absl::StatusOr<bool> Next(Row* row) override {
    for (Row next;;) {
      absl::StatusOr<bool> more = input_->Next(&next);
      if (more.ok() && !*more && std::exchange(all_skipped_, false)) {
        return absl::InvalidArgumentError("Map: its operations fail on each row of the epoch");
      }
      if (!more.ok() || !*more) return more;
      all_skipped_ = next.empty() && !any_;
      if (next.empty()) continue;
      any_ = true;
      *row = std::move(next);
      return true;
    }
  }

 private:
  std::unique_ptr<DatasetIterator> input_;
  bool any_ = false;          ///< a row was given
  bool all_skipped_ = false;  ///< rows were read, and each was skipped
};

}  // namespace

absl::StatusOr<std::unique_ptr<DatasetIterator>> KeptRowsNode::NewIterator(std::int64_t epoch) const {
  absl::StatusOr<std::unique_ptr<DatasetIterator>> input = input_->NewIterator(epoch);
  if (!input.ok()) return input.status();
  return std::make_unique<KeptRowsIterator>(*std::move(input));
}

}  // namespace internal

std::int64_t SkippedRows::count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return count_;
}

std::vector<std::string> SkippedRows::errors() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return errors_;
}

void SkippedRows::Add(const absl::Status& error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  ++count_;
  if (errors_.size() < kMostErrors) errors_.push_back(std::string(error.message()));
}

}  // namespace mpc::data
