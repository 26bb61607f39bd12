#include "frontend/graph/pass_state.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/known_attributes.h"
#include "kernels/scalar/optimizer_rules.h"

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

/// What mpc.accumulate_gradient does at a level.
scalar::AccumulateOp AccumulateAt(std::int64_t level, std::int64_t count) {
  KernelSpec spec;
  spec.attributes.Set(attribute::kCount.name, count);
  spec.attributes.Set(attribute::kLevel.name, level);
  return scalar::AccumulateOp(spec);
}

}  // namespace

std::string_view KeptBeforeUpdate(std::string_view name) {
  constexpr std::string_view kPrefix = "accumulator.old.";
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : std::string_view();
}

std::string GatheredBy(const std::string& name, const std::set<std::string>& parameters) {
  constexpr std::string_view kPrefix = "accumulator.", kLoss = ".loss";
  if (!name.starts_with(kPrefix)) return "";
  std::string parameter = name.substr(kPrefix.size());
  if (parameters.count(parameter) > 0) return parameter;
  while (!parameter.empty() && absl::ascii_isdigit(static_cast<unsigned char>(parameter.back()))) parameter.pop_back();
  return parameter.ends_with(kLoss) ? parameter.substr(0, parameter.size() - kLoss.size()) : "";
}

const Parameter* PassState::FindAccumulator(std::string_view name) const {
  const auto found = std::find_if(accumulators_.begin(), accumulators_.end(),
                                  [name](const Parameter& accumulator) { return accumulator.name() == name; });
  return found == accumulators_.end() ? nullptr : &*found;
}

absl::Status PassState::AddZeros(absl::Span<const runtime::StateBinding> bindings,
                                 const std::function<std::vector<std::string>()>& parameters, std::int64_t micro_step,
                                 std::int64_t count) {
  std::set<std::string_view> bound;
  for (const runtime::StateBinding& binding : bindings) {
    if (binding.role == Role::kAccumulator) bound.insert(binding.name);
  }
  const bool all_bound = std::all_of(accumulators_.begin(), accumulators_.end(),
                                     [&](const Parameter& accumulator) { return bound.count(accumulator.name()) > 0; });
  if (all_bound) return absl::OkStatus();
  if (micro_step == 0) {
    if (absl::Status begun = BeginUpdateWithout(bound); !begun.ok()) return begun;
  }
  const std::vector<std::string> names = parameters();
  const std::set<std::string> known(names.begin(), names.end());
  for (const Parameter& accumulator : accumulators_) {
    const std::string& name = accumulator.name();
    if (bound.count(name) > 0 || known.count(GatheredBy(name, known)) == 0) continue;
    if (absl::Status added = AddZero(name, micro_step, count); !added.ok()) return added;
  }
  return absl::OkStatus();
}

absl::Status PassState::AddZero(const std::string& name, std::int64_t micro_step, std::int64_t count) {
  std::vector<Parameter> levels;
  const Parameter* next = FindAccumulator(name);
  while (next != nullptr) {
    levels.push_back(*next);
    next = FindAccumulator(absl::StrCat(name, ".level", levels.size()));
  }
  const auto is_known = [this](const Parameter& level) {
    const auto zero = zeros_.find(level.entry().get());
    return zero != zeros_.end() && zero->second == level.entry()->version();
  };
  if (std::all_of(levels.begin(), levels.end(), is_known)) return absl::OkStatus();
  std::vector<float> gradient(NumElements(levels.front().shape()), 0.0f);  // what the level reads
  for (std::size_t level = 0; level < levels.size(); ++level) {
    const absl::StatusOr<Tensor> value = levels[level].Value();
    if (!value.ok()) return value.status();
    std::vector<float> sum = value->ToFloats();
    const scalar::AccumulateOp accumulate = AccumulateAt(static_cast<std::int64_t>(level), count);
    const auto action = accumulate.ActionIn(static_cast<std::int32_t>(micro_step));
    if (action != scalar::AccumulateOp::Action::kKeep) {
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] = accumulate.Apply(action, sum[i], gradient[i]);
      if (absl::Status set = levels[level].SetData(Tensor::From(sum, levels[level].shape())); !set.ok()) return set;
      const bool zero = std::all_of(sum.begin(), sum.end(), [](float element) { return element == 0; });
      if (zero) zeros_[levels[level].entry().get()] = levels[level].entry()->version();
    }
    gradient = std::move(sum);
  }
  return absl::OkStatus();
}

std::shared_ptr<runtime::StateEntry> PassState::FindDerived(std::string_view name) const {
  for (const std::shared_ptr<runtime::StateEntry>& entry : derived_) {
    if (entry->name() == name) return entry;
  }
  return nullptr;
}

absl::StatusOr<std::shared_ptr<runtime::StateEntry>> PassState::Derived(std::string_view name, const TensorSpec& spec) {
  if (FindAccumulator(name) != nullptr) return TakenBy(Role::kAccumulator, name);
  std::shared_ptr<runtime::StateEntry> entry = FindDerived(name);
  if (entry != nullptr && entry->spec() == spec) return entry;
  // Its source has been replaced. The Programs that bind it have no further use.
  if (entry != nullptr) std::erase(derived_, entry);
  derived_.push_back(std::make_shared<runtime::StateEntry>(std::string(name), Role::kDerived, spec));
  return derived_.back();
}

absl::StatusOr<Parameter> PassState::Accumulator(std::string_view name, const TensorSpec& spec) {
  if (FindDerived(name) != nullptr) return TakenBy(Role::kDerived, name);
  if (const Parameter* accumulator = FindAccumulator(name)) {
    if (absl::Status status = CheckSpec(*accumulator->entry(), spec); !status.ok()) return status;
    return *accumulator;
  }
  const std::vector<std::uint8_t> zeros(spec.bytes(), 0);
  Parameter accumulator(Tensor::FromBytes(spec, zeros.data(), zeros.size()),
                        {.requires_grad = false, .role = Role::kAccumulator});
  accumulator.set_name(std::string(name));
  accumulators_.push_back(accumulator);
  return accumulator;
}

const Parameter* PassState::KeptBy(const std::string& name, absl::Span<const Parameter> known) {
  const std::string_view kept = KeptBeforeUpdate(name);
  // The gradient of a Parameter "old.w" has the name of what keeps "w".
  const std::string gathers = absl::StrCat("old.", std::string(kept));
  const auto find = [&](std::string_view wanted) {
    return std::find_if(known.begin(), known.end(), [&](const Parameter& each) { return each.name() == wanted; });
  };
  const auto state = find(kept);
  return !kept.empty() && state != known.end() && find(gathers) == known.end() ? &*state : nullptr;
}

void PassState::NoteKept(const std::string& name, absl::Span<const Parameter> known) {
  if (const Parameter* state = KeptBy(name, known)) kept_.insert_or_assign(name, *state);
}

PassState::Versions PassState::VersionsOf(const Parameter& accumulator, const Parameter& state) {
  return {state, accumulator.entry()->version(), state.entry()->version()};
}

const Parameter* PassState::StateKeptBy(const std::string& name) const {
  const auto bound = kept_.find(name);
  if (bound != kept_.end()) return &bound->second;
  const auto restored = versions_.find(name);
  return restored == versions_.end() ? nullptr : &restored->second.kept;
}

void PassState::NoteVersions() {
  for (const Parameter& accumulator : accumulators_) {
    const Parameter* state = StateKeptBy(accumulator.name());
    if (state != nullptr) versions_.insert_or_assign(accumulator.name(), VersionsOf(accumulator, *state));
  }
}

void PassState::NoteVersionsOf(absl::Span<const Parameter> known) {
  for (const Parameter& accumulator : accumulators_) {
    const Parameter* state = KeptBy(accumulator.name(), known);
    if (state != nullptr) versions_.insert_or_assign(accumulator.name(), VersionsOf(accumulator, *state));
  }
}

absl::Status PassState::KeepWritten(std::int64_t micro_step) {
  // The first micro-step keeps the present values itself.
  if (micro_step == 0) return absl::OkStatus();
  for (const Parameter& accumulator : accumulators_) {
    const Parameter* state = StateKeptBy(accumulator.name());
    const auto noted = versions_.find(accumulator.name());
    if (state == nullptr || noted == versions_.end()) continue;
    const Versions now = VersionsOf(accumulator, *state);
    // Who writes both, as one who restores them, has said what the value was before the update.
    if (now.state == noted->second.state || now.accumulator != noted->second.accumulator) continue;
    if (absl::Status kept = KeepPresent(accumulator); !kept.ok()) return kept;
  }
  return absl::OkStatus();
}

absl::Status PassState::KeepPresent(Parameter accumulator) {
  const Parameter* found = StateKeptBy(accumulator.name());
  if (found == nullptr) return absl::OkStatus();
  const Parameter state = *found;
  const absl::StatusOr<Tensor> present = state.Value();
  if (!present.ok()) return present.status();
  absl::Status set = accumulator.SetData(present->To(accumulator.entry()->spec().dtype));
  versions_.insert_or_assign(accumulator.name(), VersionsOf(accumulator, state));
  return set;
}

absl::Status PassState::BeginUpdateWithout(const std::set<std::string_view>& bound) {
  // No Program has bound it: it is from a file, and of another update.
  std::erase_if(accumulators_, [&](const Parameter& accumulator) {
    const std::string& name = accumulator.name();
    return bound.count(name) == 0 && kept_.count(name) == 0 && !KeptBeforeUpdate(name).empty();
  });
  for (const Parameter& accumulator : accumulators_) {
    if (bound.count(accumulator.name()) > 0) continue;
    if (absl::Status kept = KeepPresent(accumulator); !kept.ok()) return kept;
  }
  return absl::OkStatus();
}

void PassState::BeginUpdateOfOthers(absl::Span<const Parameter> known) {
  bool replaced = false;
  for (const Parameter& parameter : known) {
    const Role role = parameter.entry()->role();
    if (role != Role::kParameter && role != Role::kStatistic) continue;
    const auto [earlier, is_new] = gathered_for_.try_emplace(parameter.name(), parameter);
    if (is_new || earlier->second == parameter) continue;
    earlier->second = parameter;
    replaced = true;
  }
  if (!replaced) return;
  accumulators_.clear();
  zeros_.clear();
  kept_.clear();
  versions_.clear();
}

absl::StatusOr<PassState::Bound> PassState::Bind(absl::Span<const runtime::StateBinding> bindings,
                                                 absl::Span<const Parameter> known) {
  const bool gathers = std::any_of(bindings.begin(), bindings.end(), [](const runtime::StateBinding& binding) {
    return binding.role == Role::kAccumulator;
  });
  if (gathers) BeginUpdateOfOthers(known);
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
      const bool is_new = FindAccumulator(binding.name) == nullptr;
      absl::StatusOr<Parameter> accumulator = Accumulator(binding.name, binding.spec);
      if (!accumulator.ok()) return accumulator.status();
      NoteKept(binding.name, known);
      if (absl::Status kept = is_new ? KeepPresent(*accumulator) : absl::OkStatus(); !kept.ok()) return kept;
      bound.accumulators.push_back(*std::move(accumulator));
    }
  }
  return bound;
}

}  // namespace mpc::internal
