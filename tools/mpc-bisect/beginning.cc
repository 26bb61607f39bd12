#include "tools/mpc-bisect/beginning.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/state/capsule_layout.h"
#include "frontend/state/tensor_difference.h"
#include "tools/support/program_results.h"

namespace mpc::tools {
namespace {

using NamedTensors = StepCapsule::NamedTensors;
using Texts = std::map<std::string, std::string>;

constexpr std::size_t kMostLines = 8;
/// The output in which a process says which of its own micro-batches it has run.
constexpr char kMicroStepOutput[] = "micro_step";

const Tensor* Find(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [known, tensor] : tensors) {
    if (known == name) return &tensor;
  }
  return nullptr;
}

Role RoleOf(const StepCapsule& capsule, const std::string& name) {
  for (const runtime::StateBinding& binding : internal::StateOf(capsule)) {
    if (binding.name == name) return binding.role;
  }
  return Role::kParameter;
}

/// Whether entry `name` holds what is summed within a step. It depends on who runs which micro-batches.
bool IsAccumulator(const StepCapsule& capsule, const std::string& name) {
  return RoleOf(capsule, name) == Role::kAccumulator;
}

/// Adds a heading and `details`, of which the first few are enough.
void AddLines(const std::string& heading, const std::vector<std::string>& details, std::vector<std::string>& lines) {
  lines.push_back(absl::StrCat("  ", heading));
  for (std::size_t i = 0; i < std::min(details.size(), kMostLines); ++i) lines.push_back("    " + details[i]);
  if (details.size() > kMostLines) lines.push_back(absl::StrCat("    and ", details.size() - kMostLines, " more"));
}

absl::Status CheckInputs(const StepCapsule& first, const StepCapsule& second) {
  const auto specs = [](const StepCapsule& capsule) {
    return absl::StrJoin(capsule.batch, ", ", [](std::string* out, const auto& input) {
      absl::StrAppend(out, input.first, " ", input.second.spec().ToString());
    });
  };
  if (specs(first) == specs(second)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("the steps take other inputs: ", specs(first), " in A, ", specs(second), " in B"));
}

/// Errors: a parameter that one capsule lacks, state of two types.
absl::Status CheckState(const StepCapsule& first, const StepCapsule& second) {
  std::vector<std::string> problems;
  for (const auto& [name, tensor] : first.state) {
    const Tensor* other = Find(second.state, name);
    if (other == nullptr && RoleOf(first, name) == Role::kParameter) {
      problems.push_back(absl::StrCat("A alone has parameter \"", name, "\""));
    } else if (other != nullptr && other->spec() != tensor.spec()) {
      problems.push_back(absl::StrCat("state \"", name, "\" is ", tensor.spec().ToString(), " in A, ",
                                      other->spec().ToString(), " in B"));
    }
  }
  for (const auto& [name, tensor] : second.state) {
    if (Find(first.state, name) == nullptr && RoleOf(second, name) == Role::kParameter) {
      problems.push_back(absl::StrCat("B alone has parameter \"", name, "\""));
    }
  }
  if (problems.empty()) return absl::OkStatus();
  const std::size_t more = problems.size() > kMostLines ? problems.size() - kMostLines : 0;
  problems.resize(problems.size() - more);
  return absl::InvalidArgumentError(absl::StrCat("the steps are of two networks:\n  ", absl::StrJoin(problems, "\n  "),
                                                 more == 0 ? "" : absl::StrCat("\n  and ", more, " more")));
}

absl::Status CheckComparable(const StepCapsule& first, const StepCapsule& second) {
  if (first.step != second.step) {
    return absl::InvalidArgumentError(absl::StrCat("A is step ", first.step, ", B is step ", second.step,
                                                   ": capsules of the same step are compared"));
  }
  if (absl::Status status = CheckState(first, second); !status.ok()) return status;
  return CheckInputs(first, second);
}

/// A line for each tensor whose bits differ, and for each that one alone has.
std::vector<std::string> CompareTensors(const NamedTensors& first, const NamedTensors& second) {
  std::vector<std::string> details;
  for (const auto& [name, tensor] : first) {
    const Tensor* other = Find(second, name);
    if (other == nullptr) {
      details.push_back(absl::StrCat("\"", name, "\" is in A alone"));
    } else if (const auto difference = FindDifference(tensor.spec(), tensor.bytes(), other->bytes())) {
      details.push_back(absl::StrCat("\"", name, "\": ", difference->ToString("A", "B")));
    }
  }
  for (const auto& [name, tensor] : second) {
    if (Find(first, name) == nullptr) details.push_back(absl::StrCat("\"", name, "\" is in B alone"));
  }
  return details;
}

std::optional<std::string> Lookup(const Texts& texts, const std::string& key) {
  const auto found = texts.find(key);
  return found == texts.end() ? std::nullopt : std::optional(found->second);
}

std::string Quoted(const std::optional<std::string>& text) {
  if (!text.has_value()) return "not set";
  const auto lines = std::count(text->begin(), text->end(), '\n') + 1;
  return lines > 1 ? absl::StrCat("a text of ", lines, " lines") : absl::StrCat("\"", *text, "\"");
}

std::vector<std::string> CompareTexts(const Texts& first, const Texts& second) {
  std::set<std::string> keys;
  for (const Texts* texts : {&first, &second}) {
    for (const auto& [key, value] : *texts) keys.insert(key);
  }
  std::vector<std::string> details;
  for (const std::string& key : keys) {
    if (Lookup(first, key) == Lookup(second, key)) continue;
    details.push_back(
        absl::StrCat(key, ": ", Quoted(Lookup(first, key)), " in A, ", Quoted(Lookup(second, key)), " in B"));
  }
  return details;
}

Texts ChoicesOf(const runtime::Program& program) { return {program.choices.begin(), program.choices.end()}; }

bool SameInstructions(const runtime::Sequence& first, const runtime::Sequence& second) {
  return std::equal(first.instructions.begin(), first.instructions.end(), second.instructions.begin(),
                    second.instructions.end(), [](const runtime::Instruction& a, const runtime::Instruction& b) {
                      return a.kernel == b.kernel && a.scope == b.scope && a.attributes == b.attributes &&
                             a.inputs == b.inputs && a.outputs == b.outputs;
                    });
}

std::vector<std::string> ComparePrograms(const runtime::Program& first, const runtime::Program& second) {
  std::vector<std::string> details;
  if (first.device != second.device || first.arch != second.arch) {
    details.push_back(absl::StrCat("device ", DeviceOf(first), " in A, ", DeviceOf(second), " in B"));
  }
  if (!std::equal(first.sequences.begin(), first.sequences.end(), second.sequences.begin(), second.sequences.end(),
                  SameInstructions)) {
    details.push_back(absl::StrCat("instructions, of which the step has ", first.step().instructions.size(), " in A, ",
                                   second.step().instructions.size(), " in B"));
  }
  if (first.constants != second.constants) details.push_back("constants");
  const auto same_code = [](const runtime::CodeBlob& a, const runtime::CodeBlob& b) { return a.bytes == b.bytes; };
  if (!std::equal(first.code.begin(), first.code.end(), second.code.begin(), second.code.end(), same_code)) {
    details.push_back("generated code");
  }
  if (first.allow_tf32 != second.allow_tf32) details.push_back("whether products may be TF32");
  return details;
}

std::string Heading(const char* what, const std::vector<std::string>& details) {
  return absl::StrCat(what, details.empty() ? ": equal" : ": differs");
}

std::string CountHeading(const char* what, const std::vector<std::string>& details, std::size_t count) {
  if (details.empty()) return absl::StrCat(what, ": equal");
  return absl::StrCat(what, ": ", details.size(), " of ", count, details.size() == 1 ? " differs" : " differ");
}

/// The state of ranks 1, 2, ... of `capsule`, as far as one there differs from rank 0 in it or in `other`, which has as
/// many ranks.
NamedTensors StateOfOthers(const StepCapsule& capsule, const StepCapsule& other) {
  NamedTensors tensors;
  for (std::size_t i = 0; i < capsule.other_ranks.size(); ++i) {
    const NamedTensors& own = capsule.other_ranks[i].state;
    for (const auto& [name, of_first] : capsule.state) {
      const Tensor* const value = Find(own, name);
      if (value == nullptr && Find(other.other_ranks[i].state, name) == nullptr) continue;
      tensors.emplace_back(absl::StrCat(name, " of rank ", i + 1), value == nullptr ? of_first : *value);
    }
  }
  return tensors;
}

/// What two steps may be asked about alike. In another number of ranks only the losses are, and what the last
/// micro-batch gave.
NamedTensors ComparableRecord(const StepCapsule& capsule, bool same_ranks) {
  if (same_ranks) return capsule.record;
  NamedTensors chosen;
  std::size_t next = 0;
  for (std::int64_t run = 0; run < capsule.runs; ++run) {
    const std::size_t outputs = ProgramOfRun(capsule, run).outputs.size();
    for (std::size_t i = 0; i < outputs; ++i, ++next) {
      const bool counts_own_runs = absl::StartsWith(capsule.record[next].first, kMicroStepOutput);
      if (i == 0 || (run + 1 == capsule.runs && !counts_own_runs)) chosen.push_back(capsule.record[next]);
    }
  }
  return chosen;
}

}  // namespace

absl::StatusOr<Beginning> CompareBeginnings(const StepCapsule& first, const StepCapsule& second) {
  if (absl::Status status = CheckComparable(first, second); !status.ok()) return status;
  Beginning beginning;
  const bool same_ranks = first.ranks == second.ranks;
  const auto of_roles = [same_ranks](const StepCapsule& capsule, bool generators) {
    NamedTensors chosen;
    for (const auto& each : capsule.state) {
      if (!same_ranks && IsAccumulator(capsule, each.first)) continue;
      if ((RoleOf(capsule, each.first) == Role::kRng) == generators) chosen.push_back(each);
    }
    return chosen;
  };
  const auto compare = [&](const char* what, const NamedTensors& a, const NamedTensors& b) {
    const std::vector<std::string> details = CompareTensors(a, b);
    beginning.differs |= !details.empty();
    AddLines(CountHeading(what, details, std::max(a.size(), b.size())), details, beginning.lines);
  };
  compare("batch", first.batch, second.batch);
  compare("state", of_roles(first, false), of_roles(second, false));
  compare("generator", of_roles(first, true), of_roles(second, true));
  if (same_ranks && first.ranks > 1) {
    compare("state of other ranks", StateOfOthers(first, second), StateOfOthers(second, first));
  }
  const auto add = [&](const char* what, const std::vector<std::string>& details) {
    AddLines(Heading(what, details), details, beginning.lines);
  };
  std::vector<std::string> programs = ComparePrograms(first.program, second.program);
  if (first.accumulating.has_value() != second.accumulating.has_value()) {
    programs.push_back(absl::StrCat("the micro-batches before the last have a Program of their own in ",
                                    first.accumulating.has_value() ? "A" : "B", " alone"));
  } else if (first.accumulating.has_value()) {
    for (const std::string& line : ComparePrograms(*first.accumulating, *second.accumulating)) {
      programs.push_back("of the micro-batches before the last: " + line);
    }
  }
  add("Program", programs);
  add("choices", CompareTexts(ChoicesOf(first.program), ChoicesOf(second.program)));
  add("options", CompareTexts(first.options, second.options));
  add("origin", CompareTexts(first.origin, second.origin));
  return beginning;
}

std::vector<std::string> CompareEnds(const StepCapsule& first, const StepCapsule& second) {
  std::vector<std::string> details;
  const bool same_ranks = first.ranks == second.ranks;
  const NamedTensors record = ComparableRecord(first, same_ranks);
  const NamedTensors other_record = ComparableRecord(second, same_ranks);
  for (std::size_t i = 0; i < std::min(record.size(), other_record.size()); ++i) {
    const auto& [name, tensor] = record[i];
    const auto& [other_name, other] = other_record[i];
    if (name != other_name || tensor.spec() != other.spec()) continue;
    if (const auto difference = FindDifference(tensor.spec(), tensor.bytes(), other.bytes())) {
      details.push_back(absl::StrCat("output \"", name, "\": ", difference->ToString("A", "B")));
    }
  }
  for (const auto& [name, checksum] : first.after) {
    const auto other = second.after.find(name);
    if (other == second.after.end() || other->second == checksum) continue;
    if (same_ranks || !IsAccumulator(first, name)) details.push_back(absl::StrCat("state \"", name, "\""));
  }
  return details;
}

}  // namespace mpc::tools
