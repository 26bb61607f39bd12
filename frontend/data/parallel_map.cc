// Map with worker threads.
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "frontend/data/map_node.h"

namespace mpc::data::internal {
namespace {

/// A worker takes the next row of the input and a place in the queue, maps the row and fills its place. The places are
/// in the order of rows, because one worker reads at a time. The consumer empties the queue from its front.
class ParallelMapIterator : public DatasetIterator {
 public:
  ParallelMapIterator(std::shared_ptr<const MapNode> node, PositionedRows rows, std::int64_t workers)
      : node_(std::move(node)), rows_(std::move(rows)), capacity_(2 * static_cast<std::size_t>(workers)) {
    for (std::int64_t i = 0; i < workers; ++i) workers_.emplace_back([this] { Work(); });
  }

  /// Each worker notices at its next row; what they have made is dropped.
  ~ParallelMapIterator() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  absl::StatusOr<bool> Next(Row* row) override {
    if (at_end_) return false;
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !queue_.empty() && queue_.front()->filled; });
    const std::shared_ptr<Place> place = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    changed_.notify_all();
    at_end_ = place->exception != nullptr || !place->more.ok() || !*place->more;
    if (place->exception != nullptr) std::rethrow_exception(std::exchange(place->exception, nullptr));
    if (!at_end_) *row = std::move(place->row);
    return place->more;
  }

 private:
  /// What Next is to give. Its worker alone touches it until it is filled.
  struct Place {
    absl::StatusOr<bool> more = false;
    Row row;
    std::exception_ptr exception;
    bool filled = false;  ///< guarded by mutex_
  };

  void Work() {
    while (std::shared_ptr<Place> place = MakeRow()) {
      const bool last = place->exception != nullptr || !place->more.ok() || !*place->more;
      {
        const std::lock_guard<std::mutex> lock(mutex_);
        place->filled = true;
        stopped_ = stopped_ || last;
      }
      changed_.notify_all();
      if (last) return;
    }
  }

  /// A place with the next row, the end of the epoch or an error in it. Null once the iterator has stopped.
  std::shared_ptr<Place> MakeRow() {
    std::unique_lock<std::mutex> reads(read_mutex_);
    std::shared_ptr<Place> place = TakePlace();
    if (place == nullptr) return nullptr;
    try {
      RowPosition position;
      place->more = rows_.Next(&place->row, &position);
      if (!place->more.ok() || !*place->more) return End(std::move(place));
      reads.unlock();
      if (absl::Status status = node_->Apply(position, &place->row); !status.ok()) place->more = status;
    } catch (...) {
      place->exception = std::current_exception();
      if (reads.owns_lock()) return End(std::move(place));
    }
    return place;
  }

  /// Keeps other workers from reading behind the end. The caller holds read_mutex_.
  std::shared_ptr<Place> End(std::shared_ptr<Place> place) {
    const std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
    return place;
  }

  /// Waits for room in the queue. The caller holds read_mutex_.
  std::shared_ptr<Place> TakePlace() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return stopped_ || queue_.size() < capacity_; });
    if (stopped_) return nullptr;
    queue_.push_back(std::make_shared<Place>());
    return queue_.back();
  }

  std::shared_ptr<const MapNode> node_;
  std::mutex read_mutex_;  ///< taken before mutex_
  PositionedRows rows_;    ///< guarded by read_mutex_
  const std::size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::shared_ptr<Place>> queue_;  ///< guarded by mutex_
  bool stopped_ = false;                      ///< no more rows are read; guarded by mutex_
  bool at_end_ = false;                       ///< the consumer's alone
  std::vector<std::thread> workers_;          // last: they start when everything above exists
};

}  // namespace

std::unique_ptr<DatasetIterator> NewParallelMap(std::shared_ptr<const MapNode> node, PositionedRows rows,
                                                std::int64_t workers) {
  return std::make_unique<ParallelMapIterator>(std::move(node), std::move(rows), workers);
}

}  // namespace mpc::data::internal
