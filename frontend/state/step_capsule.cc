#include "frontend/state/step_capsule.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "frontend/state/checkpoint_file.h"
#include "runtime/checksum.h"
#include "runtime/program_check.h"
#include "runtime/program_file.h"

namespace mpc {
namespace {

using NamedTensors = StepCapsule::NamedTensors;

constexpr char kVersion[] = "mpc_capsule";
constexpr char kChecksumOfFile[] = "mpc_crc32";
constexpr char kStep[] = "step";
constexpr char kReason[] = "reason";
constexpr char kRuns[] = "runs";
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

/// A package wants a beginning for every entry; the capsule's own state takes its place.
runtime::Package PackageOf(const runtime::Program& program) {
  runtime::Package package;
  package.programs.push_back(program);
  for (const runtime::StateBinding& binding : package.State()) {
    package.initial_values.push_back(
        {binding.name, binding.role, binding.spec, std::vector<std::uint8_t>(ElementSize(binding.spec.dtype), 0)});
  }
  return package;
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

using NamedSpecs = std::vector<std::pair<std::string, TensorSpec>>;

NamedSpecs StateOf(const runtime::Program& program) {
  NamedSpecs specs;
  for (const runtime::StateBinding& binding : program.state) {
    if (binding.role != Role::kDerived) specs.emplace_back(binding.name, binding.spec);
  }
  return specs;
}

/// Of `values`, inputs or outputs, of each run in turn.
NamedSpecs SpecsOf(const StepCapsule& capsule, const std::vector<runtime::NamedValue>& values) {
  NamedSpecs specs;
  for (std::int64_t run = 0; run < capsule.runs; ++run) {
    for (const runtime::NamedValue& value : values) {
      specs.emplace_back(NameInRun(value.name, run), capsule.program.values[value.value].spec);
    }
  }
  return specs;
}

/// Errors: a count that tensors of the batch and the record cannot bear out.
absl::Status CheckRuns(std::int64_t runs, std::size_t tensors) {
  if (runs >= 1 && (runs == 1 || static_cast<std::uint64_t>(runs) <= tensors)) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("it has ", runs, " runs of its Program, and ", tensors, " tensors"));
}

const Tensor* Find(const NamedTensors& tensors, std::string_view name) {
  for (const auto& [known, tensor] : tensors) {
    if (known == name) return &tensor;
  }
  return nullptr;
}

/// Adds to `problems` what `tensors` lack and what they have too much of.
void CheckTensors(const char* what, const NamedSpecs& wanted, const NamedTensors& tensors,
                  std::vector<std::string>& problems) {
  const std::size_t before = problems.size();
  std::set<std::string_view> names;
  for (const auto& [name, spec] : wanted) {
    names.insert(name);
    const Tensor* tensor = Find(tensors, name);
    if (tensor == nullptr) {
      problems.push_back(absl::StrCat(what, " \"", name, "\" is missing, ", spec.ToString()));
    } else if (!tensor->concrete() || tensor->spec() != spec) {
      problems.push_back(
          absl::StrCat(what, " \"", name, "\" is ", tensor->spec().ToString(), ", the Program has ", spec.ToString()));
    }
  }
  for (const auto& [name, tensor] : tensors) {
    if (!names.contains(name)) problems.push_back(absl::StrCat(what, " \"", name, "\" is none of the Program's"));
  }
  // Prints may share a name: the order tells them apart.
  const bool in_order = std::equal(wanted.begin(), wanted.end(), tensors.begin(), tensors.end(),
                                   [](const auto& spec, const auto& tensor) {
                                     return spec.first == tensor.first && spec.second == tensor.second.spec();
                                   });
  if (problems.size() == before && !in_order) {
    problems.push_back(absl::StrCat("each ", what, " of the Program must be given once, in its order"));
  }
}

/// The names of tensors in a file: `prefix`, the name, and a number where the name was there before.
template <typename Named>
std::vector<std::string> KeysOf(const char* prefix, const std::vector<Named>& named) {
  std::map<std::string_view, int> seen;
  std::vector<std::string> keys;
  for (const auto& [name, value] : named) {
    const int count = ++seen[name];
    keys.push_back(count == 1 ? absl::StrCat(prefix, name) : absl::StrCat(prefix, name, "#", count));
  }
  return keys;
}

/// Those tensors of `content` whose names begin with `prefix`, in the order of `wanted`.
NamedTensors Take(const Safetensors& content, const char* prefix, const NamedSpecs& wanted) {
  NamedTensors taken;
  const std::vector<std::string> keys = KeysOf(prefix, wanted);
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    if (const Tensor* tensor = content.Find(keys[i]); tensor != nullptr) taken.emplace_back(wanted[i].first, *tensor);
  }
  // What the Program does not have stays for CheckStepCapsule to name.
  const std::set<std::string_view> known(keys.begin(), keys.end());
  for (const auto& [name, tensor] : content.tensors) {
    if (absl::StartsWith(name, prefix) && !known.contains(name)) {
      taken.emplace_back(name.substr(std::strlen(prefix)), tensor);
    }
  }
  return taken;
}

std::map<std::string, std::string> Take(const Safetensors& content, const char* prefix) {
  std::map<std::string, std::string> taken;
  for (const auto& [key, value] : content.metadata) {
    if (absl::StartsWith(key, prefix)) taken[key.substr(std::strlen(prefix))] = value;
  }
  return taken;
}

}  // namespace

std::string NameInRun(const std::string& name, std::int64_t run) {
  return run == 0 ? name : absl::StrCat(name, "@", run + 1);
}

std::string CapsuleSizes::ToString() const {
  return absl::StrCat(Bytes(total()), " (state ", Bytes(state), ", batch ", Bytes(batch), ", Program ", Bytes(program),
                      ", the rest ", Bytes(rest), ")");
}

absl::StatusOr<CapsuleSizes> SizesOf(const StepCapsule& capsule) {
  const absl::StatusOr<std::vector<std::uint8_t>> program = runtime::SerializePackage(PackageOf(capsule.program));
  if (!program.ok()) return program.status();
  return CapsuleSizes{.state = BytesOf(capsule.state),
                      .batch = BytesOf(capsule.batch),
                      .program = program->size(),
                      .rest = BytesOf(capsule.record) + capsule.traced.size()};
}

absl::Status CheckStepCapsule(const StepCapsule& capsule) {
  const runtime::Program& program = capsule.program;
  if (absl::Status status = runtime::CheckProgram(program); !status.ok()) return status;
  absl::Status runs = CheckRuns(capsule.runs, capsule.batch.size() + capsule.record.size());
  if (!runs.ok()) return runs;
  std::vector<std::string> problems;
  CheckTensors("state", StateOf(program), capsule.state, problems);
  CheckTensors("input", SpecsOf(capsule, program.inputs), capsule.batch, problems);
  CheckTensors("output", SpecsOf(capsule, program.outputs), capsule.record, problems);
  for (const runtime::StateBinding& binding : program.state) {
    if (binding.role == Role::kDerived || !binding.written || capsule.after.contains(binding.name)) continue;
    problems.push_back(absl::StrCat("state \"", binding.name, "\" has no checksum after the step"));
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

absl::Status WriteStepCapsule(const std::string& path, const StepCapsule& capsule) {
  if (absl::Status status = CheckStepCapsule(capsule); !status.ok()) return status;
  const absl::StatusOr<std::vector<std::uint8_t>> program = runtime::SerializePackage(PackageOf(capsule.program));
  if (!program.ok()) return program.status();
  Safetensors content;
  for (const auto& [prefix, tensors] :
       {std::pair(kState, &capsule.state), std::pair(kBatch, &capsule.batch), std::pair(kRecord, &capsule.record)}) {
    const std::vector<std::string> keys = KeysOf(prefix, *tensors);
    for (std::size_t i = 0; i < keys.size(); ++i) content.tensors.emplace_back(keys[i], (*tensors)[i].second);
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
  content.metadata[kVersion] = kStepCapsuleVersion;
  content.metadata[kStep] = absl::StrCat(capsule.step);
  content.metadata[kReason] = capsule.reason;
  if (capsule.runs > 1) content.metadata[kRuns] = absl::StrCat(capsule.runs);
  return internal::WriteCheckpointFile(path, std::move(content));
}

absl::StatusOr<StepCapsule> ParseStepCapsule(const Safetensors& content, const std::string& path) {
  const auto error = [&](const auto&... parts) { return absl::InvalidArgumentError(absl::StrCat(path, parts...)); };
  const auto version = content.metadata.find(kVersion);
  if (version == content.metadata.end()) {
    return error(" is no capsule of a step: its metadata have no \"", kVersion, "\"; `mpc-train --capsule` writes one");
  }
  if (version->second != kStepCapsuleVersion) {
    return error(" is a capsule of version ", version->second, "; this mpc reads version ", kStepCapsuleVersion);
  }
  if (!content.metadata.contains(kChecksumOfFile)) {
    return error(" is damaged: it has no checksum \"", kChecksumOfFile, "\"");
  }
  StepCapsule capsule;
  const auto step = content.metadata.find(kStep);
  if (step == content.metadata.end() || !absl::SimpleAtoi(step->second, &capsule.step)) {
    return error(" is malformed: its metadata have no number \"", kStep, "\"");
  }
  if (const auto reason = content.metadata.find(kReason); reason != content.metadata.end()) {
    capsule.reason = reason->second;
  }
  const auto runs = content.metadata.find(kRuns);
  if (runs != content.metadata.end() && !absl::SimpleAtoi(runs->second, &capsule.runs)) {
    return error(" is malformed: its metadata say \"", kRuns, "\" is '", runs->second, "', which is no number");
  }
  if (absl::Status status = CheckRuns(capsule.runs, content.tensors.size()); !status.ok()) {
    return error(" is malformed: ", status.message());
  }
  const Tensor* program = content.Find(kProgram);
  if (program == nullptr || program->dtype() != DType::kU8) return error(" is malformed: it has no \"program\"");
  absl::StatusOr<runtime::Package> package =
      runtime::ParsePackage(program->bytes(), absl::StrCat("the Program of ", path));
  if (!package.ok()) return package.status();
  if (package->programs.size() != 1) return error(" is malformed: it has ", package->programs.size(), " Programs");
  capsule.program = std::move(package->programs.front());
  if (const Tensor* traced = content.Find(kTraced); traced != nullptr && traced->dtype() == DType::kU8) {
    const absl::Span<const std::uint8_t> text = traced->bytes();
    capsule.traced.assign(reinterpret_cast<const char*>(text.data()), text.size());
  }
  capsule.state = Take(content, kState, StateOf(capsule.program));
  capsule.batch = Take(content, kBatch, SpecsOf(capsule, capsule.program.inputs));
  capsule.record = Take(content, kRecord, SpecsOf(capsule, capsule.program.outputs));
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

absl::StatusOr<runtime::StateStore> MakeCapsuleState(const StepCapsule& capsule) {
  runtime::StateStore store;
  for (const runtime::StateBinding& binding : capsule.program.state) {
    const auto entry = std::make_shared<runtime::StateEntry>(binding.name, binding.role, binding.spec);
    if (absl::Status status = store.Add(entry); !status.ok()) return status;
    const Tensor* value = Find(capsule.state, binding.name);
    if (binding.role == Role::kDerived || value == nullptr) continue;
    if (absl::Status status = entry->Write(value->bytes()); !status.ok()) return status;
  }
  return store;
}

}  // namespace mpc
