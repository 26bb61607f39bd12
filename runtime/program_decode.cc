// From FlatBuffers tables to a Package. Nothing of a table is trusted.
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "runtime/program_encoding.h"
#include "runtime/program_generated.h"

namespace mpc::runtime::file {
namespace {

/// Tables lie six deep. GPT-2's training step has some ten thousand of them.
constexpr flatbuffers::uoffset_t kMaxDepth = 16;
constexpr flatbuffers::uoffset_t kMaxTables = 1u << 22;
/// The most bytes to read for each byte of the file. Several tables may share a text, so that the result may be larger
/// than the file. A scope is some tens of bytes behind an offset of four bytes.
constexpr std::size_t kMaxExpansion = 64;

class Decoder {
 public:
  explicit Decoder(std::size_t bytes) : budget_(kMaxExpansion * bytes) {}

  absl::StatusOr<runtime::Package> Decode(const Package& table) {
    runtime::Package package;
    package.metadata = Pairs(table.metadata());
    package.programs = Tables<runtime::Program>(table.programs());
    package.draws = Tables<runtime::InitialDraw>(table.draws());
    package.initial_values = Tables<runtime::InitialValue>(table.initial_values());
    if (!status_.ok()) return status_;
    return package;
  }

 private:
  template <typename... Parts>
  void Fail(const Parts&... parts) {
    if (status_.ok()) status_ = absl::InvalidArgumentError(absl::StrCat(parts...));
  }

  /// Whether `bytes` more may be read.
  bool Take(std::size_t bytes) {
    if (!status_.ok()) return false;
    if (bytes > budget_) {
      Fail("its tables repeat more content than a file of this size has reason to hold");
      return false;
    }
    budget_ -= bytes;
    return true;
  }

  std::string Text(const flatbuffers::String* text) {
    return text != nullptr && Take(text->size()) ? text->str() : std::string();
  }
  Role ReadRole(const flatbuffers::String* name, const flatbuffers::String* text) {
    const std::string given = Text(text);
    const std::optional<Role> role = ParseRole(given);
    if (role.has_value() && IsState(*role)) return *role;
    Fail("\"", Text(name), "\" has the role \"", given, "\", which is none of state");
    return Role::kParameter;
  }
  template <typename T>
  std::vector<T> Numbers(const flatbuffers::Vector<T>* numbers) {
    std::vector<T> result;
    if (numbers == nullptr || numbers->size() == 0 || !Take(numbers->size() * sizeof(T))) return result;
    // The verifier does not look at the alignment of elements. The tables have the byte order of the processors that
    // the CPU kernels are compiled for.
    result.resize(numbers->size());
    std::memcpy(result.data(), numbers->Data(), numbers->size() * sizeof(T));
    return result;
  }
  std::vector<std::string> Texts(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* texts) {
    std::vector<std::string> result;
    if (texts == nullptr) return result;
    for (const flatbuffers::String* text : *texts) {
      if (!status_.ok()) break;
      result.push_back(Text(text));
    }
    return result;
  }
  std::vector<std::pair<std::string, std::string>> Pairs(const flatbuffers::Vector<flatbuffers::Offset<Pair>>* pairs) {
    std::vector<std::pair<std::string, std::string>> result;
    if (pairs == nullptr) return result;
    for (const Pair* pair : *pairs) {
      if (!status_.ok()) break;
      result.emplace_back(Text(pair->key()), Text(pair->value()));
    }
    return result;
  }
  template <typename T, typename U>
  std::vector<T> Tables(const flatbuffers::Vector<flatbuffers::Offset<U>>* tables) {
    std::vector<T> result;
    if (tables == nullptr) return result;
    for (const U* table : *tables) {
      if (!Take(sizeof(U))) break;
      result.push_back(Read(*table));
    }
    return result;
  }

  /// Reads an enumerator. They count from 0 to `last`.
  template <typename T>
  T Enumerator(std::uint8_t value, T last, const char* what) {
    if (value <= static_cast<std::uint8_t>(last)) return static_cast<T>(value);
    Fail("there is no ", what, " ", static_cast<int>(value));
    return T{};
  }

  TensorSpec Read(const Spec& spec) {
    return {Enumerator(spec.dtype(), kLastProgramDType, "element type"), Numbers(spec.shape())};
  }
  runtime::Value Read(const Value& value) {
    return {Read(*value.spec()), Enumerator(value.storage(), Storage::kConstant, "storage"), value.index(),
            value.offset()};
  }
  std::pair<std::string, AttributeValue> Read(const Attribute& attribute) {
    std::string name = Text(attribute.name());
    std::vector<std::int64_t> integers = Numbers(attribute.integers());
    std::vector<double> numbers = Numbers(attribute.numbers());
    AttributeValue value;
    const std::size_t kind = attribute.kind();
    if ((kind <= 1 && integers.size() != 1) || (kind == 2 && numbers.size() != 1)) {
      Fail("attribute \"", name, "\" has no number");
    } else if (kind == 0) {
      value = integers[0] != 0;
    } else if (kind == 1) {
      value = integers[0];
    } else if (kind == 2) {
      value = numbers[0];
    } else if (kind == 3) {
      value = Text(attribute.text());
    } else if (kind == 4) {
      value = std::move(integers);
    } else if (kind == 5) {
      value = std::move(numbers);
    } else {
      Fail("attribute \"", name, "\" is of kind ", kind, ", which does not exist");
    }
    return {std::move(name), std::move(value)};
  }
  runtime::Instruction Read(const Instruction& instruction) {
    runtime::Instruction result;
    result.kernel = Text(instruction.kernel());
    result.inputs = Numbers(instruction.inputs());
    result.outputs = Numbers(instruction.outputs());
    for (auto& [name, value] : Tables<std::pair<std::string, AttributeValue>>(instruction.attributes())) {
      result.attributes.Set(name, std::move(value));
    }
    result.workspace_offset = instruction.workspace_offset();
    result.workspace_bytes = instruction.workspace_bytes();
    result.scope = Text(instruction.scope());
    result.sequence = instruction.sequence();
    result.phase = Enumerator(instruction.phase(), kLastPhase, "phase");
    return result;
  }
  runtime::ValueCopy Read(const StateCopy& copy) { return {copy.from(), copy.to(), Text(copy.reason())}; }
  runtime::StateBinding Read(const StateBinding& binding) {
    return {Text(binding.name()), ReadRole(binding.name(), binding.role()), Read(*binding.spec()), binding.written()};
  }
  runtime::StateRefresh Read(const StateRefresh& refresh) {
    return {refresh.derived(), refresh.source(), Read(*refresh.instruction())};
  }
  runtime::NamedValue Read(const NamedValue& named) { return {Text(named.name()), named.value()}; }
  runtime::CodeBlob Read(const CodeBlob& blob) {
    return {Text(blob.name()), Text(blob.format()), Numbers(blob.bytes()), Texts(blob.kernels())};
  }
  runtime::FlatUpdate Read(const FlatUpdate& update) {
    return {update.first(), Numbers(update.offsets()), update.elements()};
  }
  runtime::ConstantFill Read(const ConstantFill& fill) { return {fill.bytes(), Numbers(fill.element())}; }
  runtime::Sequence Read(const Sequence& sequence) {
    return {Text(sequence.name()), Tables<runtime::Instruction>(sequence.instructions()),
            Tables<runtime::ValueCopy>(sequence.copies())};
  }
  runtime::Program Read(const Program& table) {
    runtime::Program program;
    program.name = Text(table.name());
    program.device = Text(table.device());
    program.arch = Text(table.arch());
    program.values = Tables<runtime::Value>(table.values());
    program.step().instructions = Tables<runtime::Instruction>(table.instructions());
    program.step().copies = Tables<runtime::ValueCopy>(table.state_copies());
    program.state = Tables<runtime::StateBinding>(table.state());
    program.refreshes = Tables<runtime::StateRefresh>(table.refreshes());
    program.inputs = Tables<runtime::NamedValue>(table.inputs());
    program.outputs = Tables<runtime::NamedValue>(table.outputs());
    program.constants = Numbers(table.constants());
    program.arena_bytes = table.arena_bytes();
    program.choices = Pairs(table.choices());
    program.allow_tf32 = table.allow_tf32();
    program.required_cpu_features = Texts(table.required_cpu_features());
    program.code = Tables<runtime::CodeBlob>(table.code());
    program.flat_updates = Tables<runtime::FlatUpdate>(table.flat_updates());
    program.fills = Tables<runtime::ConstantFill>(table.fills());
    for (runtime::Sequence& called : Tables<runtime::Sequence>(table.called())) {
      program.sequences.push_back(std::move(called));
    }
    return program;
  }
  runtime::InitialDraw Read(const InitialDraw& draw) { return {Read(*draw.program()), draw.seed()}; }
  runtime::InitialValue Read(const InitialValue& initial) {
    return {Text(initial.name()), ReadRole(initial.name(), initial.role()), Read(*initial.spec()),
            Numbers(initial.bytes())};
  }

  std::size_t budget_;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<runtime::Package> Decode(absl::Span<const std::uint8_t> tables) {
  if (tables.size() >= FLATBUFFERS_MAX_BUFFER_SIZE) {
    return absl::InvalidArgumentError(absl::StrCat("its tables have ", tables.size(), " bytes; the limit is 2 GiB"));
  }
  flatbuffers::Verifier verifier(tables.data(), tables.size(), kMaxDepth, kMaxTables);
  if (!VerifyPackageBuffer(verifier)) {
    return absl::InvalidArgumentError("its tables are malformed: an offset or a length leads outside");
  }
  return Decoder(tables.size()).Decode(*GetPackage(tables.data()));
}

}  // namespace mpc::runtime::file
