#include "runtime/choose_kernels.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/aligned_buffer.h"
#include "runtime/program_binding.h"

namespace mpc::runtime {
namespace {

/// Makes a kernel's workspace as large as it is wanted: in its place, or behind the arena of `arena` bytes. Returns how
/// far behind it reaches.
std::size_t PlaceWorkspace(std::size_t wanted, std::size_t arena, Instruction& instruction) {
  const bool fits = wanted <= instruction.workspace_bytes;
  instruction.workspace_bytes = wanted;
  if (fits) return 0;
  instruction.workspace_offset = arena;
  return wanted;
}

}  // namespace

absl::Status ChooseKernels(const Device& device, const PlanOptions& options, Program& program) {
  Program result = program;
  const std::vector<std::pair<std::string, std::string>> before = std::exchange(result.choices, {});
  const std::size_t arena = AlignedBuffer::Padded(program.arena_bytes);
  std::size_t behind = 0;
  const auto choose = [&](Instruction& instruction) {
    absl::StatusOr<InstructionPlan> plan = device.Plan(result, instruction, options);
    if (!plan.ok()) return plan.status();
    behind = std::max(behind, PlaceWorkspace(plan->workspace_bytes, arena, instruction));
    const auto known = std::find(result.choices.begin(), result.choices.end(), plan->choice);
    if (!plan->choice.first.empty() && known == result.choices.end()) result.choices.push_back(std::move(plan->choice));
    return absl::OkStatus();
  };
  for (std::size_t i = 0; i < result.instructions.size(); ++i) {
    if (absl::Status status = choose(result.instructions[i]); !status.ok()) {
      return At(DescribeInstruction(program, i), status);
    }
  }
  for (StateRefresh& refresh : result.refreshes) {
    if (absl::Status status = choose(refresh.instruction); !status.ok()) {
      return At(absl::StrCat(program.name, ", refresh of ", program.state[refresh.derived].name), status);
    }
  }
  if (absl::Status status = device.EndPlanning(options); !status.ok()) return At(program.name, status);
  if (behind > 0) result.arena_bytes = arena + AlignedBuffer::Padded(behind);
  // What is no kernel's, such as the rates that a precision was decided with.
  for (const auto& choice : before) {
    const bool chosen_anew = std::any_of(result.choices.begin(), result.choices.end(),
                                         [&](const auto& each) { return each.first == choice.first; });
    if (!chosen_anew) result.choices.push_back(choice);
  }
  program = std::move(result);
  return absl::OkStatus();
}

}  // namespace mpc::runtime
