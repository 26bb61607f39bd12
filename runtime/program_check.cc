#include "runtime/program_check.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "runtime/aligned_buffer.h"
#include "runtime/flat_updates.h"
#include "runtime/generated_call.h"
#include "runtime/program_binding.h"

namespace mpc::runtime {
namespace {

constexpr const char* kCodeFormats[] = {"cubin", "elf", "object", "ptx"};

bool IsEmpty(const TensorSpec& spec) { return std::ranges::find(spec.shape, 0) != spec.shape.end(); }

/// Bytes of `spec`, or nothing if an extent is negative, the type unknown or the size absurd.
std::optional<std::size_t> CheckedBytes(const TensorSpec& spec) {
  std::size_t bytes = ElementSize(spec.dtype);
  if (bytes == 0) return std::nullopt;
  for (std::int64_t extent : spec.shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) continue;
    if (static_cast<std::uint64_t>(extent) > kMostProgramBytes / bytes) return std::nullopt;
    bytes *= static_cast<std::size_t>(extent);
  }
  return IsEmpty(spec) ? 0 : bytes;
}

class ProgramChecker {
 public:
  explicit ProgramChecker(const Program& program)
      : program_(program),
        callers_(program.sequences.size()),
        depths_(program.sequences.size()),
        runs_(program.sequences.size(), 1) {}

  absl::Status Check() {
    if (program_.arena_bytes > kMostProgramBytes) {
      Report("the arena of ", program_.arena_bytes, " bytes is larger than any address space");
    }
    CheckConstants();
    CheckState();
    CheckCode();
    if (program_.sequences.empty()) {
      return absl::InvalidArgumentError(
          absl::StrCat("program \"", program_.name, "\" is malformed: it has no sequence; the first is the step"));
    }
    if (program_.sequences.size() > kMostSequences) {
      Report("it has ", program_.sequences.size(), " sequences; ", kMostSequences, " are the most");
    }
    for (std::size_t i = 0; i < program_.values.size(); ++i) CheckValue(i);
    for (std::size_t i = 0; i < program_.sequences.size(); ++i) CheckSequence(i);
    CheckRefreshes();
    CheckFlatUpdates();
    CheckInputsAndOutputs();
    if (problems_.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError(
        absl::StrCat("program \"", program_.name, "\" is malformed:\n  ", absl::StrJoin(problems_, "\n  ")));
  }

 private:
  template <typename... Parts>
  void Report(const Parts&... parts) {
    problems_.push_back(absl::StrCat(parts...));
  }

  /// Finds where the given constants and each fill end.
  void CheckConstants() {
    constant_ends_ = {program_.constants.size()};
    if (!program_.fills.empty() && program_.constants.size() % AlignedBuffer::kAlignment != 0) {
      Report("fills begin behind ", program_.constants.size(), " bytes of given constants, which is no multiple of 64");
    }
    for (std::size_t i = 0; i < program_.fills.size(); ++i) {
      const ConstantFill& fill = program_.fills[i];
      const std::size_t width = fill.element.size();
      if (width != 1 && width != 2 && width != 4 && width != 8) {
        Report("fill ", i, " has an element of ", width, " bytes; an element has 1, 2, 4 or 8");
      }
      if (fill.bytes == 0 || fill.bytes % AlignedBuffer::kAlignment != 0) {
        Report("fill ", i, " has ", fill.bytes, " bytes, which is no positive multiple of 64");
      }
      if (fill.bytes > kMostProgramBytes - std::min(constant_ends_.back(), kMostProgramBytes)) {
        return Report("fill ", i, " of ", fill.bytes, " bytes makes the constants larger than any address space");
      }
      constant_ends_.push_back(constant_ends_.back() + fill.bytes);
    }
  }

  /// A constant lies among the given ones, or in one fill.
  void CheckConstant(const std::string& what, std::size_t offset, std::size_t bytes) {
    CheckRange(what, offset, bytes, constant_ends_.back(), "constants");
    const auto end = std::upper_bound(constant_ends_.begin(), constant_ends_.end(), offset);
    if (end == constant_ends_.end() || bytes <= *end - offset || bytes > constant_ends_.back() - offset) return;
    Report(what, ": ", bytes, " bytes at offset ", offset, " of the constants reach into a fill that begins at ", *end);
  }

  void CheckState() {
    absl::flat_hash_set<std::string> names;
    for (const StateBinding& binding : program_.state) {
      if (binding.name.empty()) Report("a state binding has no name");
      if (!names.insert(binding.name).second) Report("state \"", binding.name, "\" is bound twice");
      if (!CheckedBytes(binding.spec)) Report("state \"", binding.name, "\" has no valid type");
      CheckElements(absl::StrCat("state \"", binding.name, "\""), binding.spec);
    }
  }

  void CheckRange(const std::string& what, std::size_t offset, std::size_t bytes, std::size_t limit,
                  const char* region) {
    if (offset % AlignedBuffer::kAlignment != 0) Report(what, ": offset ", offset, " is not a multiple of 64");
    if (offset > limit || bytes > limit - offset) {
      Report(what, ": ", bytes, " bytes at offset ", offset, " end outside the ", region, " of ", limit, " bytes");
    }
  }

  void CheckValue(std::size_t id) {
    const Value& value = program_.values[id];
    const std::string what = absl::StrCat("value ", id);
    const std::optional<std::size_t> bytes = CheckedBytes(value.spec);
    if (!bytes) return Report(what, " has no valid type");
    const auto index = static_cast<std::size_t>(value.index);
    switch (value.storage) {
      case Storage::kState:
        if (value.index < 0 || index >= program_.state.size()) {
          return Report(what, " is state ", value.index, " of ", program_.state.size());
        }
        // A view has a shape of its own.
        if (value.spec.dtype != program_.state[index].spec.dtype ||
            value.spec.num_elements() != program_.state[index].spec.num_elements()) {
          Report(what, " is ", value.spec.ToString(), ", its state \"", program_.state[index].name, "\" is ",
                 program_.state[index].spec.ToString());
        }
        return;
      case Storage::kInput:
        if (value.index < 0 || index >= program_.inputs.size()) {
          Report(what, " is input ", value.index, " of ", program_.inputs.size());
        }
        return CheckRange(what, value.offset, *bytes, program_.arena_bytes, "arena");
      case Storage::kTemporary:
        return CheckRange(what, value.offset, *bytes, program_.arena_bytes, "arena");
      case Storage::kConstant:
        return CheckConstant(what, value.offset, *bytes);
    }
    Report(what, " has no valid storage");
  }

  bool InRange(ValueId id) const { return id >= 0 && static_cast<std::size_t>(id) < program_.values.size(); }

  /// Kernels rely on it: some divide by extents. A value that nothing uses may be empty.
  void CheckElements(const std::string& what, const TensorSpec& spec) {
    if (IsEmpty(spec)) Report(what, " is ", spec.ToString(), "; every tensor has at least one element");
  }

  void CheckReadable(const std::string& what, ValueId id) {
    if (!InRange(id)) return Report(what, " is value ", id, " of ", program_.values.size());
    CheckElements(absl::StrCat(what, ", value ", id), program_.values[id].spec);
  }

  /// Whether `value` is the state of an output of `caller`, or lies in the arena where such an output lies.
  bool IsOutput(const Instruction& caller, const Value& value) const {
    return std::any_of(caller.outputs.begin(), caller.outputs.end(), [&](ValueId id) {
      if (!InRange(id) || program_.values[id].storage != value.storage) return false;
      const Value& output = program_.values[id];
      return value.storage == Storage::kState ? output.index == value.index : output.offset == value.offset;
    });
  }

  /// `caller` is the instruction that runs the sequence of `what`; null in the step.
  void CheckWritable(const std::string& what, ValueId id, const Instruction* caller) {
    if (!InRange(id)) return Report(what, " is value ", id, " of ", program_.values.size());
    const Value& value = program_.values[id];
    CheckElements(absl::StrCat(what, ", value ", id), value.spec);
    if (value.storage == Storage::kConstant) Report(what, " writes a constant, value ", id);
    if (value.storage == Storage::kInput) Report(what, " writes an input, value ", id);
    if (value.storage != Storage::kState) return;
    const auto index = static_cast<std::size_t>(value.index);
    if (index < program_.state.size() && !program_.state[index].written) {
      Report(what, " writes state \"", program_.state[index].name, "\", which is bound as read only");
    }
    if (caller != nullptr && index < program_.state.size() && !IsOutput(*caller, value)) {
      Report(what, " writes state \"", program_.state[index].name, "\", which what runs its sequence does not");
    }
  }

  void CheckSequence(std::size_t index) {
    const Sequence& sequence = program_.sequences[index];
    std::string where;
    const Instruction* caller = nullptr;
    if (index > 0) {
      where = absl::StrCat("sequence ", index, " (@", sequence.name, "), ");
      caller = callers_[index];
      if (caller == nullptr) Report("sequence ", index, " (@", sequence.name, ") is run by no sequence in front of it");
    }
    for (std::size_t i = 0; i < sequence.instructions.size(); ++i) {
      const Instruction& instruction = sequence.instructions[i];
      const std::string what = absl::StrCat(where, "instruction ", i, " (", instruction.kernel,
                                            instruction.scope.empty() ? "" : " in ", instruction.scope, ")");
      CheckInstruction(what, instruction, caller);
      if ((instruction.sequence != 0) != (instruction.kernel == kRepeat)) {
        Report(what, " runs sequence ", instruction.sequence, "; \"", kRepeat, "\" runs one, no other kernel does");
      }
      if (instruction.sequence != 0) CheckCall(what, instruction, index);
    }
    for (std::size_t i = 0; i < sequence.copies.size(); ++i) {
      CheckCopy(absl::StrCat(where, index == 0 ? "state copy " : "copy ", i), sequence.copies[i], caller);
    }
  }

  /// Checks an instruction of sequence `index` that runs another sequence.
  void CheckCall(const std::string& what, const Instruction& instruction, std::size_t index) {
    const auto called = static_cast<std::size_t>(instruction.sequence);
    if (instruction.sequence < 0 || called >= program_.sequences.size() || called <= index) {
      return Report(what, " runs sequence ", instruction.sequence, " of ", program_.sequences.size(), " from sequence ",
                    index, "; it may run those behind its own");
    }
    if (callers_[called] != nullptr) Report(what, " runs sequence ", called, ", which another instruction runs too");
    callers_[called] = &instruction;
    depths_[called] = depths_[index] + 1;
    if (depths_[called] > kDeepestSequence) {
      Report(what, " runs a sequence that lies more than ", kDeepestSequence, " deep");
    }
    const std::int64_t runs = instruction.attributes.GetInt(kRepeatCount);
    if (runs < 1 || runs > (kMostRuns - all_runs_) / runs_[index]) {
      Report(what, " runs sequence ", called, " ", runs, " times, ", runs_[index],
             " times in a step; 1 is the least, and ", kMostRuns, " runs of all sequences are the most");
    } else {
      runs_[called] = runs_[index] * runs;
      all_runs_ += runs_[called];
    }
    if (instruction.outputs.size() > instruction.inputs.size()) {
      Report(what, " has ", instruction.outputs.size(), " outputs and ", instruction.inputs.size(),
             " inputs; each output begins as the input at its position");
    }
    const std::size_t carried = std::min(instruction.outputs.size(), instruction.inputs.size());
    for (std::size_t i = 0; i < carried; ++i) {
      const ValueId from = instruction.inputs[i], to = instruction.outputs[i];
      if (to == kNoValue) Report(what, ", output ", i, " has no value, and the sequence writes it");
      if (!InRange(from) || !InRange(to) || program_.values[from].spec == program_.values[to].spec) continue;
      Report(what, ", output ", i, " is ", program_.values[to].spec.ToString(), " and begins as ",
             program_.values[from].spec.ToString());
    }
  }

  void CheckInstruction(const std::string& what, const Instruction& instruction, const Instruction* caller) {
    for (std::size_t i = 0; i < instruction.inputs.size(); ++i) {
      CheckReadable(absl::StrCat(what, ", input ", i), instruction.inputs[i]);
    }
    for (std::size_t i = 0; i < instruction.outputs.size(); ++i) {
      if (instruction.outputs[i] == kNoValue) continue;
      CheckWritable(absl::StrCat(what, ", output ", i), instruction.outputs[i], caller);
    }
    const auto is_left_out = [](ValueId output) { return output == kNoValue; };
    if (!instruction.outputs.empty() &&
        std::all_of(instruction.outputs.begin(), instruction.outputs.end(), is_left_out)) {
      Report(what, ": no output has a value, so that it computes nothing");
    }
    CheckRange(what + ", workspace", instruction.workspace_offset, instruction.workspace_bytes, program_.arena_bytes,
               "arena");
    if (IsGenerated(instruction.kernel)) CheckGeneratedCall(what, instruction);
  }

  void CheckCode() {
    for (const CodeBlob& blob : program_.code) {
      const std::string what = absl::StrCat("code \"", blob.name, "\"");
      const auto format = std::find(std::begin(kCodeFormats), std::end(kCodeFormats), blob.format);
      if (format == std::end(kCodeFormats)) {
        Report(what, " is in format \"", blob.format, "\"; known are ", absl::StrJoin(kCodeFormats, ", "));
      }
      if (blob.bytes.empty()) Report(what, " has no bytes");
      for (const std::string& name : blob.kernels) {
        if (!functions_.insert(name).second) Report(what, ": another blob has a kernel \"", name, "\" too");
      }
    }
  }

  void CheckGeneratedCall(const std::string& what, const Instruction& instruction) {
    for (const ValueId output : instruction.outputs) {
      if (output == kNoValue) Report(what, ": generated code stores every output, and one has no value");
    }
    const absl::StatusOr<std::vector<GeneratedStage>> stages = StagesOf(instruction);
    if (!stages.ok()) return Report(what, ": ", stages.status().message());
    for (const GeneratedStage& stage : *stages) {
      if (!functions_.contains(stage.function)) {
        Report(what, ": no code of the program has a function \"", stage.function, "\"");
      }
    }
  }

  void CheckCopy(const std::string& what, const ValueCopy& copy, const Instruction* caller) {
    CheckReadable(what + ", source", copy.from);
    CheckWritable(what + ", target", copy.to, caller);
    if (!InRange(copy.from) || !InRange(copy.to)) return;
    const Value& from = program_.values[copy.from];
    const Value& to = program_.values[copy.to];
    if (caller == nullptr && to.storage != Storage::kState) {
      Report(what, " does not write state, but value ", copy.to);
    }
    if (ShareStorage(from, to) && !SamePlace(from, to)) Report(what, " copies bytes to a place that they overlap");
    if (caller != nullptr && !IsOutput(*caller, to)) {
      Report(what, " writes value ", copy.to, ", which is no output of what runs its sequence");
    }
    if (from.spec != to.spec) Report(what, " copies ", from.spec.ToString(), " to ", to.spec.ToString());
  }

  bool IsState(const std::vector<ValueId>& ids, std::int32_t state) const {
    if (ids.size() != 1 || !InRange(ids[0])) return false;
    const Value& value = program_.values[ids[0]];
    return value.storage == Storage::kState && value.index == state;
  }

  void CheckRefreshes() {
    const auto count = static_cast<std::int32_t>(program_.state.size());
    std::vector<int> refreshes(program_.state.size(), 0);
    for (std::size_t i = 0; i < program_.refreshes.size(); ++i) {
      const StateRefresh& refresh = program_.refreshes[i];
      const std::string what = absl::StrCat("refresh ", i);
      if (refresh.derived < 0 || refresh.derived >= count || refresh.source < 0 || refresh.source >= count) {
        Report(what, " makes state ", refresh.derived, " from state ", refresh.source, " of ", count);
        continue;
      }
      const StateBinding& derived = program_.state[refresh.derived];
      const StateBinding& source = program_.state[refresh.source];
      if (source.role == Role::kDerived && refreshes[refresh.source] == 0) {
        Report(what, " reads derived state \"", source.name, "\" before it is rebuilt");
      }
      ++refreshes[refresh.derived];
      if (derived.role != Role::kDerived)
        Report(what, " writes state \"", derived.name, "\", which is no derived state");
      if (!IsState(refresh.instruction.inputs, refresh.source) ||
          !IsState(refresh.instruction.outputs, refresh.derived)) {
        Report(what, " (", refresh.instruction.kernel, ") must read \"", source.name, "\" alone and write \"",
               derived.name, "\" alone");
      }
      if (refresh.instruction.sequence != 0) Report(what, " runs a sequence; a refresh is one kernel call");
      CheckRange(what + ", workspace", refresh.instruction.workspace_offset, refresh.instruction.workspace_bytes,
                 program_.arena_bytes, "arena");
    }
    for (std::int32_t i = 0; i < count; ++i) {
      const StateBinding& binding = program_.state[i];
      if (binding.role == Role::kDerived && refreshes[i] != 1) {
        Report("derived state \"", binding.name, "\" has ", refreshes[i], " refreshes");
      }
    }
  }

  void CheckFlatUpdates() {
    // The checks below need values that have been found to be valid.
    if (!problems_.empty()) return;
    std::size_t end = 0;
    for (std::size_t i = 0; i < program_.flat_updates.size(); ++i) {
      const FlatUpdate& update = program_.flat_updates[i];
      const absl::Status status = CheckFlatUpdate(program_, update);
      if (!status.ok()) Report("flat update ", i, ": ", status.message());
      if (update.first < end) Report("flat update ", i, " begins in the one before it");
      end = update.first + update.offsets.size();
    }
  }

  void CheckInputsAndOutputs() {
    for (std::size_t i = 0; i < program_.inputs.size(); ++i) {
      const NamedValue& input = program_.inputs[i];
      const std::string what = absl::StrCat("input ", i, " \"", input.name, "\"");
      CheckReadable(what, input.value);
      if (!InRange(input.value)) continue;
      const Value& value = program_.values[input.value];
      if (value.storage != Storage::kInput || value.index != static_cast<std::int32_t>(i)) {
        Report(what, " is value ", input.value, ", which is not stored as that input");
      }
    }
    for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
      CheckReadable(absl::StrCat("output ", i, " \"", program_.outputs[i].name, "\""), program_.outputs[i].value);
    }
  }

  const Program& program_;
  absl::flat_hash_set<std::string> functions_;  ///< functions that the Program's code has
  std::vector<std::size_t> constant_ends_;      ///< end of the given constants, then of each fill
  std::vector<const Instruction*> callers_;     ///< the instruction that runs each sequence
  std::vector<int> depths_;                     ///< depth of each sequence below the step
  std::vector<std::int64_t> runs_;              ///< runs of each sequence in a step
  std::int64_t all_runs_ = 0;                   ///< the sum of `runs_`, without the step's own
  std::vector<std::string> problems_;
};

/// Follows the instructions of a Program in the order in which they run.
class StateUses {
 public:
  explicit StateUses(const Program& program) : program_(program), uses_(program.state.size()) {}

  std::vector<StateUse> Find() {
    Run(program_.step());
    for (const NamedValue& output : program_.outputs) Read(output.value);
    for (const StateRefresh& refresh : program_.refreshes) uses_[refresh.source].read_before_written = true;
    for (const StateRefresh& refresh : program_.refreshes) uses_[refresh.derived].read_before_written = false;
    return std::move(uses_);
  }

 private:
  StateUse* UseOf(ValueId id) {
    if (id == kNoValue || program_.values[id].storage != Storage::kState) return nullptr;
    return &uses_[program_.values[id].index];
  }
  void Read(ValueId id) {
    StateUse* use = UseOf(id);
    if (use != nullptr && !use->written) use->read_before_written = true;
  }
  void Write(ValueId id) {
    if (StateUse* use = UseOf(id)) use->written = true;
  }
  void Run(const Sequence& sequence) {
    for (const Instruction& instruction : sequence.instructions) {
      for (ValueId id : instruction.inputs) Read(id);
      for (ValueId id : instruction.outputs) Write(id);
      if (instruction.sequence != 0) Run(program_.sequences[instruction.sequence]);
    }
    for (const ValueCopy& copy : sequence.copies) {
      Read(copy.from);
      Write(copy.to);
    }
  }

  const Program& program_;
  std::vector<StateUse> uses_;
};

}  // namespace

absl::Status CheckProgram(const Program& program) { return ProgramChecker(program).Check(); }

std::vector<StateUse> FindStateUses(const Program& program) { return StateUses(program).Find(); }

}  // namespace mpc::runtime
