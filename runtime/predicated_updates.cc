#include "runtime/predicated_updates.h"

#include "kernels/attribute_enums.h"
#include "kernels/known_attributes.h"
#include "runtime/flat_updates.h"

namespace mpc::runtime {
namespace {

bool IsState(const Program& program, ValueId id) {
  return id != kNoValue && program.values[id].storage == Storage::kState;
}

/// The predicate of an optimizer, its last operand. No other operand is a bool.
ValueId PredicateOf(const Program& program, const Instruction& update) {
  if (!IsOptimizer(update.kernel) || update.inputs.empty()) return kNoValue;
  const ValueId last = update.inputs.back();
  return last != kNoValue && program.values[last].spec.dtype == DType::kBool ? last : kNoValue;
}

/// Whether `result`, which is state, holds the same after `update` is skipped.
bool KeepsContent(const Program& program, const Instruction& update, std::size_t result) {
  const std::int32_t state = program.values[update.outputs[result]].index;
  if (result < update.inputs.size() && IsState(program, update.inputs[result]) &&
      program.values[update.inputs[result]].index == state) {
    return true;
  }
  // A low copy has no operand of its own. It equals the rounded parameter before the step, too.
  const bool has_low_copy = update.attributes.Get(attribute::kLowCopy) != LowCopy::kNone;
  return has_low_copy && result + 1 == update.outputs.size() &&
         program.state[static_cast<std::size_t>(state)].role == Role::kDerived;
}

/// How many instructions and copies write each entry.
std::vector<int> CountWriters(const Program& program) {
  std::vector<int> writers(program.state.size(), 0);
  const auto count = [&](ValueId id) {
    if (IsState(program, id)) ++writers[static_cast<std::size_t>(program.values[id].index)];
  };
  for (const Sequence& sequence : program.sequences) {
    for (const Instruction& instruction : sequence.instructions) {
      for (const ValueId id : instruction.outputs) count(id);
    }
    for (const ValueCopy& copy : sequence.copies) count(copy.to);
  }
  return writers;
}

}  // namespace

bool IsOptimizer(std::string_view name) { return IsElementwiseUpdate(name) || name == "lamb"; }

std::vector<PredicatedUpdate> FindPredicatedUpdates(const Program& program) {
  const std::vector<int> writers = CountWriters(program);
  std::vector<PredicatedUpdate> updates;
  const std::vector<Instruction>& instructions = program.step().instructions;
  for (std::size_t i = 0; i < instructions.size(); ++i) {
    const Instruction& update = instructions[i];
    const ValueId predicate = PredicateOf(program, update);
    if (predicate == kNoValue) continue;
    for (std::size_t result = 0; result < update.outputs.size(); ++result) {
      const ValueId written = update.outputs[result];
      if (!IsState(program, written) || !KeepsContent(program, update, result)) continue;
      const std::int32_t state = program.values[written].index;
      if (writers[static_cast<std::size_t>(state)] == 1) updates.push_back({i, predicate, state});
    }
  }
  return updates;
}

}  // namespace mpc::runtime
