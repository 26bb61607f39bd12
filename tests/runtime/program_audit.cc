#include "tests/runtime/program_audit.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>

#include "absl/strings/str_cat.h"
#include "runtime/program_binding.h"
#include "runtime/program_check.h"

namespace mpc::runtime {
namespace {

/// Bytes [begin, end) of the arena.
struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool Overlaps(const Range& other) const { return begin < other.end && other.begin < end; }
};

bool InArena(const Value& value) { return value.storage == Storage::kInput || value.storage == Storage::kTemporary; }

Range RangeOf(const Value& value) { return {value.offset, value.offset + value.spec.bytes()}; }

/// A write: of the value `value`, or of a workspace.
struct Mark {
  ValueId value = kNoValue;
  std::size_t number = 0;  ///< of the write; 0: the state from before the step
  bool operator==(const Mark& other) const { return number == other.number && value == other.value; }
};

/// Who wrote which bytes last.
class MarkedArena {
 public:
  void Write(const Range& range, const Mark& mark) {
    if (range.begin == range.end) return;
    Split(range.begin);
    Split(range.end);
    marks_.erase(marks_.lower_bound(range.begin), marks_.lower_bound(range.end));
    marks_[range.begin] = {range.end, mark};
  }
  /// The mark that all of `range` has, if there is one.
  std::optional<Mark> Read(const Range& range) const {
    auto piece = marks_.upper_bound(range.begin);
    if (piece == marks_.begin()) return std::nullopt;
    --piece;
    const Mark mark = piece->second.mark;
    for (std::size_t at = range.begin; at < range.end; at = piece->second.end, ++piece) {
      const bool covers = piece != marks_.end() && piece->first <= at && at < piece->second.end;
      if (!covers || !(piece->second.mark == mark)) return std::nullopt;
      if (piece->second.end >= range.end) break;
    }
    return mark;
  }

 private:
  struct Piece {
    std::size_t end = 0;
    Mark mark;
  };
  /// Makes `at` a border between pieces.
  void Split(std::size_t at) {
    auto piece = marks_.upper_bound(at);
    if (piece == marks_.begin()) return;
    --piece;
    if (piece->first == at || piece->second.end <= at) return;
    const Piece second = piece->second;
    piece->second.end = at;
    marks_[at] = second;
  }
  std::map<std::size_t, Piece> marks_;  ///< by first byte
};

class Audit {
 public:
  Audit(const Program& program, const Device& device)
      : program_(program), device_(device), state_(program.state.size()), written_(program.values.size()) {}

  std::vector<std::string> Run() {
    if (absl::Status status = CheckProgram(program_); !status.ok()) return {std::string(status.message())};
    FindWriters();
    for (const NamedValue& input : program_.inputs) Write("the copy of inputs", input.value);
    RunSequence(0);
    for (const NamedValue& output : program_.outputs) Read("the copy of output " + output.name, output.value);
    return problems_;
  }

 private:
  void FindWriters() {
    for (const NamedValue& input : program_.inputs) has_writer_.insert(input.value);
    for (const Sequence& sequence : program_.sequences) {
      for (const Instruction& instruction : sequence.instructions) {
        has_writer_.insert(instruction.outputs.begin(), instruction.outputs.end());
      }
    }
  }

  void Report(const std::string& where, ValueId id, const std::string& what) {
    problems_.push_back(absl::StrCat(where, ", value ", id, ": ", what));
  }

  void RunSequence(std::size_t index) {
    const Sequence& sequence = program_.sequences[index];
    for (std::size_t i = 0; i < sequence.instructions.size(); ++i) {
      const Instruction& instruction = sequence.instructions[i];
      const std::string where = DescribeInstruction(program_, i, index);
      if (instruction.sequence == 0) {
        Visit(where, instruction);
      } else {
        VisitCall(where, instruction);
      }
    }
    for (const ValueCopy& copy : sequence.copies) {
      const std::string where = absl::StrCat("the copy to value ", copy.to);
      Read(where, copy.from);
      Write(where, copy.to);
    }
  }

  /// Runs twice, since each run reads what the one before it has left in the places of the outputs.
  void VisitCall(const std::string& where, const Instruction& call) {
    const auto never = [](std::string_view, std::size_t, std::size_t) { return false; };
    if (absl::Status status = CheckOverlaps(program_, call, never); !status.ok()) {
      problems_.push_back(absl::StrCat(where, ": ", std::string(status.message())));
    }
    for (ValueId id : call.inputs) Read(where, id);
    const Range workspace{call.workspace_offset, call.workspace_offset + call.workspace_bytes};
    if (call.workspace_bytes > 0) arena_.Write(workspace, {kNoValue, ++writes_});
    for (ValueId id : call.outputs) Write(where, id);
    const Sequence& body = program_.sequences[call.sequence];
    for (std::int64_t run = 0; run < std::min<std::int64_t>(2, call.attributes.GetInt(kRepeatCount)); ++run) {
      Forget(body);
      RunSequence(static_cast<std::size_t>(call.sequence));
      for (ValueId id : call.outputs) Carry(where, id);
    }
  }

  /// What a run of `body` reads and writes is of this run.
  void Forget(const Sequence& body) {
    for (const Instruction& instruction : body.instructions) {
      for (ValueId id : instruction.inputs) seen_.erase(id);
    }
    for (const ValueCopy& copy : body.copies) seen_.erase(copy.from);
  }

  /// The new value of an output lies where the output does, whatever value wrote it.
  void Carry(const std::string& where, ValueId output) {
    const Value& value = program_.values[output];
    if (!InArena(value) || value.spec.bytes() == 0) return Write(where, output);
    const std::optional<Mark> mark = arena_.Read(RangeOf(value));
    if (!mark.has_value() || mark->value == kNoValue || program_.values[mark->value].offset != value.offset) {
      Report(where, output, "is not what its sequence has left in its place");
    }
    Write(where, output);
  }

  void Visit(const std::string& where, const Instruction& instruction) {
    for (ValueId id : instruction.inputs) Read(where, id);
    const auto may_alias = [this](std::string_view kernel, std::size_t output, std::size_t input) {
      return device_.MayAlias(kernel, output, input);
    };
    if (absl::Status status = CheckOverlaps(program_, instruction, may_alias); !status.ok()) {
      problems_.push_back(absl::StrCat(where, ": ", std::string(status.message())));
    }
    VisitWorkspace(where, instruction);
    for (ValueId id : instruction.outputs) {
      if (id != kNoValue) Write(where, id);
    }
    // What a kernel writes, it does not write over.
    for (ValueId id : instruction.outputs) {
      if (id != kNoValue) Read(where + ", its results", id);
    }
  }

  void VisitWorkspace(const std::string& where, const Instruction& instruction) {
    const absl::StatusOr<InstructionPlan> plan = device_.Plan(program_, instruction);
    if (!plan.ok()) {
      problems_.push_back(absl::StrCat(where, ": ", std::string(plan.status().message())));
    } else if (plan->workspace_bytes > instruction.workspace_bytes) {
      problems_.push_back(absl::StrCat(where, ": needs a workspace of ", plan->workspace_bytes, " bytes, has ",
                                       instruction.workspace_bytes));
    }
    if (instruction.workspace_bytes == 0) return;
    const Range workspace{instruction.workspace_offset, instruction.workspace_offset + instruction.workspace_bytes};
    for (const std::vector<ValueId>* operands : {&instruction.inputs, &instruction.outputs}) {
      for (ValueId id : *operands) {
        if (id == kNoValue || !InArena(program_.values[id])) continue;
        if (RangeOf(program_.values[id]).Overlaps(workspace)) Report(where, id, "lies in the workspace");
      }
    }
    arena_.Write(workspace, {kNoValue, ++writes_});
  }

  void Write(const std::string& where, ValueId id) {
    const Value& value = program_.values[id];
    const Mark mark{id, ++writes_};
    written_[id] = mark;
    if (value.storage == Storage::kState) state_[value.index] = {mark, where};
    if (InArena(value)) arena_.Write(RangeOf(value), mark);
  }

  void Read(const std::string& where, ValueId id) {
    const Value& value = program_.values[id];
    if (value.storage == Storage::kState) ReadState(where, id);
    if (InArena(value) && value.spec.bytes() > 0) ReadArena(where, id);
  }

  void ReadState(const std::string& where, ValueId id) {
    const auto& [mark, writer] = state_[program_.values[id].index];
    const Mark expected = written_[id].value_or(Mark());
    if (has_writer_.count(id) > 0 && !written_[id].has_value())
      return Report(where, id, "is read before it is written");
    if (!(mark == expected)) Report(where, id, absl::StrCat("its state was written by ", writer));
  }

  void ReadArena(const std::string& where, ValueId id) {
    const std::optional<Mark> mark = arena_.Read(RangeOf(program_.values[id]));
    if (!mark.has_value()) return Report(where, id, "its bytes were written by nobody, or by several");
    if (has_writer_.count(id) > 0) {
      if (!written_[id].has_value()) return Report(where, id, "is read before it is written");
      if (!(*mark == *written_[id])) ReportOther(where, id, *mark);
      return;
    }
    // Another shape of a value: of the same one in every read.
    const bool fits = mark->value != kNoValue && program_.values[mark->value].offset == program_.values[id].offset &&
                      program_.values[mark->value].spec.bytes() == program_.values[id].spec.bytes();
    const auto [first, is_first] = seen_.try_emplace(id, *mark);
    if (!fits || !(first->second == *mark)) ReportOther(where, id, *mark);
  }

  void ReportOther(const std::string& where, ValueId id, const Mark& mark) {
    Report(where, id,
           mark.value == kNoValue ? std::string("its bytes were a workspace since")
                                  : absl::StrCat("its bytes hold value ", mark.value));
  }

  const Program& program_;
  const Device& device_;
  MarkedArena arena_;
  std::vector<std::pair<Mark, std::string>> state_;  ///< the last write of each entry, and whose it was
  std::vector<std::optional<Mark>> written_;         ///< by value
  std::set<ValueId> has_writer_;
  std::map<ValueId, Mark> seen_;  ///< what values without a writer have been read as
  std::size_t writes_ = 0;
  std::vector<std::string> problems_;
};

}  // namespace

std::vector<std::string> AuditProgram(const Program& program, const Device& device) {
  return Audit(program, device).Run();
}

}  // namespace mpc::runtime
