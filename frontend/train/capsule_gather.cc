#include "frontend/train/capsule_gather.h"

#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/distributed/exchange.h"
#include "frontend/state/capsule_layout.h"
#include "kernels/state_hash.h"

namespace mpc::internal {
namespace {

constexpr char kIsEqual = '=';
constexpr char kIsOwn = '!';

void AppendBytes(absl::Span<const std::uint8_t> bytes, std::string& text) {
  text.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

/// What the ranks must have in common: runs, and the inputs of each.
std::string SignatureOf(const StepCapsule& capsule) {
  const auto text = [](std::string* out, const auto& input) {
    absl::StrAppend(out, input.first, " ", input.second.spec().ToString());
  };
  return absl::StrCat(capsule.runs, " runs: ", absl::StrJoin(capsule.batch, ", ", text));
}

/// Lets all ranks know whether each has a capsule. `capsule` becomes the error of the first rank without one.
absl::Status AgreeOnParts(Communicator& group, absl::StatusOr<StepCapsule>& capsule) {
  // The code of a status, then its message or what the ranks compare.
  std::string own(1, static_cast<char>(capsule.status().code()));
  absl::StrAppend(&own, capsule.ok() ? SignatureOf(*capsule) : std::string(capsule.status().message()));
  const absl::StatusOr<std::vector<std::string>> all = distributed::GatherBytes(group, own);
  if (!all.ok()) return all.status();
  for (std::size_t rank = 0; rank < all->size(); ++rank) {
    const auto code = static_cast<absl::StatusCode>((*all)[rank].front());
    if (code == absl::StatusCode::kOk) continue;
    capsule = absl::Status(code, absl::StrCat("rank ", rank, ": ", (*all)[rank].substr(1)));
    return absl::OkStatus();
  }
  for (const std::string& each : *all) {
    if (each != all->front()) capsule = absl::UnimplementedError(kDifferentPrograms);
  }
  return absl::OkStatus();
}

/// What other ranks compare with: a hash of each state entry, and the checksum of each that is written.
std::string HashesOf(const StepCapsule& capsule) {
  std::string hashes;
  const std::uint64_t key = HashKey("");
  for (const auto& [name, tensor] : capsule.state) {
    const std::uint64_t hash = HashBytes(key, tensor.bytes().data(), tensor.bytes().size());
    hashes.append(reinterpret_cast<const char*>(&hash), sizeof(hash));
  }
  for (const auto& [name, checksum] : capsule.after) hashes += checksum;
  return hashes;
}

/// What rank 0 does not have of a capsule: state and checksums whose hashes are not among `of_first`, batch and record.
/// All ranks have the same Programs, so that the order says what is what.
std::string PartOf(const StepCapsule& capsule, std::string_view of_first) {
  const std::string own = HashesOf(capsule);
  std::string part;
  std::size_t place = 0;
  const auto is_equal = [&](std::size_t bytes) {
    const std::size_t at = std::exchange(place, place + bytes);
    const bool equal = of_first.size() == own.size() && of_first.substr(at, bytes) == own.substr(at, bytes);
    part.push_back(equal ? kIsEqual : kIsOwn);
    return equal;
  };
  for (const auto& [name, tensor] : capsule.state) {
    if (!is_equal(sizeof(std::uint64_t))) AppendBytes(tensor.bytes(), part);
  }
  for (const auto& [name, checksum] : capsule.after) {
    if (!is_equal(checksum.size())) part += checksum;
  }
  for (const StepCapsule::NamedTensors* tensors : {&capsule.batch, &capsule.record}) {
    for (const auto& [name, tensor] : *tensors) AppendBytes(tensor.bytes(), part);
  }
  return part;
}

/// Reads what PartOf wrote.
class PartReader {
 public:
  explicit PartReader(std::string_view part) : left_(part) {}

  std::string_view Next(std::size_t bytes) {
    is_short_ |= bytes > left_.size();
    const std::string_view next = left_.substr(0, bytes);
    left_.remove_prefix(next.size());
    return next;
  }
  bool NextIsOwn() {
    const std::string_view mark = Next(1);
    return mark == std::string_view(&kIsOwn, 1);
  }
  Tensor NextTensor(const TensorSpec& spec) {
    std::string bytes(Next(spec.bytes()));
    bytes.resize(spec.bytes());
    return Tensor::FromBytes(spec, reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  }
  bool has_ended_well() const { return left_.empty() && !is_short_; }

 private:
  std::string_view left_;
  bool is_short_ = false;
};

/// Adds the part of rank `rank` to `whole`, which has those before it. `runs_of_rank`: of each rank.
absl::Status AddPart(std::string_view part, std::int64_t rank, std::int64_t runs_of_rank, StepCapsule& whole) {
  PartReader reader(part);
  StepCapsule::OtherRank other;
  for (const auto& [name, spec] : StateSpecs(whole)) {
    if (reader.NextIsOwn()) other.state.emplace_back(name, reader.NextTensor(spec));
  }
  for (const auto& [name, checksum] : whole.after) {
    if (reader.NextIsOwn()) other.after[name] = std::string(reader.Next(checksum.size()));
  }
  whole.ranks = rank + 1;
  whole.runs = whole.ranks * runs_of_rank;
  const auto add = [&reader](const NamedSpecs& specs, StepCapsule::NamedTensors& tensors) {
    for (std::size_t i = tensors.size(); i < specs.size(); ++i) {
      tensors.emplace_back(specs[i].first, reader.NextTensor(specs[i].second));
    }
  };
  add(InputSpecs(whole), whole.batch);
  add(OutputSpecs(whole), whole.record);
  whole.other_ranks.push_back(std::move(other));
  if (reader.has_ended_well()) return absl::OkStatus();
  return absl::InternalError(absl::StrCat("rank ", rank, " has sent ", part.size(), " bytes, which are not its part"));
}

}  // namespace

absl::Status GatherCapsule(Communicator& group, absl::StatusOr<StepCapsule>& capsule) {
  if (absl::Status status = AgreeOnParts(group, capsule); !status.ok()) return status;
  if (!capsule.ok()) return absl::OkStatus();
  const bool is_first = group.rank() == 0;
  const std::int64_t runs_of_rank = capsule->runs;
  std::string hashes = is_first ? HashesOf(*capsule) : "";
  if (absl::Status status = distributed::BroadcastBytes(group, hashes); !status.ok()) return status;
  for (int rank = 1; rank < group.size(); ++rank) {
    std::string part = group.rank() == rank ? PartOf(*capsule, hashes) : "";
    if (absl::Status status = distributed::BroadcastBytes(group, part, rank); !status.ok()) return status;
    if (!is_first || !capsule.ok()) continue;
    if (absl::Status status = AddPart(part, rank, runs_of_rank, *capsule); !status.ok()) capsule = status;
  }
  return absl::OkStatus();
}

}  // namespace mpc::internal
