#include "tests/runtime/thread_communicator.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "kernels/float16.h"
#include "tests/runtime/on_threads.h"

namespace mpc::test {
namespace {

bool IsPowerOfTwo(std::size_t number) { return number > 0 && (number & (number - 1)) == 0; }

template <typename T>
T Sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    const float sum = static_cast<float>(a) + static_cast<float>(b);
    return T(std::isnan(sum) ? std::numeric_limits<float>::quiet_NaN() : sum);
  }
}

template <typename T>
T Combine(Reduction reduction, T a, T b) {
  if (reduction == Reduction::kSum) return Sum(a, b);
  if constexpr (std::is_integral_v<T>) return reduction == Reduction::kMax ? std::max(a, b) : std::min(a, b);
  return a;
}

/// The balanced tree over ranks of one element. The number of ranks is a power of two where it is a sum.
template <typename T>
T Reduce(Reduction reduction, std::vector<T> values) {
  while (values.size() > 1) {
    std::vector<T> sums;
    for (std::size_t i = 0; i < values.size(); i += 2) {
      sums.push_back(i + 1 < values.size() ? Combine(reduction, values[i], values[i + 1]) : values[i]);
    }
    values = std::move(sums);
  }
  return values[0];
}

template <typename T>
void ReduceElements(Reduction reduction, const std::vector<const void*>& inputs, std::size_t begin, std::size_t count,
                    void* output) {
  for (std::size_t i = 0; i < count; ++i) {
    std::vector<T> values;
    for (const void* input : inputs) values.push_back(static_cast<const T*>(input)[begin + i]);
    static_cast<T*>(output)[i] = Reduce(reduction, std::move(values));
  }
}

/// Elements [begin, begin + count) of the reduction of `inputs`, as bytes.
std::vector<std::byte> ReducedBytes(const ReducedPart& part, const std::vector<const void*>& inputs, std::size_t begin,
                                    std::size_t count) {
  std::vector<std::byte> bytes(count * ElementSize(part.dtype));
  const auto reduce = [&]<typename T>(T) { ReduceElements<T>(part.reduction, inputs, begin, count, bytes.data()); };
  switch (part.dtype) {
    case DType::kF32:
      reduce(float());
      break;
    case DType::kF16:
      reduce(Half());
      break;
    case DType::kBF16:
      reduce(BFloat16());
      break;
    case DType::kI32:
      reduce(std::int32_t());
      break;
    default:
      reduce(std::int64_t());
  }
  return bytes;
}

absl::Status CheckPart(const ReducedPart& part, std::size_t ranks) {
  const bool whole = part.dtype == DType::kI32 || part.dtype == DType::kI64;
  const bool floating = part.dtype == DType::kF32 || part.dtype == DType::kF16 || part.dtype == DType::kBF16;
  if (part.reduction == Reduction::kSum ? !whole && !floating : !whole) {
    return absl::InvalidArgumentError(absl::StrCat("no reduction takes ", std::string(DTypeName(part.dtype))));
  }
  if (part.elements > 0 && (part.input == nullptr || part.output == nullptr)) {
    return absl::InvalidArgumentError("an operand is null");
  }
  if (part.reduction == Reduction::kSum && !IsPowerOfTwo(ranks)) {
    return absl::InvalidArgumentError(absl::StrCat("a sum over ", ranks, " ranks, which is no power of two"));
  }
  return absl::OkStatus();
}

std::string TextOf(const ReducedPart& part) {
  return absl::StrCat(part.elements, " ", std::string(DTypeName(part.dtype)), " ", static_cast<int>(part.reduction));
}

}  // namespace

class ThreadCommunicator : public Communicator {
 public:
  ThreadCommunicator(std::shared_ptr<ThreadGroup> group, int rank) : group_(std::move(group)), rank_(rank) {}
  ~ThreadCommunicator() override {
    const std::lock_guard<std::mutex> lock(group_->mutex_);
    group_->ranks_[static_cast<std::size_t>(rank_)].has_left = true;
    group_->changed_.notify_all();
  }

  std::string_view transport() const override { return "threads"; }
  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(group_->ranks_.size()); }
  absl::Status status() const override { return failed_; }
  std::chrono::milliseconds time_limit() const override { return group_->timeout_; }
  absl::Status LookForLoss() override { return failed_.ok() ? group_->LookForLoss(rank_) : failed_; }

  absl::Status AllReduce(absl::Span<const ReducedPart> parts) override {
    std::string call = "AllReduce";
    for (const ReducedPart& part : parts) {
      if (absl::Status status = CheckPart(part, Ranks()); !status.ok()) return Fail(status);
      absl::StrAppend(&call, " ", TextOf(part));
    }
    std::vector<std::vector<std::byte>> reduced;
    const auto compute = [&] {
      for (std::size_t i = 0; i < parts.size(); ++i) {
        const auto input = [i](const void* operands) {
          return (*static_cast<const absl::Span<const ReducedPart>*>(operands))[i].input;
        };
        reduced.push_back(ReducedBytes(parts[i], Inputs(input), 0, parts[i].elements));
      }
    };
    if (absl::Status status = Together(call, &parts, compute); !status.ok()) return status;
    for (std::size_t i = 0; i < parts.size(); ++i) Copy(reduced[i], parts[i].output);
    return absl::OkStatus();
  }

  absl::Status ReduceScatter(const ReducedPart& part) override {
    absl::Status checked = CheckPart(part, Ranks());
    if (checked.ok() && part.elements % Ranks() != 0) {
      checked = absl::InvalidArgumentError(absl::StrCat(part.elements, " elements over ", Ranks(), " ranks"));
    }
    if (!checked.ok()) return Fail(checked);
    std::vector<std::byte> reduced;
    const auto compute = [&] {
      const auto input = [](const void* operands) { return static_cast<const ReducedPart*>(operands)->input; };
      const std::size_t share = part.elements / Ranks();
      reduced = ReducedBytes(part, Inputs(input), share * static_cast<std::size_t>(rank_), share);
    };
    absl::Status status = Together(absl::StrCat("ReduceScatter ", TextOf(part)), &part, compute);
    if (status.ok()) Copy(reduced, part.output);
    return status;
  }

  absl::Status AllGather(const void* input, void* output, std::size_t bytes) override {
    std::vector<std::byte> gathered(bytes * Ranks());
    const auto compute = [&] {
      const std::vector<const void*> inputs = Inputs([](const void* operands) { return operands; });
      for (std::size_t i = 0; i < inputs.size() && bytes > 0; ++i) {
        std::memcpy(gathered.data() + i * bytes, inputs[i], bytes);
      }
    };
    absl::Status status = Together(absl::StrCat("AllGather ", bytes), input, compute);
    if (status.ok()) Copy(gathered, output);
    return status;
  }

  absl::Status Broadcast(void* data, std::size_t bytes, int root) override {
    if (root < 0 || root >= size()) return Fail(absl::InvalidArgumentError(absl::StrCat("there is no rank ", root)));
    std::vector<std::byte> sent(bytes);
    const auto compute = [&] {
      const void* from = Inputs([](const void* operands) { return operands; })[static_cast<std::size_t>(root)];
      if (bytes > 0) std::memcpy(sent.data(), from, bytes);
    };
    absl::Status status = Together(absl::StrCat("Broadcast ", bytes, " of rank ", root), data, compute);
    if (status.ok()) Copy(sent, data);
    return status;
  }

  absl::Status Barrier() override {
    return Together("Barrier", nullptr, [] {});
  }

 private:
  std::size_t Ranks() const { return group_->ranks_.size(); }

  absl::Status Fail(absl::Status status) {
    if (failed_.ok()) failed_ = std::move(status);
    return failed_;
  }

  /// What `input` makes of the operands of each rank. All ranks are between the two meetings of Together.
  template <typename Input>
  std::vector<const void*> Inputs(const Input& input) const {
    const std::lock_guard<std::mutex> lock(group_->mutex_);
    std::vector<const void*> inputs;
    for (const ThreadGroup::Rank& rank : group_->ranks_) inputs.push_back(input(rank.operands));
    return inputs;
  }

  /// Computes while all ranks have their operands in place. No rank writes an output before all have computed.
  template <typename Compute>
  absl::Status Together(const std::string& call, const void* operands, const Compute& compute) {
    if (!failed_.ok()) return failed_;
    if (absl::Status status = group_->Meet(rank_, call, operands); !status.ok()) return Fail(status);
    compute();
    absl::Status status = group_->Meet(rank_, call, operands);
    return status.ok() ? status : Fail(status);
  }

  static void Copy(const std::vector<std::byte>& bytes, void* output) {
    if (!bytes.empty()) std::memcpy(output, bytes.data(), bytes.size());
  }

  std::shared_ptr<ThreadGroup> group_;
  int rank_;
  absl::Status failed_;
};

std::unique_ptr<Communicator> ThreadGroup::Join(int rank) {
  return std::make_unique<ThreadCommunicator>(shared_from_this(), rank);
}

absl::Status ThreadGroup::LookForLoss(int rank) {
  const std::lock_guard<std::mutex> lock(mutex_);
  for (std::size_t other = 0; other < ranks_.size(); ++other) {
    if (static_cast<int>(other) != rank && ranks_[other].has_left) {
      return absl::UnavailableError(absl::StrCat("rank ", other, " has left"));
    }
  }
  return failed_;
}

absl::Status ThreadGroup::Judge() const {
  for (std::size_t rank = 1; rank < ranks_.size(); ++rank) {
    if (ranks_[rank].call == ranks_[0].call) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("rank 0 calls ", ranks_[0].call, ", and rank ", rank, " calls ", ranks_[rank].call));
  }
  return absl::OkStatus();
}

absl::Status ThreadGroup::Meet(int rank, const std::string& call, const void* operands) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (!failed_.ok()) return failed_;
  Rank& own = ranks_[static_cast<std::size_t>(rank)];
  own.call = call;
  own.operands = operands;
  own.has_come = true;
  if (++arrived_ == static_cast<int>(ranks_.size())) {
    outcome_ = failed_ = Judge();
    for (Rank& each : ranks_) each.has_come = false;
    arrived_ = 0;
    ++meetings_;
    changed_.notify_all();
    return outcome_;
  }
  const std::uint64_t meeting = meetings_;
  const auto gone = [this] {
    return std::ranges::find_if(ranks_, [](const Rank& each) { return each.has_left && !each.has_come; });
  };
  const auto goes_on = [&] { return meetings_ != meeting || !failed_.ok() || gone() != ranks_.end(); };
  const bool in_time = changed_.wait_for(lock, timeout_, goes_on);
  if (meetings_ != meeting) return outcome_;
  if (failed_.ok() && gone() != ranks_.end()) {
    failed_ = absl::UnavailableError(absl::StrCat("rank ", gone() - ranks_.begin(), " has left, in ", call));
  }
  if (failed_.ok() && !in_time) {
    std::vector<std::size_t> missing;
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (!ranks_[i].has_come) missing.push_back(i);
    }
    failed_ = absl::DeadlineExceededError(absl::StrCat("rank ", absl::StrJoin(missing, ", "), " has not come to ", call,
                                                       " within ", timeout_.count(), " ms"));
  }
  changed_.notify_all();
  return failed_;
}

void OnRanks(int size, const std::function<void(Communicator& communicator)>& body, std::chrono::milliseconds timeout) {
  const auto group = std::make_shared<ThreadGroup>(size, timeout);
  std::vector<std::unique_ptr<Communicator>> communicators;
  for (int rank = 0; rank < size; ++rank) communicators.push_back(group->Join(rank));
  OnThreads(size, [&](int rank) {
    const std::unique_ptr<Communicator> communicator = std::move(communicators[static_cast<std::size_t>(rank)]);
    body(*communicator);
  });
}

}  // namespace mpc::test
