#include "frontend/state/step_capsule.h"

#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "frontend/state/capsule_layout.h"
#include "frontend/state/checkpoint_file.h"
#include "runtime/checksum.h"
#include "runtime/program_file.h"

namespace mpc {
namespace {

using internal::NamedSpecs;
using NamedTensors = StepCapsule::NamedTensors;

constexpr char kVersion[] = "mpc_capsule";
constexpr char kChecksumOfFile[] = "mpc_crc32";
constexpr char kStep[] = "step";
constexpr char kReason[] = "reason";
constexpr char kRuns[] = "runs";
constexpr char kRanks[] = "ranks";
constexpr char kProgram[] = "program";
constexpr char kTraced[] = "traced";
constexpr char kState[] = "state.";
constexpr char kBatch[] = "batch.";
constexpr char kRecord[] = "record.";
constexpr char kOption[] = "option.";
constexpr char kAfter[] = "after.";
constexpr char kOrigin[] = "origin.";

Tensor BytesTensor(absl::Span<const std::uint8_t> bytes) {
  return Tensor::FromBytes({DType::kU8, {static_cast<std::int64_t>(bytes.size())}}, bytes.data(), bytes.size());
}

std::size_t BytesOf(const NamedTensors& tensors) {
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += tensor.bytes().size();
  return bytes;
}

std::string Bytes(std::size_t bytes) {
  const auto count = static_cast<double>(bytes);
  if (bytes >= 1'000'000'000) return absl::StrFormat("%.1f GB", count / 1e9);
  if (bytes >= 1'000'000) return absl::StrFormat("%.1f MB", count / 1e6);
  if (bytes >= 1'000) return absl::StrFormat("%.1f kB", count / 1e3);
  return absl::StrCat(bytes, " bytes");
}

/// What the names of another rank's state and checksums begin with.
std::string PrefixOfRank(std::int64_t rank) { return absl::StrCat("rank", rank, "."); }

/// The names of tensors in a file: `prefix`, the name, and a number where the name was there before.
template <typename Named>
std::vector<std::string> KeysOf(const std::string& prefix, const std::vector<Named>& named) {
  std::map<std::string_view, int> seen;
  std::vector<std::string> keys;
  for (const auto& [name, value] : named) {
    const int count = ++seen[name];
    keys.push_back(count == 1 ? absl::StrCat(prefix, name) : absl::StrCat(prefix, name, "#", count));
  }
  return keys;
}

/// Those tensors of `content` whose names begin with `prefix`, in the order of `wanted`.
NamedTensors Take(const Safetensors& content, const std::string& prefix, const NamedSpecs& wanted) {
  NamedTensors taken;
  const std::vector<std::string> keys = KeysOf(prefix, wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (const Tensor* tensor = content.Find(keys[i]); tensor != nullptr) taken.emplace_back(wanted[i].first, *tensor);
  }
  // What the Program does not have stays for CheckStepCapsule to name.
  const std::set<std::string_view> known(keys.begin(), keys.end());
  for (const auto& [name, tensor] : content.tensors) {
    if (absl::StartsWith(name, prefix) && !known.contains(name)) {
      taken.emplace_back(name.substr(prefix.size()), tensor);
    }
  }
  return taken;
}

std::map<std::string, std::string> Take(const Safetensors& content, const std::string& prefix) {
  std::map<std::string, std::string> taken;
  for (const auto& [key, value] : content.metadata) {
    if (absl::StartsWith(key, prefix)) taken[key.substr(prefix.size())] = value;
  }
  return taken;
}

/// Errors: a number that is missing, that is none, or that the file cannot bear out.
absl::Status ReadNumbers(const Safetensors& content, const std::string& path, StepCapsule& capsule) {
  const auto& metadata = content.metadata;
  const auto step = metadata.find(kStep);
  if (step == metadata.end() || !absl::SimpleAtoi(step->second, &capsule.step)) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is malformed: its metadata have no number \"", kStep, "\""));
  }
  for (const auto& [key, number] : {std::pair(kRuns, &capsule.runs), std::pair(kRanks, &capsule.ranks)}) {
    const auto given = metadata.find(key);
    if (given == metadata.end() || absl::SimpleAtoi(given->second, number)) continue;
    return absl::InvalidArgumentError(absl::StrCat(path, " is malformed: its metadata say \"", key, "\" is '",
                                                   given->second, "', which is no number"));
  }
  const absl::Status status = internal::CheckRuns(capsule, content.tensors.size());
  return status.ok() ? status : absl::InvalidArgumentError(absl::StrCat(path, " is malformed: ", status.message()));
}

absl::Status ReadPrograms(const Safetensors& content, const std::string& path, StepCapsule& capsule) {
  const Tensor* program = content.Find(kProgram);
  if (program == nullptr || program->dtype() != DType::kU8) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is malformed: it has no \"program\""));
  }
  absl::StatusOr<runtime::Package> package =
      runtime::ParsePackage(program->bytes(), absl::StrCat("the Program of ", path));
  if (!package.ok()) return package.status();
  const std::size_t programs = package->programs.size();
  if (programs < 1 || programs > 2) {
    return absl::InvalidArgumentError(absl::StrCat(path, " is malformed: it has ", programs, " Programs"));
  }
  capsule.program = std::move(package->programs.front());
  if (programs == 2) capsule.accumulating = std::move(package->programs.back());
  return absl::OkStatus();
}

}  // namespace

std::string CapsuleSizes::ToString() const {
  return absl::StrCat(Bytes(total()), " (state ", Bytes(state), ", batch ", Bytes(batch), ", Program ", Bytes(program),
                      ", the rest ", Bytes(rest), ")");
}

absl::StatusOr<CapsuleSizes> SizesOf(const StepCapsule& capsule) {
  const absl::StatusOr<std::vector<std::uint8_t>> program = runtime::SerializePackage(internal::PackageOf(capsule));
  if (!program.ok()) return program.status();
  std::size_t of_others = 0;
  for (const StepCapsule::OtherRank& other : capsule.other_ranks) of_others += BytesOf(other.state);
  return CapsuleSizes{.state = BytesOf(capsule.state) + of_others,
                      .batch = BytesOf(capsule.batch),
                      .program = program->size(),
                      .rest = BytesOf(capsule.record) + capsule.traced.size()};
}

absl::Status WriteStepCapsule(const std::string& path, const StepCapsule& capsule) {
  if (absl::Status status = CheckStepCapsule(capsule); !status.ok()) return status;
  const absl::StatusOr<std::vector<std::uint8_t>> program = runtime::SerializePackage(internal::PackageOf(capsule));
  if (!program.ok()) return program.status();
  Safetensors content;
  for (const auto& [prefix, tensors] :
       {std::pair(kState, &capsule.state), std::pair(kBatch, &capsule.batch), std::pair(kRecord, &capsule.record)}) {
    const std::vector<std::string> keys = KeysOf(prefix, *tensors);
    for (std::size_t i = 0; i < keys.size(); ++i) content.tensors.emplace_back(keys[i], (*tensors)[i].second);
  }
  for (std::size_t i = 0; i < capsule.other_ranks.size(); ++i) {
    const StepCapsule::OtherRank& other = capsule.other_ranks[i];
    const std::string prefix = PrefixOfRank(static_cast<std::int64_t>(i) + 1);
    for (const auto& [name, tensor] : other.state) {
      content.tensors.emplace_back(absl::StrCat(prefix, kState, name), tensor);
    }
    for (const auto& [name, checksum] : other.after) content.metadata[absl::StrCat(prefix, kAfter, name)] = checksum;
  }
  content.tensors.emplace_back(kProgram, BytesTensor(*program));
  if (!capsule.traced.empty()) {
    content.tensors.emplace_back(
        kTraced, BytesTensor({reinterpret_cast<const std::uint8_t*>(capsule.traced.data()), capsule.traced.size()}));
  }
  for (const auto& [prefix, texts] :
       {std::pair(kOption, &capsule.options), std::pair(kAfter, &capsule.after), std::pair(kOrigin, &capsule.origin)}) {
    for (const auto& [key, value] : *texts) content.metadata[absl::StrCat(prefix, key)] = value;
  }
  content.metadata[kVersion] = capsule.ranks > 1 ? kStepCapsuleVersionOfRanks : kStepCapsuleVersion;
  content.metadata[kStep] = absl::StrCat(capsule.step);
  content.metadata[kReason] = capsule.reason;
  if (capsule.runs > 1) content.metadata[kRuns] = absl::StrCat(capsule.runs);
  if (capsule.ranks > 1) content.metadata[kRanks] = absl::StrCat(capsule.ranks);
  return internal::WriteCheckpointFile(path, std::move(content));
}

absl::StatusOr<StepCapsule> ParseStepCapsule(const Safetensors& content, const std::string& path) {
  const auto error = [&](const auto&... parts) { return absl::InvalidArgumentError(absl::StrCat(path, parts...)); };
  const auto version = content.metadata.find(kVersion);
  if (version == content.metadata.end()) {
    return error(" is no capsule of a step: its metadata have no \"", kVersion, "\"; `mpc-train --capsule` writes one");
  }
  if (version->second != kStepCapsuleVersion && version->second != kStepCapsuleVersionOfRanks) {
    return error(" is a capsule of version ", version->second, "; this mpc reads versions ", kStepCapsuleVersion,
                 " and ", kStepCapsuleVersionOfRanks);
  }
  if (!content.metadata.contains(kChecksumOfFile)) {
    return error(" is damaged: it has no checksum \"", kChecksumOfFile, "\"");
  }
  StepCapsule capsule;
  if (absl::Status status = ReadNumbers(content, path, capsule); !status.ok()) return status;
  if (const auto reason = content.metadata.find(kReason); reason != content.metadata.end()) {
    capsule.reason = reason->second;
  }
  if (absl::Status status = ReadPrograms(content, path, capsule); !status.ok()) return status;
  if (const Tensor* traced = content.Find(kTraced); traced != nullptr && traced->dtype() == DType::kU8) {
    const absl::Span<const std::uint8_t> text = traced->bytes();
    capsule.traced.assign(reinterpret_cast<const char*>(text.data()), text.size());
  }
  const NamedSpecs state = internal::StateSpecs(capsule);
  capsule.state = Take(content, kState, state);
  capsule.batch = Take(content, kBatch, internal::InputSpecs(capsule));
  capsule.record = Take(content, kRecord, internal::OutputSpecs(capsule));
  for (std::int64_t rank = 1; rank < capsule.ranks; ++rank) {
    const std::string prefix = PrefixOfRank(rank);
    capsule.other_ranks.push_back({Take(content, prefix + kState, state), Take(content, absl::StrCat(prefix, kAfter))});
  }
  capsule.options = Take(content, kOption);
  capsule.after = Take(content, kAfter);
  capsule.origin = Take(content, kOrigin);
  if (absl::Status status = CheckStepCapsule(capsule); !status.ok()) {
    return error(" is malformed: ", status.message());
  }
  return capsule;
}

absl::StatusOr<StepCapsule> ReadStepCapsule(const std::string& path) {
  const absl::StatusOr<Safetensors> content = internal::ReadCheckpointFile(path);
  if (!content.ok()) return content.status();
  return ParseStepCapsule(*content, path);
}

absl::StatusOr<std::string> StateChecksum(const runtime::StateEntry& entry) {
  std::vector<std::uint8_t> bytes(entry.spec().bytes());
  if (absl::Status status = entry.Read(absl::MakeSpan(bytes)); !status.ok()) return status;
  runtime::Checksum checksum;
  checksum.Add(bytes.data(), bytes.size());
  return checksum.Text();
}

absl::StatusOr<runtime::StateStore> MakeCapsuleState(const StepCapsule& capsule, std::int64_t rank) {
  runtime::StateStore store;
  const auto add = [&](const runtime::StateBinding& binding) -> absl::Status {
    const auto entry = std::make_shared<runtime::StateEntry>(binding.name, binding.role, binding.spec);
    if (absl::Status status = store.Add(entry); !status.ok()) return status;
    if (binding.role == Role::kDerived) return absl::OkStatus();
    const Tensor* value = nullptr;
    if (rank > 0) {
      value = internal::FindTensor(capsule.other_ranks[static_cast<std::size_t>(rank) - 1].state, binding.name);
    }
    if (value == nullptr) value = internal::FindTensor(capsule.state, binding.name);
    return value == nullptr ? absl::OkStatus() : entry->Write(value->bytes());
  };
  for (const runtime::Program* program :
       {&capsule.program, capsule.accumulating.has_value() ? &*capsule.accumulating : nullptr}) {
    if (program == nullptr) continue;
    for (const runtime::StateBinding& binding : program->state) {
      if (store.Find(binding.name) != nullptr) continue;
      if (absl::Status status = add(binding); !status.ok()) return status;
    }
  }
  return store;
}

}  // namespace mpc
