#include "tools/mpc-opt/program_listing.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "runtime/flat_updates.h"

namespace mpc::opt {
namespace {

std::string Name(runtime::ValueId id) { return id == runtime::kNoValue ? "_" : absl::StrCat("%", id); }

std::string Names(const std::vector<runtime::ValueId>& ids) {
  return absl::StrJoin(ids, ", ", [](std::string* out, runtime::ValueId id) { absl::StrAppend(out, Name(id)); });
}

struct ValueText {
  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(std::int64_t value) const { return absl::StrCat(value); }
  std::string operator()(double value) const { return absl::StrCat(value); }
  std::string operator()(const std::string& value) const { return absl::StrCat("\"", value, "\""); }
  template <typename T>
  std::string operator()(const std::vector<T>& values) const {
    return absl::StrCat("[", absl::StrJoin(values, ", "), "]");
  }
};

std::string AttributeList(const Attributes& attributes) {
  if (attributes.entries().empty()) return "";
  return absl::StrCat(" {",
                      absl::StrJoin(attributes.entries(), ", ",
                                    [](std::string* out, const Attributes::Entry& entry) {
                                      absl::StrAppend(out, entry.first, " = ", std::visit(ValueText(), entry.second));
                                    }),
                      "}");
}

/// The fill that a constant at `offset` lies in; null for one that is given.
const runtime::ConstantFill* FillAt(const runtime::Program& program, std::size_t offset) {
  std::size_t end = program.constants.size();
  if (offset < end) return nullptr;
  for (const runtime::ConstantFill& fill : program.fills) {
    end += fill.bytes;
    if (offset < end) return &fill;
  }
  return nullptr;
}

/// "0xbf800000", the bits of an element.
std::string Bits(const runtime::ConstantFill& fill) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, fill.element.data(), fill.element.size());
  return absl::StrFormat("0x%0*x", static_cast<int>(2 * fill.element.size()), bits);
}

/// Where the storage of a value is: "state conv1.weight", "arena 4096", "constants 64", "constants 128, filled with
/// 0x00000000".
std::string Place(const runtime::Program& program, const runtime::Value& value) {
  switch (value.storage) {
    case runtime::Storage::kState:
      return absl::StrCat("state ", program.state[value.index].name);
    case runtime::Storage::kInput:
    case runtime::Storage::kTemporary:
      return absl::StrCat("arena ", value.offset);
    case runtime::Storage::kConstant: {
      const runtime::ConstantFill* fill = FillAt(program, value.offset);
      return absl::StrCat("constants ", value.offset, fill == nullptr ? "" : ", filled with " + Bits(*fill));
    }
  }
  return "";
}

std::string StateList(const runtime::Program& program) {
  std::string text = absl::StrCat("state (", program.state.size(), ", ", program.state_bytes(), " bytes)\n");
  for (const runtime::StateBinding& state : program.state) {
    absl::StrAppend(&text, "  ", state.name, ": ", std::string(RoleName(state.role)), " ", state.spec.ToString(),
                    state.written ? ", written" : "", "\n");
  }
  return text;
}

std::string ValueList(const runtime::Program& program) {
  std::string text = absl::StrCat("values (", program.values.size(), ")\n");
  for (std::size_t id = 0; id < program.values.size(); ++id) {
    const runtime::Value& value = program.values[id];
    absl::StrAppend(&text, "  %", id, ": ", value.spec.ToString(), " in ", Place(program, value), "\n");
  }
  return text;
}

std::string InstructionList(const runtime::Program& program, const runtime::Sequence& sequence) {
  std::string text = absl::StrCat("instructions (", sequence.instructions.size(), ")\n");
  for (const runtime::Instruction& instruction : sequence.instructions) {
    absl::StrAppend(&text, "  ", Names(instruction.outputs), " = ", instruction.kernel, " ", Names(instruction.inputs),
                    AttributeList(instruction.attributes));
    if (instruction.workspace_bytes > 0) {
      absl::StrAppend(&text, " workspace ", instruction.workspace_bytes, " at ", instruction.workspace_offset);
    }
    if (instruction.sequence != 0) {
      absl::StrAppend(&text, " runs sequence ", instruction.sequence, ", @",
                      program.sequences[instruction.sequence].name);
    }
    if (!instruction.scope.empty()) absl::StrAppend(&text, "  // ", instruction.scope);
    absl::StrAppend(&text, "\n");
  }
  return text;
}

std::string NamedList(const char* title, const std::vector<runtime::NamedValue>& values) {
  std::string text = absl::StrCat(title, " (", values.size(), ")\n");
  for (const runtime::NamedValue& named : values) {
    absl::StrAppend(&text, "  ", named.name, ": ", Name(named.value), "\n");
  }
  return text;
}

// Nothing where no state is derived.
std::string RefreshList(const runtime::Program& program) {
  if (program.refreshes.empty()) return "";
  std::string text = absl::StrCat("refreshes of stale state (", program.refreshes.size(), ")\n");
  for (const runtime::StateRefresh& refresh : program.refreshes) {
    absl::StrAppend(&text, "  ", program.state[refresh.derived].name, " = ", refresh.instruction.kernel, " ",
                    program.state[refresh.source].name, "\n");
  }
  return text;
}

// Nothing where no updates are flat.
std::string FlatUpdateList(const runtime::Program& program) {
  if (program.flat_updates.empty()) return "";
  std::string text = absl::StrCat("flat updates (", program.flat_updates.size(), ")\n");
  for (const runtime::FlatUpdate& update : program.flat_updates) {
    const runtime::Instruction& first = runtime::FirstOfFlat(program, update);
    absl::StrAppend(&text, "  instructions ", update.first, " to ", update.first + update.offsets.size() - 1, ": ",
                    first.kernel, " of ", update.elements, " elements, the first tensors those of ",
                    Names(first.outputs), "\n");
  }
  return text;
}

std::string CopyList(const char* title, const std::vector<runtime::ValueCopy>& copies) {
  std::string text = absl::StrCat(title, " (", copies.size(), ")\n");
  for (const runtime::ValueCopy& copy : copies) {
    absl::StrAppend(&text, "  ", Name(copy.from), " to ", Name(copy.to), ": ", copy.reason, "\n");
  }
  return text;
}

// Nothing where the step calls no function.
std::string SequenceList(const runtime::Program& program) {
  std::string text;
  for (std::size_t i = 1; i < program.sequences.size(); ++i) {
    const runtime::Sequence& sequence = program.sequences[i];
    absl::StrAppend(&text, "sequence ", i, ", @", sequence.name, ": ", InstructionList(program, sequence));
    if (!sequence.copies.empty()) absl::StrAppend(&text, CopyList("copies of carried values", sequence.copies));
  }
  return text;
}

// Nothing where there was nothing to choose.
std::string ChoiceList(const runtime::Program& program) {
  if (program.choices.empty()) return "";
  std::string text = absl::StrCat("choices (", program.choices.size(), ")\n");
  for (const auto& [key, choice] : program.choices) absl::StrAppend(&text, "  ", key, ": ", choice, "\n");
  return text;
}

// What the device must be.
std::string TargetText(const runtime::Program& program) {
  if (program.device != "cpu") return absl::StrCat("requires ", program.arch, "\n");
  return absl::StrCat("requires ", absl::StrJoin(program.required_cpu_features, ", "), "\n");
}

}  // namespace

std::string ListProgram(const runtime::Program& program) {
  const std::size_t filled = program.constant_bytes() - program.constants.size();
  return absl::StrCat(
      "program @", program.name, " for ", program.device, ", arena ", program.arena_bytes, " bytes, constants ",
      program.constant_bytes(), " bytes", filled == 0 ? "" : absl::StrCat(" (", filled, " filled)"), "\n",
      TargetText(program), StateList(program), RefreshList(program), NamedList("inputs", program.inputs),
      ValueList(program), InstructionList(program, program.step()), SequenceList(program), FlatUpdateList(program),
      CopyList("state copies", program.step().copies), NamedList("outputs", program.outputs), ChoiceList(program));
}

}  // namespace mpc::opt
