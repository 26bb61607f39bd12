// Flags of runs in several processes, and what they need of others.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "kernels/dtype.h"
#include "runtime/distributed/shared_communicator.h"
#include "tools/support/flag_set.h"

namespace mpc::tools {

struct BenchOptions;

/// Sums over processes on their own; see reduction_bench.h.
struct ReductionOptions {
  bool measured = false;
  std::int64_t ranks = 2;
  std::vector<std::int64_t> elements = {61'700, 11'000'000, 30'000'000};  ///< sizes of messages
  std::vector<std::int64_t> slot_bytes = {static_cast<std::int64_t>(distributed::kDefaultSlotBytes)};
  DType dtype = DType::kF32;
  double seconds = 1;  ///< seconds of measuring, for each message and slot
};

/// Reads --ranks. Errors: no power of two from 2 to 1024.
absl::Status ParseRanks(const std::string& value, std::int64_t& ranks);

/// --all-reduce and what belongs to it.
void AddReductionFlags(FlagSet& flags, ReductionOptions& options);

/// Reads --dtype of what is measured on its own; an empty text leaves `dtype`. Errors: another one than f32, f16 or
/// bf16.
absl::Status ReadMeasuredType(const std::string& text, DType& dtype);

/// Takes what else the command line says of sums: ranks and type. Errors: a network; those of ReadMeasuredType.
absl::Status FinishReductions(const BenchOptions& given, const std::vector<std::string>& models,
                              ReductionOptions& options);

/// A row with ranks is always compared with what its ranks do alone: RankPeerNames() come before its peers.
void AddRankPeers(BenchOptions& row);

/// Errors: a device or a batch that several ranks do not go with, by the names of both.
absl::Status CheckRanks(const BenchOptions& row);

/// "remark: 4 ranks of 1 thread share 2 processors", as a line; empty where there are enough.
std::string RanksRemark(const BenchOptions& row);

}  // namespace mpc::tools
