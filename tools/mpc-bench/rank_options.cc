#include "tools/mpc-bench/rank_options.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "tools/mpc-bench/options.h"
#include "tools/mpc-bench/peer.h"
#include "tools/support/byte_size.h"

namespace mpc::tools {
namespace {

constexpr std::int64_t kMostRanks = 1024;
constexpr std::int64_t kMostElements = std::int64_t{1} << 32;
constexpr std::int64_t kLeastSlot = 64;  // a cache line for each rank; more ranks need more

absl::Status ParseElements(const std::string& value, std::vector<std::int64_t>& elements) {
  elements.clear();
  for (const absl::string_view part : absl::StrSplit(value, ',')) {
    std::int64_t number = 0;
    if (!absl::SimpleAtoi(part, &number) || number < 1 || number > kMostElements) {
      return absl::InvalidArgumentError(absl::StrCat("'", value, "' is no list of whole numbers from 1 to ",
                                                     kMostElements, " with ',' between them"));
    }
    elements.push_back(number);
  }
  return absl::OkStatus();
}

absl::Status ParseSlots(const std::string& value, std::vector<std::int64_t>& slots) {
  slots.clear();
  for (const absl::string_view part : absl::StrSplit(value, ',')) {
    const absl::StatusOr<std::int64_t> bytes = ParseByteSize({part.data(), part.size()});
    if (!bytes.ok()) return absl::InvalidArgumentError(std::string(bytes.status().message()));
    if (*bytes % kLeastSlot != 0) {
      return absl::InvalidArgumentError(
          absl::StrCat("'", std::string(part), "' is no multiple of ", kLeastSlot, " bytes"));
    }
    slots.push_back(*bytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ParseRanks(const std::string& value, std::int64_t& ranks) {
  const bool whole = absl::SimpleAtoi(value, &ranks) && ranks >= 2 && ranks <= kMostRanks;
  if (whole && (ranks & (ranks - 1)) == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("'", value, "' is not a power of two from 2 to ", kMostRanks));
}

void AddReductionFlags(FlagSet& flags, ReductionOptions& options) {
  flags.Switch("all-reduce",
               "Measures sums over --ranks processes of this machine (default 2) on their own, with the transport "
               "\"shared\". --dtype is their type, --seconds the time for each size.",
               &options.measured);
  flags.Custom("elements", "N,...", "With --all-reduce: elements of a message. Default 61700,11000000,30000000.",
               /*is_switch=*/false,
               [&options](const std::string& value) { return ParseElements(value, options.elements); });
  flags.Custom("slot", "SIZE,...",
               "With --all-reduce: bytes that travel at a time, as in 256KiB,1MiB. Sizes take turns. Default 512KiB.",
               /*is_switch=*/false,
               [&options](const std::string& value) { return ParseSlots(value, options.slot_bytes); });
}

absl::Status ReadMeasuredType(const std::string& text, DType& dtype) {
  if (text.empty()) return absl::OkStatus();
  const std::optional<DType> parsed = ParseDType(text);
  if (!parsed.has_value() || (*parsed != DType::kF32 && !IsLowPrecision(*parsed))) {
    return absl::InvalidArgumentError(absl::StrCat("--dtype: '", text, "' is not f32, f16 or bf16"));
  }
  dtype = *parsed;
  return absl::OkStatus();
}

absl::Status FinishReductions(const BenchOptions& given, const std::vector<std::string>& models,
                              ReductionOptions& options) {
  if (!models.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("--all-reduce measures sums over processes on their own, without '", models[0], "'"));
  }
  if (given.ranks > 1) options.ranks = given.ranks;
  return ReadMeasuredType(given.dtype, options.dtype);
}

void AddRankPeers(BenchOptions& row) {
  if (row.ranks == 1 || row.single) return;
  std::vector<std::string> peers = RankPeerNames();
  for (const std::string& peer : row.peers) {
    if (std::find(peers.begin(), peers.end(), peer) == peers.end()) peers.push_back(peer);
  }
  row.peers = std::move(peers);
}

absl::Status CheckRanks(const BenchOptions& row) {
  if (row.ranks == 1) return absl::OkStatus();
  if (row.device != "cpu") {
    return absl::InvalidArgumentError(absl::StrCat("--ranks=", row.ranks, " and --device=", row.device,
                                                   " contradict each other: ranks are measured on the CPU"));
  }
  if (row.batch % row.ranks != 0) {
    return absl::InvalidArgumentError(absl::StrCat("--ranks=", row.ranks, " does not divide the ", row.batch,
                                                   " rows of a batch of ", row.model,
                                                   "; every rank takes equally many of them"));
  }
  return absl::OkStatus();
}

std::string RanksRemark(const BenchOptions& row) {
  const auto processors = static_cast<std::int64_t>(std::thread::hardware_concurrency());
  if (row.ranks == 1 || row.ranks * row.threads <= processors) return "";
  return absl::StrCat("remark: ", row.ranks, " ranks of ", row.threads, row.threads == 1 ? " thread" : " threads",
                      " share ", processors, " processors\n");
}

}  // namespace mpc::tools
