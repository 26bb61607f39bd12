#include "tools/mpc-bisect/beginning.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/state/tensor_difference.h"
#include "tools/support/program_results.h"

namespace mpc::tools {
namespace {

using NamedTensors = StepCapsule::NamedTensors;
using Texts = std::map<std::string, std::string>;

constexpr std::size_t kMostLines = 8;

const Tensor* Find(const NamedTensors& tensors, const std::string& name) {
  for (const auto& [known, tensor] : tensors) {
    if (known == name) return &tensor;
  }
  return nullptr;
}

Role RoleOf(const runtime::Program& program, const std::string& name) {
  for (const runtime::StateBinding& binding : program.state) {
    if (binding.name == name) return binding.role;
  }
  return Role::kParameter;
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
    if (other == nullptr && RoleOf(first.program, name) == Role::kParameter) {
      problems.push_back(absl::StrCat("A alone has parameter \"", name, "\""));
    } else if (other != nullptr && other->spec() != tensor.spec()) {
      problems.push_back(absl::StrCat("state \"", name, "\" is ", tensor.spec().ToString(), " in A, ",
                                      other->spec().ToString(), " in B"));
    }
  }
  for (const auto& [name, tensor] : second.state) {
    if (Find(first.state, name) == nullptr && RoleOf(second.program, name) == Role::kParameter) {
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

}  // namespace

absl::StatusOr<Beginning> CompareBeginnings(const StepCapsule& first, const StepCapsule& second) {
  if (absl::Status status = CheckComparable(first, second); !status.ok()) return status;
  Beginning beginning;
  const auto of_roles = [](const StepCapsule& capsule, bool generators) {
    NamedTensors chosen;
    for (const auto& each : capsule.state) {
      if ((RoleOf(capsule.program, each.first) == Role::kRng) == generators) chosen.push_back(each);
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
  const auto add = [&](const char* what, const std::vector<std::string>& details) {
    AddLines(Heading(what, details), details, beginning.lines);
  };
  add("Program", ComparePrograms(first.program, second.program));
  add("choices", CompareTexts(ChoicesOf(first.program), ChoicesOf(second.program)));
  add("options", CompareTexts(first.options, second.options));
  add("origin", CompareTexts(first.origin, second.origin));
  return beginning;
}

std::vector<std::string> CompareEnds(const StepCapsule& first, const StepCapsule& second) {
  std::vector<std::string> details;
  for (std::size_t i = 0; i < std::min(first.record.size(), second.record.size()); ++i) {
    const auto& [name, tensor] = first.record[i];
    const auto& [other_name, other] = second.record[i];
    if (name != other_name || tensor.spec() != other.spec()) continue;
    if (const auto difference = FindDifference(tensor.spec(), tensor.bytes(), other.bytes())) {
      details.push_back(absl::StrCat("output \"", name, "\": ", difference->ToString("A", "B")));
    }
  }
  for (const auto& [name, checksum] : first.after) {
    const auto other = second.after.find(name);
    if (other != second.after.end() && other->second != checksum) {
      details.push_back(absl::StrCat("state \"", name, "\""));
    }
  }
  return details;
}

}  // namespace mpc::tools
