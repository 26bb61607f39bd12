#include "tools/support/step_purpose.h"

#include <map>
#include <string>

#include "absl/strings/match.h"

namespace mpc::tools {
namespace {

// A Program names kernels, and mpc-run, which reads Programs, holds no dialect to ask what they are:
// step_purpose_test holds the table against what the operations say of themselves.
const std::map<std::string_view, StepPurpose>& PurposesByKernel() {
  static const auto* const purposes = new std::map<std::string_view, StepPurpose>{
      {"scale_loss", StepPurpose::kScale},
      {"update_loss_scale", StepPurpose::kScale},
      {"all_finite", StepPurpose::kCheck},
      {"check_finite", StepPurpose::kCheck},
      {"merge_checks", StepPurpose::kCheck},
      {"all_of", StepPurpose::kCheck},
      {"any_of", StepPurpose::kCheck},
      {"unscale", StepPurpose::kUnscale},
      {"global_norm", StepPurpose::kClip},
      {"sum_of_squares", StepPurpose::kClip},
      {"clip_by_norm", StepPurpose::kClip},
      {"accumulate_gradient", StepPurpose::kUpdate},
      {"next_micro_step", StepPurpose::kUpdate},
      {"increment", StepPurpose::kUpdate},
      {"batch_norm_running_update", StepPurpose::kUpdate},
  };
  return *purposes;
}

// A choice between whole tensors: the new state or the old one.
bool ChoosesState(const runtime::Program& program, const runtime::Instruction& instruction) {
  return instruction.kernel == "select" && program.values[instruction.inputs[0]].spec.num_elements() == 1;
}

}  // namespace

const std::vector<StepPurpose>& StepPurposes() {
  static const auto* const purposes =
      new std::vector<StepPurpose>{StepPurpose::kCompute, StepPurpose::kScale, StepPurpose::kCheck, StepPurpose::kSkip,
                                   StepPurpose::kUnscale, StepPurpose::kClip,  StepPurpose::kUpdate};
  return *purposes;
}

const char* PurposeName(StepPurpose purpose) {
  switch (purpose) {
    case StepPurpose::kCompute:
      return "compute";
    case StepPurpose::kScale:
      return "scale";
    case StepPurpose::kCheck:
      return "check";
    case StepPurpose::kSkip:
      return "skip";
    case StepPurpose::kUnscale:
      return "unscale";
    case StepPurpose::kClip:
      return "clip";
    case StepPurpose::kUpdate:
      return "update";
  }
  return "";
}

StepPurpose PurposeOf(const runtime::Program& program, const runtime::Instruction& instruction) {
  const auto known = PurposesByKernel().find(instruction.kernel);
  if (known != PurposesByKernel().end()) return known->second;
  if (ChoosesState(program, instruction)) return StepPurpose::kSkip;
  return absl::StartsWith(instruction.scope, "optimizer") ? StepPurpose::kUpdate : StepPurpose::kCompute;
}

bool IsOfLossScaling(StepPurpose purpose) {
  return purpose == StepPurpose::kScale || purpose == StepPurpose::kCheck || purpose == StepPurpose::kSkip ||
         purpose == StepPurpose::kUnscale;
}

}  // namespace mpc::tools
