#include "frontend/state/package_state.h"

#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/element_conversion.h"
#include "frontend/state/checkpoint_metadata.h"
#include "frontend/state/finite_conversion.h"
#include "frontend/state/safetensors.h"
#include "runtime/executable.h"
#include "runtime/physical_memory.h"

namespace mpc {
namespace {

using runtime::StateEntry;

/// Writes elements of type `from`, one for each of the entry's.
absl::Status WriteConverted(StateEntry& entry, DType from, const void* elements) {
  std::vector<std::uint8_t> bytes(entry.spec().bytes());
  internal::ConvertElements(from, elements, entry.spec().dtype, bytes.data(),
                            static_cast<std::size_t>(entry.spec().num_elements()));
  return entry.Write(bytes);
}

absl::Status WriteInitialValue(const runtime::InitialValue& initial, StateEntry& entry) {
  const std::size_t size = entry.spec().bytes();
  if (initial.bytes.size() == size) return entry.Write(initial.bytes);
  std::vector<std::uint8_t> bytes(size);
  for (std::size_t i = 0; i < size; i += initial.bytes.size()) {
    std::memcpy(bytes.data() + i, initial.bytes.data(), initial.bytes.size());
  }
  return entry.Write(bytes);
}

absl::Status Draw(const runtime::InitialDraw& draw, std::uint64_t seed, const runtime::StateStore& state) {
  absl::StatusOr<const runtime::Device*> device = runtime::GetDevice(draw.program.device);
  if (!device.ok()) return device.status();
  absl::StatusOr<std::unique_ptr<runtime::Executable>> executable =
      (*device)->Load(std::make_shared<const runtime::Program>(draw.program), runtime::StateStore());
  if (!executable.ok()) return executable.status();
  const absl::Span<const std::uint8_t> input(reinterpret_cast<const std::uint8_t*>(&seed), sizeof(seed));
  if (absl::Status status = (*executable)->Run({input}); !status.ok()) return status;
  for (std::size_t i = 0; i < draw.program.outputs.size(); ++i) {
    const std::shared_ptr<StateEntry> entry = state.Find(draw.program.outputs[i].name);
    if (entry == nullptr) continue;
    if (absl::Status status = WriteConverted(*entry, DType::kF32, (*executable)->output(i).data()); !status.ok()) {
      return status;
    }
  }
  return absl::OkStatus();
}

bool IsSeed(Role role, const TensorSpec& spec) { return role == Role::kRng && spec == TensorSpec{DType::kI64, {}}; }

/// An entry for each state of the programs. Errors: RESOURCE_EXHAUSTED where the machine has less memory.
absl::StatusOr<runtime::StateStore> MakeEntries(const runtime::Package& package) {
  std::map<std::string, const runtime::StateBinding*> bindings;
  std::size_t bytes = 0;
  for (const runtime::Program& program : package.programs) {
    for (const runtime::StateBinding& binding : program.state) {
      if (bindings.try_emplace(binding.name, &binding).second) bytes += binding.spec.bytes();
    }
  }
  const auto make = [&]() -> absl::StatusOr<runtime::StateStore> {
    runtime::StateStore state;
    for (const runtime::Program& program : package.programs) {
      for (const runtime::StateBinding& binding : program.state) {
        if (state.Find(binding.name) != nullptr) continue;
        const auto entry = std::make_shared<StateEntry>(binding.name, binding.role, binding.spec);
        if (absl::Status status = state.Add(entry); !status.ok()) return status;
      }
    }
    return state;
  };
  return runtime::MakeWithinMemory(bytes, make, [&] {
    return absl::StrCat("the programs have ", bytes, " bytes of state; the system does not have them");
  });
}

}  // namespace

absl::StatusOr<runtime::StateStore> MakeInitialState(const runtime::Package& package,
                                                     std::optional<std::uint64_t> seed) {
  absl::StatusOr<runtime::StateStore> entries = MakeEntries(package);
  if (!entries.ok()) return entries.status();
  runtime::StateStore state = *std::move(entries);
  for (const runtime::InitialValue& initial : package.initial_values) {
    const std::shared_ptr<StateEntry> entry = state.Find(initial.name);
    if (entry == nullptr) continue;
    if (absl::Status status = WriteInitialValue(initial, *entry); !status.ok()) return status;
  }
  for (const runtime::InitialDraw& draw : package.draws) {
    if (absl::Status status = Draw(draw, seed.value_or(draw.seed), state); !status.ok()) return status;
  }
  if (!seed.has_value()) return state;
  if (absl::Status status = SetSeedOfState(*seed, state); !status.ok()) return status;
  return state;
}

absl::Status SetSeedOfState(std::uint64_t seed, runtime::StateStore& state) {
  for (const std::shared_ptr<StateEntry>& entry : state.entries()) {
    if (!IsSeed(entry->role(), entry->spec())) continue;
    const absl::Status status = entry->Write({reinterpret_cast<const std::uint8_t*>(&seed), sizeof(seed)});
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ClassNames(const runtime::Package& package) {
  const std::string stored(package.Metadata("class_names"));
  if (stored.empty()) return std::vector<std::string>();
  std::optional<std::vector<std::string>> names = internal::ParseNames(stored);
  if (names.has_value()) return *std::move(names);
  return absl::InvalidArgumentError(
      absl::StrCat("the metadata 'class_names' of the package is no list of texts: ", stored));
}

absl::Status SaveState(const std::string& path, const runtime::StateStore& state) {
  Safetensors content;
  for (const std::shared_ptr<StateEntry>& entry : state.entries()) {
    if (entry->role() == Role::kDerived) continue;
    if (absl::Status status = entry->FetchToHost(); !status.ok()) return status;
    content.tensors.emplace_back(entry->name(), Tensor::FromBytes(entry->spec(), entry->data(), entry->spec().bytes()));
  }
  return SaveSafetensors(path, content);
}

absl::StatusOr<std::vector<std::string>> LoadState(const std::string& path, runtime::StateStore& state) {
  const absl::StatusOr<Safetensors> content = LoadSafetensors(path);
  if (!content.ok()) return content.status();
  std::vector<std::string> problems;
  std::vector<std::string> unknown;
  std::vector<std::pair<StateEntry*, Tensor>> assignments;
  std::set<std::string_view> names;
  for (const auto& [name, tensor] : content->tensors) {
    names.insert(name);
    const std::shared_ptr<StateEntry> entry = state.Find(name);
    if (entry == nullptr || entry->role() == Role::kDerived) {
      unknown.push_back(name);
      continue;
    }
    const TensorSpec& spec = entry->spec();
    const bool converts = IsFloating(tensor.dtype()) && IsFloating(spec.dtype);
    if (tensor.shape() != spec.shape || (tensor.dtype() != spec.dtype && !converts)) {
      problems.push_back(
          absl::StrCat("'", name, "' is ", tensor.spec().ToString(), ", the Programs have ", spec.ToString()));
      continue;
    }
    Tensor converted = tensor.dtype() == spec.dtype ? tensor : tensor.To(spec.dtype);
    if (const std::string lost = internal::LostValues(tensor, converted); !lost.empty()) {
      problems.push_back(absl::StrCat("'", name, "' ", lost));
      continue;
    }
    assignments.emplace_back(entry.get(), std::move(converted));
  }
  for (const std::shared_ptr<StateEntry>& entry : state.entries()) {
    if (entry->role() == Role::kParameter && !names.contains(entry->name())) {
      problems.push_back(absl::StrCat("it has no '", entry->name(), "', ", entry->spec().ToString()));
    }
  }
  if (!problems.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " does not fit:\n  ", absl::StrJoin(problems, "\n  "), "\nnothing was loaded"));
  }
  for (const auto& [entry, tensor] : assignments) {
    if (absl::Status status = entry->Write(tensor.bytes()); !status.ok()) return status;
  }
  return unknown;
}

}  // namespace mpc
