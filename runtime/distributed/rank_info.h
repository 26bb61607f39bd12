// What ranks tell each other of themselves through the store, and its bytes.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace mpc::runtime {

/// What must be equal on all ranks, such as the hashes of Programs and options, by name.
using NamedHashes = std::map<std::string, std::string>;

struct RankInfo {
  int rank = 0;
  int size = 1;  ///< that this rank was told
  std::string host;
  std::string machine;  ///< differs between two machines of one host name; empty where the system does not say
  std::int64_t pid = 0;
  std::uint64_t nonce = 0;      ///< drawn by this process
  std::vector<int> processors;  ///< that it may run on, in order; none where the system does not say
  int quota = 0;                ///< thousandths of a processor that its control groups let it use; 0: no limit
  std::string version;          ///< the version of mpc
  NamedHashes hashes;
  int local_rank = 0;  ///< among the ranks of its machine, in order; filled when all have come
  int local_size = 1;
};

/// "rank 1 (host a, process 12)".
std::string RankText(const RankInfo& info);
/// "rank 1", "ranks 1 and 3", "ranks 1, 2 and 5".
std::string RanksText(absl::Span<const int> ranks);

/// Where a rank was when it last told.
struct Place {
  std::int64_t step = -1;  ///< -1: it has told of none, as before the first one and in steps that no Model runs
  std::string what;        ///< the instruction or phase
  std::int64_t unix_milliseconds = 0;
  std::int64_t beat = 0;  ///< how often it has told
};

/// "was last at step 17, "train_step"". Before the first step of a run: "had told of no step, and was last in "an
/// evaluation"". Before a process tells for the first time, and where no Model runs: "had not told yet where it was".
std::string PlaceText(const Place& place);

/// Why a group has ended before its time.
struct Loss {
  int rank = 0;
  std::string who;  ///< RankText
  std::string why;  ///< "has ended without a goodbye"
  Place place;
};
/// UNAVAILABLE, as in: rank 1 (host a, process 12) has ended without a goodbye; it was last at step 17, "all_reduce".
absl::Status LossStatus(const Loss& loss);

/// What became of a rendezvous: an error for all, or everyone's info.
struct Verdict {
  absl::Status status;
  std::vector<RankInfo> ranks;
};

std::string Encode(const RankInfo& info);
std::string Encode(const NamedHashes& hashes);
std::string Encode(const Place& place);
std::string Encode(const Loss& loss);
std::string Encode(const Verdict& verdict);

/// Errors (INVALID_ARGUMENT) name `origin`: bytes that Encode does not make of such a value.
absl::StatusOr<RankInfo> DecodeRankInfo(const std::string& bytes, const std::string& origin);
absl::StatusOr<NamedHashes> DecodeHashes(const std::string& bytes, const std::string& origin);
absl::StatusOr<Place> DecodePlace(const std::string& bytes, const std::string& origin);
absl::StatusOr<Loss> DecodeLoss(const std::string& bytes, const std::string& origin);
absl::StatusOr<Verdict> DecodeVerdict(const std::string& bytes, const std::string& origin);

/// INVALID_ARGUMENT where ranks have other hashes. It names the first entry that differs, who has which, and how many
/// more differ. Each pair is a rank and its hashes.
absl::Status CompareHashes(absl::Span<const std::pair<int, NamedHashes>> of_ranks);
/// INVALID_ARGUMENT where another size, version or hash was given to `other` than to `first`.
absl::Status CompareRanks(const RankInfo& first, const RankInfo& other);
/// Fills local_rank and local_size of ranks that stand in order.
void FillLocalRanks(std::vector<RankInfo>& ranks);

}  // namespace mpc::runtime
