#include "frontend/state/capsule_layout.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/program_check.h"

namespace mpc {
namespace {

using NamedTensors = StepCapsule::NamedTensors;

/// More ranks than that would be as many threads of a replay.
constexpr std::int64_t kMostRanks = 4096;

internal::NamedSpecs SpecsOfRuns(const StepCapsule& capsule,
                                 std::vector<runtime::NamedValue> runtime::Program::*values) {
  internal::NamedSpecs specs;
  for (std::int64_t run = 0; run < capsule.runs; ++run) {
    const runtime::Program& program = ProgramOfRun(capsule, run);
    for (const runtime::NamedValue& value : program.*values) {
      specs.emplace_back(NameInRun(value.name, run), program.values[value.value].spec);
    }
  }
  return specs;
}

/// Adds to `problems` what `tensors` lack and what they have too much of.
void CheckTensors(const char* what, const internal::NamedSpecs& wanted, const NamedTensors& tensors,
                  std::vector<std::string>& problems) {
  const std::size_t before = problems.size();
  std::set<std::string_view> names;
  for (const auto& [name, spec] : wanted) {
    names.insert(name);
    const Tensor* tensor = internal::FindTensor(tensors, name);
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

/// Adds to `problems` what rank `rank` has that no Program has.
void CheckOtherRank(std::size_t rank, const internal::NamedSpecs& state, const StepCapsule& capsule,
                    std::vector<std::string>& problems) {
  const StepCapsule::OtherRank& other = capsule.other_ranks[rank - 1];
  for (const auto& [name, tensor] : other.state) {
    const bool is_known = std::any_of(state.begin(), state.end(), [&](const auto& each) {
      return each.first == name && tensor.concrete() && tensor.spec() == each.second;
    });
    if (!is_known) problems.push_back(absl::StrCat("state \"", name, "\" of rank ", rank, " is none of the Program's"));
  }
  for (const auto& [name, checksum] : other.after) {
    if (capsule.after.contains(name)) continue;
    problems.push_back(absl::StrCat("rank ", rank, " has a checksum of state \"", name, "\", which rank 0 has not"));
  }
}

}  // namespace

namespace internal {

runtime::Package PackageOf(const StepCapsule& capsule) {
  runtime::Package package;
  package.programs.push_back(capsule.program);
  if (capsule.accumulating.has_value()) package.programs.push_back(*capsule.accumulating);
  for (const runtime::StateBinding& binding : package.State()) {
    package.initial_values.push_back(
        {binding.name, binding.role, binding.spec, std::vector<std::uint8_t>(ElementSize(binding.spec.dtype), 0)});
  }
  return package;
}

std::vector<runtime::StateBinding> StateOf(const StepCapsule& capsule) {
  std::vector<runtime::StateBinding> state;
  const auto add = [&state](const runtime::Program& program) {
    for (const runtime::StateBinding& binding : program.state) {
      if (binding.role == Role::kDerived) continue;
      const auto known =
          std::find_if(state.begin(), state.end(), [&](const auto& each) { return each.name == binding.name; });
      if (known == state.end()) {
        state.push_back(binding);
      } else {
        known->written |= binding.written;
      }
    }
  };
  add(capsule.program);
  if (capsule.accumulating.has_value()) add(*capsule.accumulating);
  return state;
}

NamedSpecs StateSpecs(const StepCapsule& capsule) {
  NamedSpecs specs;
  for (const runtime::StateBinding& binding : StateOf(capsule)) specs.emplace_back(binding.name, binding.spec);
  return specs;
}

NamedSpecs InputSpecs(const StepCapsule& capsule) { return SpecsOfRuns(capsule, &runtime::Program::inputs); }
NamedSpecs OutputSpecs(const StepCapsule& capsule) { return SpecsOfRuns(capsule, &runtime::Program::outputs); }

const Tensor* FindTensor(const NamedTensors& tensors, std::string_view name) {
  for (const auto& [known, tensor] : tensors) {
    if (known == name) return &tensor;
  }
  return nullptr;
}

absl::Status CheckRuns(const StepCapsule& capsule, std::size_t tensors) {
  const std::int64_t runs = capsule.runs;
  if (runs < 1 || (runs > 1 && static_cast<std::uint64_t>(runs) > tensors)) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", runs, " runs of its Program, and ", tensors, " tensors"));
  }
  if (capsule.ranks >= 1 && capsule.ranks <= kMostRanks && runs % capsule.ranks == 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("it has ", runs, " runs of its Program in ", capsule.ranks,
                                                 " ranks; accepted are 1 to ", kMostRanks,
                                                 " ranks with equally many runs"));
}

}  // namespace internal

std::string NameInRun(const std::string& name, std::int64_t run) {
  return run == 0 ? name : absl::StrCat(name, "@", run + 1);
}

std::int64_t RankOfRun(const StepCapsule& capsule, std::int64_t run) { return run / (capsule.runs / capsule.ranks); }

const runtime::Program& ProgramOfRun(const StepCapsule& capsule, std::int64_t run) {
  const std::int64_t of_rank = capsule.runs / capsule.ranks;
  const bool is_last = run % of_rank + 1 == of_rank;
  return is_last || !capsule.accumulating.has_value() ? capsule.program : *capsule.accumulating;
}

std::string DescribeRun(const StepCapsule& capsule, std::int64_t run) {
  const std::string rank = capsule.ranks > 1 ? absl::StrCat(" (rank ", RankOfRun(capsule, run), ")") : "";
  return absl::StrCat("micro-batch ", run + 1, " of ", capsule.runs, rank);
}

std::string DescribeRuns(const StepCapsule& capsule) {
  const std::string ranks = capsule.ranks > 1 ? absl::StrCat(" of ", capsule.ranks, " ranks") : "";
  return absl::StrCat(capsule.runs, " micro-batches", ranks);
}

bool IsFinite(const StepCapsule& capsule, const NamedTensors& record) {
  std::size_t next = 0;
  for (std::int64_t run = 0; run < capsule.runs; ++run) {
    const std::size_t outputs = ProgramOfRun(capsule, run).outputs.size();
    for (std::size_t i = 0; i < outputs && next < record.size(); ++i, ++next) {
      const auto& [name, value] = record[next];
      const bool is_flag = absl::StartsWith(name, "finite");
      if (!is_flag && i > 0) continue;
      for (const float element : value.ToFloats()) {
        if (is_flag ? element == 0 : !std::isfinite(element)) return false;
      }
    }
  }
  return true;
}

std::vector<absl::Span<const std::uint8_t>> InputsOfRun(const StepCapsule& capsule, std::int64_t run) {
  const std::size_t count = capsule.program.inputs.size();
  std::vector<absl::Span<const std::uint8_t>> inputs;
  for (std::size_t i = 0; i < count; ++i) {
    inputs.push_back(capsule.batch[static_cast<std::size_t>(run) * count + i].second.bytes());
  }
  return inputs;
}

absl::Status CheckStepCapsule(const StepCapsule& capsule) {
  if (absl::Status status = runtime::CheckProgram(capsule.program); !status.ok()) return status;
  if (capsule.accumulating.has_value()) {
    if (absl::Status status = runtime::CheckProgram(*capsule.accumulating); !status.ok()) return status;
  }
  absl::Status runs = internal::CheckRuns(capsule, capsule.batch.size() + capsule.record.size());
  if (!runs.ok()) return runs;
  std::vector<std::string> problems;
  if (capsule.accumulating.has_value() && capsule.accumulating->inputs.size() != capsule.program.inputs.size()) {
    problems.push_back(absl::StrCat("its Programs have ", capsule.program.inputs.size(), " and ",
                                    capsule.accumulating->inputs.size(), " inputs"));
  }
  const internal::NamedSpecs state = internal::StateSpecs(capsule);
  CheckTensors("state", state, capsule.state, problems);
  CheckTensors("input", internal::InputSpecs(capsule), capsule.batch, problems);
  CheckTensors("output", internal::OutputSpecs(capsule), capsule.record, problems);
  for (const runtime::StateBinding& binding : internal::StateOf(capsule)) {
    if (!binding.written || capsule.after.contains(binding.name)) continue;
    problems.push_back(absl::StrCat("state \"", binding.name, "\" has no checksum after the step"));
  }
  if (static_cast<std::int64_t>(capsule.other_ranks.size()) != capsule.ranks - 1) {
    problems.push_back(
        absl::StrCat("it is of ", capsule.ranks, " ranks, and has the state of ", capsule.other_ranks.size() + 1));
  }
  for (std::size_t rank = 1; rank <= capsule.other_ranks.size(); ++rank) {
    CheckOtherRank(rank, state, capsule, problems);
  }
  if (problems.empty()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrJoin(problems, "\n"));
}

}  // namespace mpc
