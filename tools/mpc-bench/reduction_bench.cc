#include "tools/mpc-bench/reduction_bench.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/communicator.h"
#include "runtime/aligned_buffer.h"
#include "tools/mpc-bench/child_processes.h"
#include "tools/mpc-bench/report.h"

namespace mpc::tools {
namespace {

constexpr int kSumRounds = 5;
constexpr std::int64_t kMostMessages = 2000;  // of a round

using Clock = std::chrono::steady_clock;

/// One rank's work: every rank makes the same calls.
class Rank {
 public:
  Rank(const ReductionOptions& options, const std::string& name, int rank)
      : options_(options), name_(name), rank_(rank) {}

  absl::StatusOr<std::vector<ReductionTimes>> Run();

 private:
  absl::Status Connect();
  /// As many messages as rank 0 says that fit into the round's seconds, and one before them.
  absl::Status Round(Communicator& communicator, ReductionTimes& times);
  absl::StatusOr<double> Message(Communicator& communicator, std::size_t elements);

  const ReductionOptions& options_;
  const std::string& name_;
  int rank_;
  std::vector<std::unique_ptr<Communicator>> communicators_;  ///< one for each size of slots
  runtime::AlignedBuffer memory_;
};

absl::Status Rank::Connect() {
  for (const std::int64_t bytes : options_.slot_bytes) {
    absl::StatusOr<std::unique_ptr<Communicator>> communicator =
        distributed::CreateSharedCommunicator({.name = absl::StrCat(name_, "-", communicators_.size()),
                                               .rank = rank_,
                                               .size = static_cast<int>(options_.ranks),
                                               .slot_bytes = static_cast<std::size_t>(bytes)});
    if (!communicator.ok()) return communicator.status();
    communicators_.push_back(*std::move(communicator));
  }
  return absl::OkStatus();
}

absl::StatusOr<double> Rank::Message(Communicator& communicator, std::size_t elements) {
  const ReducedPart part{
      .input = memory_.data(), .output = memory_.data(), .elements = elements, .dtype = options_.dtype};
  if (absl::Status status = communicator.Barrier(); !status.ok()) return status;
  const Clock::time_point begin = Clock::now();
  if (absl::Status status = communicator.AllReduce({&part, 1}); !status.ok()) return status;
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

absl::Status Rank::Round(Communicator& communicator, ReductionTimes& times) {
  const auto elements = static_cast<std::size_t>(times.elements);
  const absl::StatusOr<double> first = Message(communicator, elements);
  if (!first.ok()) return first.status();
  const double fitting = options_.seconds / kSumRounds / *first;
  std::int64_t count = std::clamp<std::int64_t>(static_cast<std::int64_t>(std::min(fitting, 1e9)), 1, kMostMessages);
  if (absl::Status status = communicator.Broadcast(&count, sizeof(count), 0); !status.ok()) return status;
  for (std::int64_t i = 0; i < count; ++i) {
    const absl::StatusOr<double> seconds = Message(communicator, elements);
    if (!seconds.ok()) return seconds.status();
    times.seconds.push_back(*seconds);
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<ReductionTimes>> Rank::Run() {
  if (absl::Status status = Connect(); !status.ok()) return status;
  const std::int64_t most = *std::max_element(options_.elements.begin(), options_.elements.end());
  memory_ = runtime::AlignedBuffer(static_cast<std::size_t>(most) * ElementSize(options_.dtype));
  std::vector<ReductionTimes> all;
  for (const std::int64_t elements : options_.elements) {
    for (const std::int64_t bytes : options_.slot_bytes) all.push_back({.elements = elements, .slot_bytes = bytes});
  }
  for (int round = 0; round < kSumRounds; ++round) {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (absl::Status status = Round(*communicators_[i % communicators_.size()], all[i]); !status.ok()) return status;
    }
  }
  return all;
}

}  // namespace

absl::StatusOr<std::vector<ReductionTimes>> MeasureReductions(const ReductionOptions& options) {
  const std::string name = absl::StrCat("mpc-bench-", ::getpid());
  const auto take_part = [&](std::int64_t child) {
    const absl::Status status = Rank(options, name, static_cast<int>(child) + 1).Run().status();
    if (!status.ok()) std::cerr << "mpc-bench: rank " << child + 1 << ": " << status.message() << std::endl;
    return status.ok() ? 0 : 1;
  };
  const absl::StatusOr<ChildProcesses> others = ChildProcesses::Start(options.ranks - 1, take_part, "--ranks");
  if (!others.ok()) return others.status();
  return Rank(options, name, 0).Run();
}

std::string FormatReductions(const ReductionOptions& options, const std::vector<ReductionTimes>& times) {
  std::string text = absl::StrCat("sums of ", std::string(DTypeName(options.dtype)), " over ", options.ranks,
                                  " ranks, transport shared; ", ProcessorName(), ", ",
                                  std::thread::hardware_concurrency(), " processors\n");
  absl::StrAppendFormat(&text, "%-12s %-10s %10s %10s %10s   ms, GB/s\n", "elements", "slot, KiB", "median", "p5",
                        "p95");
  for (const ReductionTimes& row : times) {
    const Percentiles seconds = PercentilesOf(row.seconds);
    const double bytes = static_cast<double>(row.elements) * static_cast<double>(ElementSize(options.dtype));
    absl::StrAppendFormat(&text, "%-12d %-10.6g %10.4f %10.4f %10.4f   %.2f\n", row.elements,
                          static_cast<double>(row.slot_bytes) / 1024, 1e3 * seconds.median, 1e3 * seconds.p5,
                          1e3 * seconds.p95, 1e-9 * bytes / seconds.median);
  }
  return text;
}

Json ReductionsToJson(const ReductionOptions& options, const std::vector<ReductionTimes>& times) {
  Json rows = Json::array();
  for (const ReductionTimes& row : times) {
    const Percentiles seconds = PercentilesOf(row.seconds);
    rows.push_back({{"elements", row.elements},
                    {"bytes", row.elements * static_cast<std::int64_t>(ElementSize(options.dtype))},
                    {"slot_bytes", row.slot_bytes},
                    {"seconds",
                     {{"median", seconds.median},
                      {"p5", seconds.p5},
                      {"p95", seconds.p95},
                      {"least", *std::min_element(row.seconds.begin(), row.seconds.end())}}}});
  }
  return {{"ranks", options.ranks},
          {"processors", std::thread::hardware_concurrency()},
          {"dtype", std::string(DTypeName(options.dtype))},
          {"transport", "shared"},
          {"processor", ProcessorName()},
          {"rows", rows}};
}

}  // namespace mpc::tools
