#include "frontend/graph/pass_state.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"

namespace mpc::internal {
namespace {

absl::Status CheckSpec(const runtime::StateEntry& entry, const TensorSpec& spec) {
  if (entry.spec() == spec) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(std::string(RoleName(entry.role())), " state \"", entry.name(),
                                                 "\" is ", entry.spec().ToString(), ", a step now needs ",
                                                 spec.ToString()));
}

absl::Status TakenBy(Role role, std::string_view name) {
  return absl::InvalidArgumentError(
      absl::StrCat("state \"", std::string(name), "\" is ", std::string(RoleName(role)), " in another step"));
}

}  // namespace

std::shared_ptr<runtime::StateEntry> PassState::FindDerived(std::string_view name) const {
  for (const std::shared_ptr<runtime::StateEntry>& entry : derived_) {
    if (entry->name() == name) return entry;
  }
  return nullptr;
}

absl::StatusOr<std::shared_ptr<runtime::StateEntry>> PassState::Derived(std::string_view name, const TensorSpec& spec) {
  for (const Parameter& accumulator : accumulators_) {
    if (accumulator.name() == name) return TakenBy(Role::kAccumulator, name);
  }
  std::shared_ptr<runtime::StateEntry> entry = FindDerived(name);
  if (entry == nullptr) {
    entry = std::make_shared<runtime::StateEntry>(std::string(name), Role::kDerived, spec);
    derived_.push_back(entry);
  }
  if (absl::Status status = CheckSpec(*entry, spec); !status.ok()) return status;
  return entry;
}

absl::StatusOr<Parameter> PassState::Accumulator(std::string_view name, const TensorSpec& spec) {
  if (FindDerived(name) != nullptr) return TakenBy(Role::kDerived, name);
  for (const Parameter& accumulator : accumulators_) {
    if (accumulator.name() != name) continue;
    if (absl::Status status = CheckSpec(*accumulator.entry(), spec); !status.ok()) return status;
    return accumulator;
  }
  const std::vector<std::uint8_t> zeros(spec.bytes(), 0);
  Parameter accumulator(Tensor::FromBytes(spec, zeros.data(), zeros.size()),
                        {.requires_grad = false, .role = Role::kAccumulator});
  accumulator.set_name(std::string(name));
  accumulators_.push_back(accumulator);
  return accumulator;
}

absl::StatusOr<PassState::Bound> PassState::Bind(absl::Span<const runtime::StateBinding> bindings,
                                                 absl::Span<const Parameter> known) {
  Bound bound;
  for (const runtime::StateBinding& binding : bindings) {
    const bool traced = std::any_of(known.begin(), known.end(),
                                    [&](const Parameter& parameter) { return parameter.name() == binding.name; });
    if (traced) continue;
    if (binding.role == Role::kDerived) {
      absl::StatusOr<std::shared_ptr<runtime::StateEntry>> entry = Derived(binding.name, binding.spec);
      if (!entry.ok()) return entry.status();
      bound.derived.push_back(*std::move(entry));
    } else if (binding.role == Role::kAccumulator) {
      absl::StatusOr<Parameter> accumulator = Accumulator(binding.name, binding.spec);
      if (!accumulator.ok()) return accumulator.status();
      bound.accumulators.push_back(*std::move(accumulator));
    }
  }
  return bound;
}

}  // namespace mpc::internal
