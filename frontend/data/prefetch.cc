#include <condition_variable>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>

#include "frontend/data/stages.h"

namespace mpc::data::internal {
namespace {

using Opening = std::function<absl::StatusOr<std::unique_ptr<DatasetIterator>>()>;

/// A thread fills a ring of at most `depth` rows, the consumer empties it. The thread's input iterator is made, used
/// and destroyed on that thread alone; everything else that both touch is guarded by mutex_.
class PrefetchIterator : public DatasetIterator {
 public:
  /// `open` makes the iterator of the rows.
  PrefetchIterator(Opening open, std::size_t depth)
      : depth_(depth), producer_([this, open = std::move(open)] { Produce(open); }) {}

  /// The producer notices at its next row; what it has made is dropped.
  ~PrefetchIterator() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      abandoned_ = true;
    }
    changed_.notify_all();
    producer_.join();
  }

  absl::StatusOr<bool> Next(Row* row) override {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !ready_.empty() || ended_; });
    if (!ready_.empty()) {
      *row = std::move(ready_.front());
      ready_.pop_front();
      lock.unlock();
      changed_.notify_all();
      return true;
    }
    if (std::exception_ptr exception = std::exchange(exception_, nullptr)) std::rethrow_exception(exception);
    if (absl::Status status = std::exchange(status_, absl::OkStatus()); !status.ok()) return status;
    return false;
  }

 private:
  void Produce(const Opening& open) {
    absl::Status status;
    std::exception_ptr exception;
    try {
      status = ProduceRows(open);
    } catch (...) {
      exception = std::current_exception();
    }
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      status_ = std::move(status);
      exception_ = std::move(exception);
      ended_ = true;
    }
    changed_.notify_all();
  }

  absl::Status ProduceRows(const Opening& open) {
    absl::StatusOr<std::unique_ptr<DatasetIterator>> iterator = open();
    if (!iterator.ok()) return iterator.status();
    for (;;) {
      Row row;
      absl::StatusOr<bool> more = (*iterator)->Next(&row);
      if (!more.ok()) return more.status();
      if (!*more) return absl::OkStatus();
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [this] { return ready_.size() < depth_ || abandoned_; });
      if (abandoned_) return absl::OkStatus();
      ready_.push_back(std::move(row));
      lock.unlock();
      changed_.notify_all();
    }
  }

  const std::size_t depth_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Row> ready_;
  absl::Status status_;
  std::exception_ptr exception_;
  bool ended_ = false;
  bool abandoned_ = false;
  std::thread producer_;  // last: it starts when everything above exists
};

}  // namespace

absl::StatusOr<std::unique_ptr<DatasetIterator>> PrefetchNode::NewIterator(std::int64_t epoch) const {
  return std::make_unique<PrefetchIterator>([input = input_, epoch] { return input->NewIterator(epoch); }, depth_);
}

absl::StatusOr<std::unique_ptr<DatasetIterator>> PrefetchNode::NewPartIterator(std::int64_t epoch,
                                                                               const Places& places) const {
  return std::make_unique<PrefetchIterator>(
      [input = input_, epoch, places] { return input->NewPartIterator(epoch, places); }, depth_);
}

}  // namespace mpc::data::internal
