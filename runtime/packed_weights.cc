#include "runtime/packed_weights.h"

#include <algorithm>
#include <cassert>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/predicated_updates.h"

namespace mpc::runtime {
namespace {

/// The name of a packed weight says all that it depends on: "conv1.weight.packed.f32.ABcd16b16a.64x32x3x3".
std::string NameOf(const std::string& weight, const WeightPacking& packing) {
  std::string name = absl::StrCat(weight, ".packed.", std::string(DTypeName(packing.packed.dtype)), ".", packing.layout,
                                  ".", ShapeToString(packing.extents));
  if (packing.strides != RowMajorStrides(packing.extents)) {
    absl::StrAppend(&name, ".", absl::StrJoin(packing.strides, "_"));
  }
  return name;
}

}  // namespace

bool PacksWeightOf(const Instruction& pack, const Instruction& instruction) {
  return PacksWeight(pack) && pack.inputs.size() == 1 && pack.outputs.size() == 1 &&
         instruction.inputs.size() > kWeightOperand && instruction.inputs[kWeightOperand] == pack.outputs[0];
}

Instruction PackWeight(const WeightPacking& packing, Program& program, Instruction& instruction) {
  assert(instruction.inputs.size() > kWeightOperand && "only an instruction with a weight reads it packed");
  ValueId& weight = instruction.inputs[kWeightOperand];
  MarkPacked(packing, program.values[weight].spec, instruction.attributes);
  Instruction pack;
  pack.kernel = kPackWeight;
  pack.attributes = PackingAttributes(packing);
  pack.scope = instruction.scope;
  pack.phase = instruction.phase;
  pack.inputs = {weight};
  weight = static_cast<ValueId>(program.values.size());
  pack.outputs = {weight};
  Value packed;
  packed.spec = packing.packed;
  program.values.push_back(std::move(packed));
  return pack;
}

void UnpackWeight(const Instruction& pack, Instruction& instruction) {
  assert(PacksWeightOf(pack, instruction) && "only what is packed is unpacked");
  instruction.inputs[kWeightOperand] = pack.inputs[0];
  UnmarkPacked(instruction.attributes);
}

bool Accumulates(const Program& program) {
  return std::any_of(program.state.begin(), program.state.end(),
                     [](const StateBinding& binding) { return binding.role == Role::kAccumulator; });
}

std::vector<StateChange> FindStateChanges(const Program& program) {
  std::vector<StateChange> changes;
  for (const StateBinding& binding : program.state) {
    changes.push_back(binding.written ? StateChange::kAlways : StateChange::kNever);
  }
  if (!Accumulates(program)) return changes;
  for (const PredicatedUpdate& update : FindPredicatedUpdates(program)) {
    changes[static_cast<std::size_t>(update.state)] = StateChange::kSeldom;
  }
  return changes;
}

bool WeightPacker::Keeps(const Value& weight, std::optional<std::size_t> position) const {
  if (!keeps_ || weight.storage != Storage::kState) return false;
  const auto state = static_cast<std::size_t>(weight.index);
  const StateChange change = state < changes_.size() ? changes_[state] : StateChange::kNever;
  if (change != StateChange::kSeldom) return change == StateChange::kNever;
  // What is kept was packed before the step. A reader behind the update wants the new weight.
  const std::vector<Instruction>& step = program_.step().instructions;
  if (!position || *position > step.size()) return false;
  const auto writes = [&](const Instruction& instruction) {
    return std::any_of(instruction.outputs.begin(), instruction.outputs.end(), [&](ValueId id) {
      return id != kNoValue && program_.values[id].storage == Storage::kState &&
             program_.values[id].index == weight.index;
    });
  };
  return std::none_of(step.begin(), step.begin() + static_cast<std::ptrdiff_t>(*position), writes);
}

std::optional<Instruction> WeightPacker::Pack(const WeightPacking& packing, std::optional<std::size_t> position,
                                              Instruction& instruction) {
  const Value weight = program_.values[instruction.inputs[kWeightOperand]];
  Instruction pack = PackWeight(packing, program_, instruction);
  if (!Keeps(weight, position)) return pack;
  Keep(packing, std::move(pack), instruction);
  return std::nullopt;
}

void WeightPacker::Keep(const WeightPacking& packing, Instruction pack, Instruction& instruction) {
  assert(program_.values[pack.inputs[0]].storage == Storage::kState && "only state is kept packed");
  const std::int32_t source = program_.values[pack.inputs[0]].index;
  const std::string name = NameOf(program_.state[source].name, packing);
  const auto known = std::find_if(refreshes_.begin(), refreshes_.end(), [&](const StateRefresh& refresh) {
    return program_.state[refresh.derived].name == name;
  });
  if (known != refreshes_.end()) {
    instruction.inputs[kWeightOperand] = known->instruction.outputs[0];
    assert(static_cast<std::size_t>(pack.outputs[0]) + 1 == program_.values.size() && "the packed value is the last");
    program_.values.pop_back();
    return;
  }
  Value& packed = program_.values[pack.outputs[0]];
  packed.storage = Storage::kState;
  packed.index = static_cast<std::int32_t>(program_.state.size());
  program_.state.push_back({name, Role::kDerived, packing.packed, false});
  refreshes_.push_back({packed.index, source, std::move(pack)});
}

bool HasPackedWeights(const Program& program) {
  const auto refreshes = [](const StateRefresh& refresh) { return PacksWeight(refresh.instruction); };
  const auto packs = [](const Sequence& sequence) {
    return std::any_of(sequence.instructions.begin(), sequence.instructions.end(), PacksWeight);
  };
  return std::any_of(program.sequences.begin(), program.sequences.end(), packs) ||
         std::any_of(program.refreshes.begin(), program.refreshes.end(), refreshes);
}

void UnpackKeptWeights(Program& program) {
  std::vector<bool> dropped(program.state.size(), false);
  const auto is_packed = [&](const StateRefresh& refresh) { return PacksWeight(refresh.instruction); };
  for (const StateRefresh& refresh : program.refreshes) {
    if (!is_packed(refresh)) continue;
    assert(static_cast<std::size_t>(refresh.derived) < dropped.size());
    dropped[refresh.derived] = true;
    for (Sequence& sequence : program.sequences) {
      for (Instruction& instruction : sequence.instructions) {
        if (PacksWeightOf(refresh.instruction, instruction)) UnpackWeight(refresh.instruction, instruction);
      }
    }
  }
  std::erase_if(program.refreshes, is_packed);
  std::vector<std::int32_t> places;
  std::vector<StateBinding> kept;
  for (std::size_t i = 0; i < dropped.size(); ++i) {
    places.push_back(static_cast<std::int32_t>(kept.size()));
    if (!dropped[i]) kept.push_back(std::move(program.state[i]));
  }
  program.state = std::move(kept);
  for (Value& value : program.values) {
    if (value.storage != Storage::kState) continue;
    if (dropped[value.index]) {
      value = Value{{value.spec.dtype, {0}}};  // an empty value: no instruction uses it
    } else {
      value.index = places[value.index];
    }
  }
  for (StateRefresh& refresh : program.refreshes) {
    refresh.derived = places[refresh.derived];
    refresh.source = places[refresh.source];
  }
}

}  // namespace mpc::runtime
