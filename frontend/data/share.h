// Which batches of a data set each of several processes trains on.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "frontend/data/dataset_node.h"

namespace mpc::data {

/// What becomes of the batches behind the last complete update of an epoch.
enum class PartialUpdate : std::uint8_t {
  kDrop,  ///< they are left out, as in training
  kKeep,  ///< each is read by its rank, as in evaluation; a rank may have none
};

/// The batches of one rank. `micro_batches` batches make an update: batch v of update u is batch u * micro_batches + v
/// of the epoch. Rank r has batches r * micro_batches / ranks to (r + 1) * micro_batches / ranks - 1 of each update. So
/// what an update reads does not depend on `ranks`.
///
/// An update is complete where all of its batches are there. If the last batch of the epoch is among them, it has as
/// many rows as the others.
struct ShareOfUpdates {
  std::int64_t micro_batches = 1;  ///< a power of two, at least `ranks`
  std::int64_t rank = 0;           ///< from 0 to ranks - 1
  std::int64_t ranks = 1;          ///< a power of two
  std::int64_t first_update = 0;   ///< updates of the epoch that are not read, as when training resumes behind them
  PartialUpdate partial = PartialUpdate::kDrop;
};

/// Errors (INVALID_ARGUMENT): a number that the field does not take; it is named with what it takes.
absl::Status CheckShare(const ShareOfUpdates& share);

/// The batches of one rank, in the order of the epoch.
class ShareIterator : public DatasetIterator {
 public:
  /// Batches of the epoch, of all ranks, that no update takes. Known once Next has returned false, and 0 before it.
  virtual std::int64_t dropped_batches() const = 0;
};

}  // namespace mpc::data
