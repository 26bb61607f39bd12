#include "runtime/choose_kernels.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/aligned_buffer.h"
#include "runtime/packed_weights.h"
#include "runtime/program_binding.h"

namespace mpc::runtime {
namespace {

/// Plans instructions again. A workspace or packed weight that no longer fits its place moves behind the arena. There
/// one instruction, together with the one that packs its weight, may use all the memory.
class Chooser {
 public:
  /// `program` has no kept weights.
  Chooser(const Device& device, const PlanOptions& options, Program& program)
      : device_(device),
        options_(options),
        program_(program),
        packer_(program, FindStateChanges(program), options.keep_packed_weights),
        arena_(AlignedBuffer::Padded(program.arena_bytes)) {}

  /// Makes a choice for `instruction`. `pack` is the instruction that packs its weight, if there is one: the old one
  /// before the call, the new one after it. `position` is that of WeightPacker::Pack.
  absl::Status Choose(std::optional<std::size_t> position, Instruction& instruction, std::optional<Instruction>& pack) {
    const std::optional<Instruction> before = std::exchange(pack, std::nullopt);
    if (before) UnpackWeight(*before, instruction);
    absl::StatusOr<InstructionPlan> plan = Plan(instruction);
    if (!plan.ok()) return plan.status();
    std::size_t begin = arena_;
    if (plan->packing) {
      pack = packer_.Pack(*plan->packing, position, instruction);
      plan = Plan(instruction);
      if (!plan.ok()) return plan.status();
    }
    if (pack) {
      begin += PlacePacked(before, pack->outputs[0]);
      if (before) {
        pack->workspace_bytes = before->workspace_bytes;
        pack->workspace_offset = before->workspace_offset;
      }
      if (absl::Status status = PlanAndPlace(begin, *pack); !status.ok()) return status;
    }
    PlaceWorkspace(plan->workspace_bytes, begin, instruction);
    return absl::OkStatus();
  }

  /// Plans the refreshes of derived state again: those that the Program had, and those of weights that are now kept
  /// packed.
  absl::Status ChooseRefreshes() {
    for (StateRefresh& refresh : packer_.TakeRefreshes()) program_.refreshes.push_back(std::move(refresh));
    for (StateRefresh& refresh : program_.refreshes) {
      if (absl::Status status = PlanAndPlace(arena_, refresh.instruction); !status.ok()) {
        return WithPlace(DescribeRefresh(program_, refresh), status);
      }
    }
    return absl::OkStatus();
  }

  /// Plans the workspace alone. A weight stays packed, or unpacked, as it is.
  absl::Status Enlarge(Instruction& instruction) { return PlanAndPlace(arena_, instruction); }

  /// Bytes of the arena, with what lies behind it.
  std::size_t arena_bytes() const { return end_ == 0 ? program_.arena_bytes : AlignedBuffer::Padded(end_); }

 private:
  absl::StatusOr<InstructionPlan> Plan(const Instruction& instruction) {
    absl::StatusOr<InstructionPlan> plan = device_.Plan(program_, instruction, options_);
    if (!plan.ok() || plan->choice.first.empty()) return plan;
    auto& choices = program_.choices;
    if (std::find(choices.begin(), choices.end(), plan->choice) == choices.end()) choices.push_back(plan->choice);
    return plan;
  }

  absl::Status PlanAndPlace(std::size_t begin, Instruction& instruction) {
    const absl::StatusOr<InstructionPlan> plan = Plan(instruction);
    if (plan.ok()) PlaceWorkspace(plan->workspace_bytes, begin, instruction);
    return plan.status();
  }

  /// Places the packed weight where that of `before` lay, if it fits there, else behind the arena. Returns the bytes
  /// that it takes behind the arena.
  std::size_t PlacePacked(const std::optional<Instruction>& before, ValueId packed) {
    Value& value = program_.values[static_cast<std::size_t>(packed)];
    const std::size_t bytes = value.spec.bytes();
    if (before) {
      const Value& old = program_.values[static_cast<std::size_t>(before->outputs[0])];
      value.offset = old.offset;
      if (bytes <= old.spec.bytes()) return 0;
    }
    value.offset = arena_;
    end_ = std::max(end_, arena_ + bytes);
    return AlignedBuffer::Padded(bytes);
  }

  /// Makes a kernel's workspace `wanted` bytes large. It stays in its place where it fits, else it moves to `begin`.
  void PlaceWorkspace(std::size_t wanted, std::size_t begin, Instruction& instruction) {
    const bool fits = wanted <= instruction.workspace_bytes;
    instruction.workspace_bytes = wanted;
    if (fits) return;
    instruction.workspace_offset = begin;
    end_ = std::max(end_, begin + wanted);
  }

  const Device& device_;
  const PlanOptions& options_;
  Program& program_;
  WeightPacker packer_;
  std::size_t arena_;
  std::size_t end_ = 0;  ///< 0: nothing lies behind the arena
};

/// Plans the instructions of a sequence again. Returns the new position of each.
absl::StatusOr<std::vector<std::size_t>> PlanSequence(const Program& before, std::size_t index, Chooser& chooser,
                                                      Sequence& sequence) {
  std::vector<Instruction> instructions = std::exchange(sequence.instructions, {});
  std::optional<Instruction> pack;
  std::vector<std::size_t> moved_to(instructions.size());
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    if (i + 1 < instructions.size() && PacksWeightOf(instructions[i], instructions[i + 1])) {
      pack = std::move(instructions[i]);
      continue;
    }
    if (instructions[i].sequence == 0) {
      const std::optional<std::size_t> position = index == 0 ? std::optional(i) : std::nullopt;
      absl::Status status = chooser.Choose(position, instructions[i], pack);
      if (!status.ok()) return WithPlace(DescribeInstruction(before, i, index), status);
    }
    if (pack) sequence.instructions.push_back(*std::exchange(pack, std::nullopt));
    moved_to[i] = sequence.instructions.size();
    sequence.instructions.push_back(std::move(instructions[i]));
  }
  return moved_to;
}

/// Plans all of `program` again and keeps its choices so far.
absl::Status PlanAgain(const Device& device, const PlanOptions& options, Program& program) {
  Program result = program;
  UnpackKeptWeights(result);
  std::vector<Sequence> sequences = result.sequences;
  Chooser chooser(device, options, result);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    const absl::StatusOr<std::vector<std::size_t>> moved_to = PlanSequence(program, i, chooser, sequences[i]);
    if (!moved_to.ok()) return moved_to.status();
    if (i > 0) continue;
    for (FlatUpdate& update : result.flat_updates) update.first = (*moved_to)[update.first];
  }
  result.sequences = std::move(sequences);
  if (absl::Status status = chooser.ChooseRefreshes(); !status.ok()) return status;
  if (absl::Status status = device.EndPlanning(options); !status.ok()) return WithPlace(program.name, status);
  result.arena_bytes = chooser.arena_bytes();
  program = std::move(result);
  return absl::OkStatus();
}

}  // namespace

absl::Status ChooseKernels(const Device& device, const PlanOptions& options, Program& program) {
  Program result = program;
  result.choices.clear();
  if (absl::Status status = PlanAgain(device, options, result); !status.ok()) return status;
  // Keep the entries that belong to no kernel, such as the rates that a precision was decided with.
  for (const auto& choice : program.choices) {
    const bool chosen_anew = std::any_of(result.choices.begin(), result.choices.end(),
                                         [&](const auto& each) { return each.first == choice.first; });
    if (!chosen_anew) result.choices.push_back(choice);
  }
  program = std::move(result);
  return absl::OkStatus();
}

absl::Status EnlargeWorkspaces(const Device& device, Program& program) {
  Program result = program;
  const PlanOptions options;
  Chooser chooser(device, options, result);
  for (std::size_t index = 0; index < result.sequences.size(); ++index) {
    std::vector<Instruction>& instructions = result.sequences[index].instructions;
    for (std::size_t i = 0; i < instructions.size(); ++i) {
      if (instructions[i].sequence != 0) continue;
      absl::Status status = chooser.Enlarge(instructions[i]);
      if (!status.ok()) return WithPlace(DescribeInstruction(program, i, index), status);
    }
  }
  if (absl::Status status = chooser.ChooseRefreshes(); !status.ok()) return status;
  result.arena_bytes = chooser.arena_bytes();
  program = std::move(result);
  return absl::OkStatus();
}

absl::Status RepackWeights(const Device& device, Program& program) {
  return PlanAgain(device, {.keep_packed_weights = false}, program);
}

}  // namespace mpc::runtime
