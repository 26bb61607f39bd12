// From a Package to FlatBuffers tables.
#include <algorithm>
#include <string>
#include <type_traits>
#include <variant>

#include "runtime/program_encoding.h"
#include "runtime/program_generated.h"

namespace mpc::runtime::file {
namespace {

template <typename T>
using Offset = flatbuffers::Offset<T>;

class Encoder {
  // Scopes, kernels and types repeat.
  auto Text(const std::string& text) { return builder_.CreateSharedString(text); }
  auto Texts(const std::vector<std::string>& texts) {
    std::vector<Offset<flatbuffers::String>> offsets;
    for (const std::string& text : texts) offsets.push_back(Text(text));
    return builder_.CreateVector(offsets);
  }
  auto Pairs(const std::vector<std::pair<std::string, std::string>>& pairs) {
    std::vector<Offset<Pair>> offsets;
    for (const auto& [key, value] : pairs) offsets.push_back(CreatePair(builder_, Text(key), Text(value)));
    return builder_.CreateVector(offsets);
  }
  template <typename T>
  auto Tables(const std::vector<T>& items) {
    return Tables(absl::MakeConstSpan(items));
  }
  template <typename T>
  auto Tables(absl::Span<const T> items) {
    std::vector<decltype(Table(items.front()))> offsets;
    offsets.reserve(items.size());
    for (const T& item : items) offsets.push_back(Table(item));
    return builder_.CreateVector(offsets);
  }

  Offset<Spec> Table(const TensorSpec& spec) {
    return CreateSpec(builder_, static_cast<std::uint8_t>(spec.dtype), builder_.CreateVector(spec.shape));
  }
  Offset<Value> Table(const runtime::Value& value) {
    return CreateValue(builder_, Table(value.spec), static_cast<std::uint8_t>(value.storage), value.index,
                       value.offset);
  }
  Offset<Attribute> Table(const Attributes::Entry& entry) {
    std::string text;
    std::vector<std::int64_t> integers;
    std::vector<double> numbers;
    std::visit(
        [&](const auto& value) {
          using T = std::decay_t<decltype(value)>;
          if constexpr (std::is_same_v<T, std::string>) {
            text = value;
          } else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>) {
            integers = value;
          } else if constexpr (std::is_same_v<T, std::vector<double>>) {
            numbers = value;
          } else if constexpr (std::is_same_v<T, double>) {
            numbers = {value};
          } else {
            integers = {static_cast<std::int64_t>(value)};
          }
        },
        entry.second);
    return CreateAttribute(builder_, Text(entry.first), static_cast<std::uint8_t>(entry.second.index()), Text(text),
                           builder_.CreateVector(integers), builder_.CreateVector(numbers));
  }
  Offset<Instruction> Table(const runtime::Instruction& instruction) {
    return CreateInstruction(builder_, Text(instruction.kernel), builder_.CreateVector(instruction.inputs),
                             builder_.CreateVector(instruction.outputs), Tables(instruction.attributes.entries()),
                             instruction.workspace_offset, instruction.workspace_bytes, Text(instruction.scope),
                             instruction.sequence, static_cast<std::uint8_t>(instruction.phase));
  }
  Offset<StateCopy> Table(const runtime::ValueCopy& copy) {
    return CreateStateCopy(builder_, copy.from, copy.to, Text(copy.reason));
  }
  Offset<StateBinding> Table(const runtime::StateBinding& binding) {
    return CreateStateBinding(builder_, Text(binding.name), Text(std::string(RoleName(binding.role))),
                              Table(binding.spec), binding.written);
  }
  Offset<StateRefresh> Table(const runtime::StateRefresh& refresh) {
    return CreateStateRefresh(builder_, refresh.derived, refresh.source, Table(refresh.instruction));
  }
  Offset<NamedValue> Table(const runtime::NamedValue& named) {
    return CreateNamedValue(builder_, Text(named.name), named.value);
  }
  Offset<CodeBlob> Table(const runtime::CodeBlob& blob) {
    return CreateCodeBlob(builder_, Text(blob.name), Text(blob.format), builder_.CreateVector(blob.bytes),
                          Texts(blob.kernels));
  }
  Offset<FlatUpdate> Table(const runtime::FlatUpdate& update) {
    return CreateFlatUpdate(builder_, update.first, builder_.CreateVector(update.offsets), update.elements);
  }
  Offset<ConstantFill> Table(const runtime::ConstantFill& fill) {
    return CreateConstantFill(builder_, fill.bytes, builder_.CreateVector(fill.element));
  }
  Offset<Sequence> Table(const runtime::Sequence& sequence) {
    return CreateSequence(builder_, Text(sequence.name), Tables(sequence.instructions), Tables(sequence.copies));
  }
  Offset<Program> Table(const runtime::Program& program) {
    // Every part is finished before the table that points to it begins.
    const auto values = Tables(program.values);
    const auto instructions = Tables(program.step().instructions);
    const auto copies = Tables(program.step().copies);
    const auto state = Tables(program.state);
    const auto refreshes = Tables(program.refreshes);
    const auto inputs = Tables(program.inputs);
    const auto outputs = Tables(program.outputs);
    const auto constants = builder_.CreateVector(program.constants);
    const auto choices = Pairs(program.choices);
    const auto features = Texts(program.required_cpu_features);
    const auto code = Tables(program.code);
    const auto flat_updates = Tables(program.flat_updates);
    // The fills are left out where there are none.
    using Fills = flatbuffers::Vector<Offset<ConstantFill>>;
    const Offset<Fills> fills = program.fills.empty() ? Offset<Fills>() : Tables(program.fills);
    using Called = flatbuffers::Vector<Offset<Sequence>>;
    const auto behind = absl::MakeConstSpan(program.sequences).subspan(1);
    const Offset<Called> called = behind.empty() ? Offset<Called>() : Tables(behind);
    return CreateProgram(builder_, Text(program.name), Text(program.device), Text(program.arch), values, instructions,
                         copies, state, refreshes, inputs, outputs, constants, program.arena_bytes, choices,
                         program.allow_tf32, features, code, flat_updates, fills, called);
  }
  Offset<InitialDraw> Table(const runtime::InitialDraw& draw) {
    return CreateInitialDraw(builder_, Table(draw.program), draw.seed);
  }
  Offset<InitialValue> Table(const runtime::InitialValue& initial) {
    return CreateInitialValue(builder_, Text(initial.name), Text(std::string(RoleName(initial.role))),
                              Table(initial.spec), builder_.CreateVector(initial.bytes));
  }

  flatbuffers::FlatBufferBuilder builder_;

 public:
  std::vector<std::uint8_t> Encode(const runtime::Package& package) {
    const auto metadata = Pairs(package.metadata);
    const auto programs = Tables(package.programs);
    const auto draws = Tables(package.draws);
    const auto initial_values = Tables(package.initial_values);
    builder_.Finish(CreatePackage(builder_, metadata, programs, draws, initial_values));
    return {builder_.GetBufferPointer(), builder_.GetBufferPointer() + builder_.GetSize()};
  }
};

}  // namespace

std::vector<std::uint8_t> Encode(const runtime::Package& package) { return Encoder().Encode(package); }

}  // namespace mpc::runtime::file
