#include "frontend/train/resumed_compilation.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/device_rates.h"
#include "frontend/state/checkpoint_fit.h"

namespace mpc::internal {

std::string ProgramSignature(const runtime::Program& program) {
  std::vector<std::string> inputs;
  for (const runtime::NamedValue& input : program.inputs) inputs.push_back(program.values[input.value].spec.ToString());
  return absl::StrCat(program.name, "(", absl::StrJoin(inputs, ", "), ")");
}

void ResumedCompilation::Take(const CheckpointMetadata& metadata, bool same_level) {
  inputs_ = metadata.inputs;
  precision_ = same_level ? metadata.precision : TextMap();
  choices_ = same_level ? metadata.choices : std::map<std::string, TextMap>();
}

std::optional<compiler::DeviceRates> ResumedCompilation::Rates() const {
  for (const auto& [signature, choices] : choices_) {
    if (std::optional<compiler::DeviceRates> rates = amp::RatesFromChoices(choices); rates.has_value()) return rates;
  }
  return std::nullopt;
}

std::string ResumedCompilation::WarningOf(const runtime::Program& program) const {
  const auto stored = choices_.find(ProgramSignature(program));
  if (stored == choices_.end()) return "";
  const TextMap own(program.choices.begin(), program.choices.end());
  const std::vector<std::string> lines = Differences(stored->second, own);
  if (lines.empty()) return "";
  return absl::StrCat("warning: ", program.name, " is not compiled as for the checkpoint, so results may differ ",
                      "in their last bits:\n  ", absl::StrJoin(lines, "\n  "));
}

void ResumedCompilation::AddTo(CheckpointMetadata& metadata) const {
  metadata.inputs = inputs_;
  metadata.choices = choices_;
  metadata.precision = precision_;
}

}  // namespace mpc::internal
