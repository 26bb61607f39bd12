#include "runtime/flat_updates.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "runtime/program_binding.h"
#include "runtime/step_groups.h"

namespace mpc::runtime {
namespace {

constexpr std::string_view kElementwiseUpdates[] = {"adam", "adam_weight_decay", "adamw", "momentum", "sgd"};

/// Whether `operand` is one of the tensors of `update`, not one of its scalars.
bool IsTensor(const Program& program, const Instruction& update, ValueId operand) {
  return program.values[operand].spec.shape == program.values[update.inputs[0]].spec.shape;
}

std::int64_t Elements(const Program& program, const Instruction& update) {
  return program.values[update.inputs[0]].spec.num_elements();
}

/// Whether a result of `update` overwrites the input at its position.
bool IsInPlace(const Program& program, const Instruction& update, std::size_t result) {
  if (result >= update.inputs.size()) return false;
  const Value& input = program.values[update.inputs[result]];
  return input.storage == Storage::kState && input.index == program.values[update.outputs[result]].index;
}

/// A tensor of an update: its storage, and the state's index or the temporary's place (PlaceOf).
using Tensor = std::pair<Storage, std::int32_t>;
using Tensors = absl::flat_hash_set<Tensor>;

/// The instructions that become one update.
class Members {
 public:
  /// `taken` holds the tensors of other updates.
  Members(const Program& program, const PlaceOf& place_of, const Tensors& taken, std::size_t first)
      : program_(program), place_of_(place_of), taken_(taken), first_(program.step().instructions[first]) {}

  const Tensors& tensors() const { return own_; }

  /// Adds instruction `i`, which follows those before it. Returns why it cannot join them, or "".
  std::string Add(std::size_t i) {
    const Instruction& update = program_.step().instructions[i];
    if (!IsElementwiseUpdate(update.kernel)) return absl::StrCat("\"", update.kernel, "\" is no element-wise update");
    if (!HasOperands(update)) return "operands are missing";
    if (!MayShareKernel(program_, first_, update)) return "kernel, attributes, types or results are others";
    if (program_.values[update.inputs[0]].spec.shape.empty() || Elements(program_, update) == 0) {
      return "the parameter is a scalar or empty";
    }
    tensors_.clear();
    for (std::size_t k = 0; k < update.inputs.size(); ++k) {
      if (std::string why = AddInput(update, k); !why.empty()) return why;
    }
    for (std::size_t k = 0; k < update.outputs.size(); ++k) {
      if (std::string why = AddResult(update, k); !why.empty()) return why;
    }
    for (const Tensor& tensor : tensors_) {
      if (own_.contains(tensor) || taken_.contains(tensor)) return "a tensor belongs to another instruction too";
    }
    own_.insert(tensors_.begin(), tensors_.end());
    return "";
  }

 private:
  bool HasOperands(const Instruction& update) const {
    const auto exists = [&](ValueId id) { return id >= 0 && static_cast<std::size_t>(id) < program_.values.size(); };
    return !update.inputs.empty() && std::all_of(update.inputs.begin(), update.inputs.end(), exists) &&
           std::all_of(update.outputs.begin(), update.outputs.end(),
                       [&](ValueId id) { return id == kNoValue || exists(id); });
  }

  bool AddTensor(ValueId id) {
    const Value& value = program_.values[id];
    const Tensor tensor{value.storage, value.storage == Storage::kState ? value.index : place_of_(id)};
    if (std::find(tensors_.begin(), tensors_.end(), tensor) != tensors_.end()) return false;
    tensors_.push_back(tensor);
    return true;
  }

  std::string AddInput(const Instruction& update, std::size_t position) {
    const ValueId id = update.inputs[position];
    const ValueId of_first = first_.inputs[position];
    const Value& value = program_.values[id];
    if (!IsTensor(program_, update, id)) {
      return id == of_first ? "" : absl::StrCat("operand ", position, " is another scalar");
    }
    if (value.storage != Storage::kState && value.storage != Storage::kTemporary) {
      return absl::StrCat("operand ", position, " is an input or a constant of the program");
    }
    if (!IsTensor(program_, first_, of_first) || program_.values[of_first].storage != value.storage) {
      return absl::StrCat("operand ", position, " is stored otherwise");
    }
    return AddTensor(id) ? "" : absl::StrCat("operand ", position, " is one of the other operands");
  }

  std::string AddResult(const Instruction& update, std::size_t position) {
    const ValueId id = update.outputs[position];
    if (id == kNoValue) return "";
    const Value& value = program_.values[id];
    if (value.storage != Storage::kState || !IsTensor(program_, update, id)) {
      return absl::StrCat("result ", position, " is no state of the parameter's shape");
    }
    const bool in_place = IsInPlace(program_, update, position);
    if (in_place != IsInPlace(program_, first_, position))
      return absl::StrCat("result ", position, " is stored otherwise");
    return in_place || AddTensor(id) ? "" : absl::StrCat("result ", position, " overwrites another operand");
  }

  const Program& program_;
  const PlaceOf& place_of_;
  const Tensors& taken_;
  const Instruction& first_;
  Tensors own_;
  std::vector<Tensor> tensors_;  ///< tensors of the instruction that is being added
};

std::size_t WidthOf(const FlatTensors& tensors) { return ElementSize(tensors.dtype); }

std::size_t PositionOfFirst(const FlatUpdate& update) {
  return static_cast<std::size_t>(std::find(update.offsets.begin(), update.offsets.end(), 0) - update.offsets.begin());
}

absl::Status CheckLayout(const Program& program, const FlatUpdate& update) {
  std::vector<std::pair<std::int64_t, std::int64_t>> ranges;
  for (std::size_t i = 0; i < update.offsets.size(); ++i) {
    ranges.emplace_back(update.offsets[i], Elements(program, program.step().instructions[update.first + i]));
  }
  std::sort(ranges.begin(), ranges.end());
  std::int64_t end = 0;
  for (const auto& [offset, elements] : ranges) {
    if (offset != PaddedElements(end)) {
      return absl::InvalidArgumentError(absl::StrCat("a tensor begins at element ", offset, ", not at ",
                                                     PaddedElements(end), ", behind the one before it"));
    }
    end = offset + elements;
  }
  if (end == update.elements) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("its tensors end at element ", end, ", it says ", update.elements));
}

absl::Status CheckPlaces(const Program& program, const FlatUpdate& update) {
  for (const FlatTensors& tensors : FlatTensorsOf(program, update)) {
    if (tensors.storage != Storage::kTemporary) continue;
    const std::size_t begin = program.values[tensors.values[PositionOfFirst(update)]].offset;
    const std::size_t bytes = static_cast<std::size_t>(update.elements) * WidthOf(tensors);
    if (begin > program.arena_bytes || bytes > program.arena_bytes - begin) {
      return absl::InvalidArgumentError(
          absl::StrCat(bytes, " bytes at offset ", begin, " end outside the arena of ", program.arena_bytes, " bytes"));
    }
    for (std::size_t i = 0; i < update.offsets.size(); ++i) {
      const std::size_t expected = begin + static_cast<std::size_t>(update.offsets[i]) * WidthOf(tensors);
      if (program.values[tensors.values[i]].offset == expected) continue;
      return absl::InvalidArgumentError(absl::StrCat("value ", tensors.values[i], " lies at offset ",
                                                     program.values[tensors.values[i]].offset, " of the arena, not at ",
                                                     expected));
    }
  }
  return absl::OkStatus();
}

}  // namespace

bool IsElementwiseUpdate(std::string_view name) {
  return std::find(std::begin(kElementwiseUpdates), std::end(kElementwiseUpdates), name) !=
         std::end(kElementwiseUpdates);
}

std::vector<FlatUpdate> FindFlatUpdates(const Program& program, const PlaceOf& place_of, const GroupOf& group_of) {
  std::vector<FlatUpdate> updates;
  Tensors taken;
  for (std::size_t first = 0; first < program.step().instructions.size();) {
    Members members(program, place_of, taken, first);
    const std::int64_t group = group_of(first);
    std::size_t end = first;
    if (group >= 0) {
      while (end < program.step().instructions.size() && group_of(end) == group && members.Add(end).empty()) ++end;
    }
    if (end - first > 1) {
      taken.insert(members.tensors().begin(), members.tensors().end());
      FlatUpdate& update = updates.emplace_back();
      update.first = first;
      std::vector<std::size_t> order(end - first);
      std::iota(order.begin(), order.end(), std::size_t{0});
      LayOut(program, order, update);
    }
    first = std::max(end, first + 1);
  }
  return updates;
}

void LayOut(const Program& program, const std::vector<std::size_t>& order, FlatUpdate& update) {
  update.offsets.assign(order.size(), 0);
  update.elements = 0;
  for (std::size_t i : order) {
    update.offsets[i] = PaddedElements(update.elements);
    update.elements = update.offsets[i] + Elements(program, program.step().instructions[update.first + i]);
  }
}

absl::Status CheckFlatUpdate(const Program& program, const FlatUpdate& update) {
  const std::size_t count = update.offsets.size();
  if (count == 0 || update.first >= program.step().instructions.size() ||
      count > program.step().instructions.size() - update.first) {
    return absl::InvalidArgumentError(absl::StrCat("it has ", count, " instructions from ", update.first, " on, of ",
                                                   program.step().instructions.size()));
  }
  // The layout says where temporaries lie: two of them cannot share a place in it.
  const PlaceOf place_of = [](ValueId id) { return id; };
  const Tensors taken;
  Members members(program, place_of, taken, update.first);
  for (std::size_t i = update.first; i < update.first + count; ++i) {
    const std::string why = members.Add(i);
    if (!why.empty())
      return absl::InvalidArgumentError(absl::StrCat("instruction ", i, " cannot be part of it: ", why));
  }
  if (absl::Status status = CheckLayout(program, update); !status.ok()) return status;
  return CheckPlaces(program, update);
}

std::vector<FlatTensors> FlatTensorsOf(const Program& program, const FlatUpdate& update) {
  const Instruction& first = program.step().instructions[update.first];
  std::vector<FlatTensors> buffers;
  const auto add = [&](std::vector<ValueId> Instruction::*list, std::size_t position) {
    const Value& value = program.values[(first.*list)[position]];
    FlatTensors& tensors = buffers.emplace_back(FlatTensors{value.storage, value.spec.dtype, {}});
    for (std::size_t i = 0; i < update.offsets.size(); ++i) {
      tensors.values.push_back((program.step().instructions[update.first + i].*list)[position]);
    }
  };
  for (std::size_t k = 0; k < first.inputs.size(); ++k) {
    if (IsTensor(program, first, first.inputs[k])) add(&Instruction::inputs, k);
  }
  for (std::size_t k = 0; k < first.outputs.size(); ++k) {
    if (first.outputs[k] != kNoValue && !IsInPlace(program, first, k)) add(&Instruction::outputs, k);
  }
  return buffers;
}

bool LiesFlat(const Program& program, const FlatUpdate& update, const AddressOf& address) {
  for (const FlatTensors& tensors : FlatTensorsOf(program, update)) {
    const auto at = [&](std::size_t i) {
      return static_cast<const std::byte*>(address(program.values[tensors.values[i]]));
    };
    const std::byte* const begin = at(PositionOfFirst(update));
    for (std::size_t i = 0; i < update.offsets.size(); ++i) {
      if (at(i) != begin + static_cast<std::size_t>(update.offsets[i]) * WidthOf(tensors)) return false;
    }
  }
  return true;
}

const Instruction& FirstOfFlat(const Program& program, const FlatUpdate& update) {
  return program.step().instructions[update.first + PositionOfFirst(update)];
}

absl::StatusOr<KernelSpec> FlatSpec(const Program& program, const FlatUpdate& update) {
  const Instruction& first = FirstOfFlat(program, update);
  absl::StatusOr<KernelSpec> spec = MakeKernelSpec(program, first);
  if (!spec.ok()) return spec.status();
  for (std::size_t k = 0; k < first.inputs.size(); ++k) {
    if (IsTensor(program, first, first.inputs[k])) spec->inputs[k].shape = {update.elements};
  }
  for (std::size_t k = 0; k < first.outputs.size(); ++k) {
    if (first.outputs[k] != kNoValue) spec->outputs[k].shape = {update.elements};
  }
  return spec;
}

std::vector<FlatStateBuffer> FlatStateBuffers(const Program& program) {
  std::vector<FlatStateBuffer> buffers;
  for (const FlatUpdate& update : program.flat_updates) {
    for (const FlatTensors& tensors : FlatTensorsOf(program, update)) {
      if (tensors.storage != Storage::kState) continue;
      FlatStateBuffer& buffer = buffers.emplace_back();
      for (std::size_t i = 0; i < update.offsets.size(); ++i) {
        buffer.state.push_back(program.values[tensors.values[i]].index);
        buffer.offsets.push_back(static_cast<std::size_t>(update.offsets[i]) * WidthOf(tensors));
      }
      buffer.bytes = static_cast<std::size_t>(PaddedElements(update.elements)) * WidthOf(tensors);
    }
  }
  return buffers;
}

}  // namespace mpc::runtime
