// Dataset::NewShareIterator: the batches of one rank.
#include "frontend/data/share.h"

#include <deque>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "frontend/data/dataset.h"

namespace mpc::data {
namespace {

using internal::NodePointer;
using internal::Places;

bool IsPowerOfTwo(std::int64_t number) { return number > 0 && (number & (number - 1)) == 0; }

absl::Status Refused(const char* field, std::int64_t given, const std::string& accepted) {
  return absl::InvalidArgumentError(absl::StrCat("ShareOfUpdates: ", field, " is ", given, "; accepted ", accepted));
}

/// The first of the rank's batches in an update.
std::int64_t FirstBatch(const ShareOfUpdates& share) { return share.rank * (share.micro_batches / share.ranks); }

absl::Status BeyondTheEpoch(const ShareOfUpdates& share, std::int64_t updates) {
  return absl::FailedPreconditionError(absl::StrCat("the epoch has ", updates, " updates of ", share.micro_batches,
                                                    " batches, but it is to be read from update ", share.first_update));
}

/// Reads the rank's batches alone.
class PartIterator : public ShareIterator {
 public:
  PartIterator(std::unique_ptr<DatasetIterator> batches, std::int64_t dropped)
      : batches_(std::move(batches)), dropped_(dropped) {}

  absl::StatusOr<bool> Next(Row* row) override {
    absl::StatusOr<bool> more = batches_->Next(row);
    ended_ = ended_ || (more.ok() && !*more);
    return more;
  }
  std::int64_t dropped_batches() const override { return ended_ ? dropped_ : 0; }

 private:
  std::unique_ptr<DatasetIterator> batches_;
  std::int64_t dropped_;
  bool ended_ = false;
};

absl::StatusOr<std::unique_ptr<ShareIterator>> OpenPart(const internal::DatasetNode& node, std::int64_t epoch,
                                                        const ShareOfUpdates& share) {
  absl::StatusOr<std::int64_t> batches = node.size();
  if (!batches.ok()) return batches.status();
  absl::StatusOr<bool> short_end = node.IsShort(*batches - 1);
  if (!short_end.ok()) return short_end.status();
  const std::int64_t updates = (*batches - (*short_end ? 1 : 0)) / share.micro_batches;
  if (share.first_update > updates) return BeyondTheEpoch(share, updates);
  const std::int64_t complete = updates * share.micro_batches;
  const Places places{.begin = share.first_update * share.micro_batches,
                      .end = share.partial == PartialUpdate::kKeep ? *batches : complete,
                      .phase = FirstBatch(share),
                      .period = share.micro_batches,
                      .count = share.micro_batches / share.ranks};
  absl::StatusOr<std::unique_ptr<DatasetIterator>> part = node.NewPartIterator(epoch, places);
  if (!part.ok()) return part.status();
  return std::make_unique<PartIterator>(*std::move(part), *batches - places.end);
}

/// Reads all batches, one update at a time, and drops those of other ranks.
class DroppingIterator : public ShareIterator {
 public:
  DroppingIterator(std::unique_ptr<DatasetIterator> batches, std::int64_t batch_rows, const ShareOfUpdates& share)
      : batches_(std::move(batches)), batch_rows_(batch_rows), share_(share) {}

  absl::StatusOr<bool> Next(Row* row) override {
    while (own_.empty() && batches_ != nullptr) {
      absl::Status status = ReadUpdate();
      if (status.ok() && batches_ == nullptr && updates_ < share_.first_update) {
        own_.clear();
        status = BeyondTheEpoch(share_, updates_);
      }
      if (status.ok()) continue;
      batches_ = nullptr;
      return status;
    }
    if (own_.empty()) return false;
    *row = std::move(own_.front());
    own_.pop_front();
    return true;
  }
  std::int64_t dropped_batches() const override { return batches_ == nullptr && own_.empty() ? dropped_ : 0; }

 private:
  bool IsShort(const Row& row) const {
    return batch_rows_ > 0 && !row.empty() && row[0].rank() > 0 && row[0].dim(0) < batch_rows_;
  }

  /// As DatasetIterator::Next, where a batch may have been read ahead.
  absl::StatusOr<bool> Read(Row* row) {
    if (ahead_.empty()) return batches_->Next(row);
    *row = std::exchange(ahead_, {});
    return true;
  }

  /// Reads up to the end of an update. At the end of the epoch there is no input afterwards.
  absl::Status ReadUpdate() {
    const std::int64_t first = FirstBatch(share_);
    const std::int64_t end = first + share_.micro_batches / share_.ranks;
    std::deque<Row> own;
    std::int64_t read = 0;
    bool complete = false;
    for (Row row; read < share_.micro_batches; ++read) {
      absl::StatusOr<bool> more = Read(&row);
      if (!more.ok()) return more.status();
      if (!*more) break;
      complete = read + 1 == share_.micro_batches && !IsShort(row);
      if (read >= first && read < end) own.push_back(std::move(row));
    }
    bool ended = read < share_.micro_batches;
    if (!ended && !complete) {
      absl::StatusOr<bool> more = batches_->Next(&ahead_);
      if (!more.ok()) return more.status();
      ended = !*more;
      complete = *more;
    }
    if (ended) batches_ = nullptr;
    const bool keeps = complete || share_.partial == PartialUpdate::kKeep;
    if (!keeps) dropped_ = read;
    if (keeps && updates_ >= share_.first_update) own_ = std::move(own);
    updates_ += complete ? 1 : 0;
    return absl::OkStatus();
  }

  std::unique_ptr<DatasetIterator> batches_;  ///< null at the end of the epoch
  std::int64_t batch_rows_;
  ShareOfUpdates share_;
  std::deque<Row> own_;  ///< the rank's batches of the update that was read last
  Row ahead_;            ///< the next batch, where it was read to see whether the epoch goes on; else empty
  std::int64_t updates_ = 0;
  std::int64_t dropped_ = 0;
};

}  // namespace

absl::Status CheckShare(const ShareOfUpdates& share) {
  if (!IsPowerOfTwo(share.micro_batches)) return Refused("micro_batches", share.micro_batches, "are powers of two");
  if (!IsPowerOfTwo(share.ranks) || share.ranks > share.micro_batches) {
    return Refused("ranks", share.ranks,
                   absl::StrCat("are powers of two up to micro_batches, which is ", share.micro_batches));
  }
  if (share.rank < 0 || share.rank >= share.ranks) {
    return Refused("rank", share.rank, absl::StrCat("are 0 to ", share.ranks - 1));
  }
  if (share.first_update < 0) return Refused("first_update", share.first_update, "is 0 and above");
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ShareIterator>> Dataset::NewShareIterator(std::int64_t epoch,
                                                                         const ShareOfUpdates& share) const {
  if (!status_.ok()) return status_;
  if (absl::Status status = CheckShare(share); !status.ok()) return status;
  if (node_->reads_parts()) return OpenPart(*node_, epoch, share);
  absl::StatusOr<std::unique_ptr<DatasetIterator>> batches = node_->NewIterator(epoch);
  if (!batches.ok()) return batches.status();
  return std::make_unique<DroppingIterator>(*std::move(batches), node_->batch_rows(), share);
}

}  // namespace mpc::data
