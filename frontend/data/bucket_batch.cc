#include <algorithm>
#include <deque>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/batch.h"
#include "frontend/data/map_node.h"

namespace mpc::data::internal {
namespace {

class BucketBatchIterator : public DatasetIterator {
 public:
  BucketBatchIterator(std::shared_ptr<const BucketBatchNode> node, std::unique_ptr<DatasetIterator> input)
      : node_(std::move(node)), input_(std::move(input)), gathered_(node_->buckets().batch_sizes.size()) {}

  absl::StatusOr<bool> Next(Row* row) override {
    absl::StatusOr<std::optional<std::size_t>> bucket = FillBucket();
    if (!bucket.ok()) return Stop(bucket.status());
    if (!*bucket) {
      if (any_ || stopped_) return false;
      return Stop(absl::InvalidArgumentError(
          absl::StrCat("BucketBatchByLength: none of the ", rows_read_, " rows of the epoch is left in a batch")));
    }
    const GatheredRows full = std::exchange(gathered_[**bucket], {});
    absl::StatusOr<Row> batch =
        PadAndStack(full, node_->column_names(), node_->buckets().padding, BoundaryExtent(**bucket));
    if (!batch.ok()) return Stop(batch.status());
    any_ = true;
    *row = *std::move(batch);
    return true;
  }

 private:
  /// Reads up to the first bucket that is full. At the end of the epoch it gives the remainders, then none.
  absl::StatusOr<std::optional<std::size_t>> FillBucket() {
    while (input_ != nullptr) {
      Row next;
      absl::StatusOr<bool> more = input_->Next(&next);
      if (!more.ok()) return more.status();
      if (!*more) break;
      absl::StatusOr<std::size_t> bucket = node_->BucketOf(next, rows_read_);
      if (!bucket.ok()) return bucket.status();
      GatheredRows& gathered = gathered_[*bucket];
      gathered.rows.push_back(std::move(next));
      gathered.places.push_back(rows_read_++);
      if (static_cast<std::int64_t>(gathered.rows.size()) == node_->buckets().batch_sizes[*bucket]) return *bucket;
    }
    input_ = nullptr;
    if (stopped_ || node_->buckets().options.drop_remainder) return std::nullopt;
    for (std::size_t bucket = 0; bucket < gathered_.size(); ++bucket) {
      if (!gathered_[bucket].rows.empty()) return bucket;
    }
    return std::nullopt;
  }

  std::optional<std::int64_t> BoundaryExtent(std::size_t bucket) const {
    const Buckets& buckets = node_->buckets();
    if (!buckets.options.pad_to_bucket_boundary || bucket >= buckets.boundaries.size()) return std::nullopt;
    return buckets.boundaries[bucket] - 1;
  }

  absl::Status Stop(absl::Status status) {
    input_ = nullptr;
    stopped_ = true;
    return status;
  }

  std::shared_ptr<const BucketBatchNode> node_;
  std::unique_ptr<DatasetIterator> input_;
  std::vector<GatheredRows> gathered_;
  std::int64_t rows_read_ = 0;
  bool any_ = false;
  bool stopped_ = false;
};

}  // namespace

absl::StatusOr<std::unique_ptr<DatasetIterator>> BucketBatchNode::NewIterator(std::int64_t epoch) const {
  absl::StatusOr<std::unique_ptr<DatasetIterator>> input = input_->NewIterator(epoch);
  if (!input.ok()) return input.status();
  return std::make_unique<BucketBatchIterator>(std::static_pointer_cast<const BucketBatchNode>(shared_from_this()),
                                               *std::move(input));
}

std::int64_t BucketBatchNode::batch_rows() const {
  const std::vector<std::int64_t>& sizes = buckets_.batch_sizes;
  const bool equal = std::all_of(sizes.begin(), sizes.end(), [&](std::int64_t size) { return size == sizes[0]; });
  return equal ? sizes[0] : 0;
}

absl::StatusOr<std::int64_t> BucketBatchNode::LengthOf(const Row& row) const {
  Row given;
  for (std::size_t column : buckets_.columns) given.push_back(row[column]);
  if (buckets_.options.element_length_function != nullptr) return buckets_.options.element_length_function(given);
  if (given[0].rank() < 1) return absl::InvalidArgumentError("a tensor of rank 0 has no length");
  return given[0].dim(0);
}

absl::StatusOr<std::size_t> BucketBatchNode::BucketOf(const Row& row, std::int64_t place) const {
  const auto where = [&] {
    ColumnNames names;
    for (std::size_t column : buckets_.columns) names.push_back(column_names()[column]);
    return ColumnsAndRow(names, place);
  };
  absl::StatusOr<std::int64_t> length = CallUser([&] { return LengthOf(row); }, where);
  if (length.ok() && *length < 0) length = absl::InvalidArgumentError(absl::StrCat("the length is ", *length));
  const std::vector<std::int64_t>& boundaries = buckets_.boundaries;
  if (length.ok() && buckets_.options.pad_to_bucket_boundary && *length >= boundaries.back()) {
    length = absl::InvalidArgumentError(absl::StrCat(
        "length ", *length, " has no boundary to be padded to; lengths below ", boundaries.back(), " are accepted"));
  }
  if (!length.ok()) {
    return absl::Status(length.status().code(), absl::StrCat(where(), ": ", length.status().message()));
  }
  return static_cast<std::size_t>(std::upper_bound(boundaries.begin(), boundaries.end(), *length) - boundaries.begin());
}

}  // namespace mpc::data::internal
