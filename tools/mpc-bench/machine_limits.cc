#include "tools/mpc-bench/machine_limits.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <fstream>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/parallel.h"
#include "tools/mpc-bench/vector_loops.h"
#include "tools/support/percentiles.h"
#include "tools/support/stopwatch.h"

namespace mpc::tools {
namespace {

/// Bytes of one call of Measure: long enough to time, short enough to be repeated beside what is measured.
constexpr std::size_t kPiece = std::size_t{64} << 20;
constexpr std::size_t kBlock = std::size_t{64} << 10;

}  // namespace

std::size_t AvailableBytes() {
  std::ifstream file("/proc/meminfo");
  std::string name;
  std::size_t kibibytes = 0;
  std::string unit;
  while (file >> name >> kibibytes >> unit) {
    if (name == "MemAvailable:") return 1024 * kibibytes;
  }
  return static_cast<std::size_t>(::sysconf(_SC_AVPHYS_PAGES)) * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

CopyProbe::CopyProbe(std::size_t footprint)
    : source_((footprint / 2 + kPiece - 1) / kPiece * kPiece), target_(source_.size()), piece_(kPiece) {
  std::array<std::vector<double>, 2> rates;
  for (int round = 0; round < 5; ++round) {
    for (const bool streaming : {false, true}) rates[streaming ? 1 : 0].push_back(Copy(streaming));
  }
  streaming_ = PercentilesOf(rates[1]).median > PercentilesOf(rates[0]).median;
}

std::string_view CopyProbe::form() const { return streaming_ ? "streaming stores" : "memcpy"; }

double CopyProbe::Measure() { return Copy(streaming_); }

double CopyProbe::Copy(bool streaming) {
  const std::byte* const from = source_.data() + next_;
  std::byte* const to = target_.data() + next_;
  next_ = (next_ + piece_) % source_.size();
  const Clock::time_point begin = Clock::now();
  cpu::ParallelFor(static_cast<std::int64_t>(piece_ / kBlock), static_cast<std::int64_t>(piece_), [&](std::int64_t i) {
    const std::size_t offset = static_cast<std::size_t>(i) * kBlock;
    if (streaming) {
      StreamCopy(from + offset, to + offset, kBlock);
    } else {
      std::memcpy(to + offset, from + offset, kBlock);
    }
  });
  return 2 * static_cast<double>(piece_) / SecondsSince(begin);
}

double MeasureMultiplyAdd(DType dtype) {
  const MultiplyAddLoop loop = FindMultiplyAddLoop(dtype);
  constexpr std::int64_t kRounds = 1'000'000;
  const int threads = cpu::NumThreads();
  std::vector<float> sums(static_cast<std::size_t>(threads));
  const Clock::time_point begin = Clock::now();
  cpu::ParallelFor(threads, threads * kRounds,
                   [&](std::int64_t i) { sums[static_cast<std::size_t>(i)] = loop.run(kRounds); });
  return loop.flops_a_round * static_cast<double>(kRounds) * threads / SecondsSince(begin);
}

std::string_view MultiplyAddInstructions(DType dtype) { return FindMultiplyAddLoop(dtype).instructions; }

}  // namespace mpc::tools
