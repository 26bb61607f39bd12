#include "tools/mpc-bench/op_program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "absl/strings/str_cat.h"
#include "compiler/driver/compiler.h"
#include "frontend/graph/element_conversion.h"

namespace mpc::tools {
namespace {

constexpr std::size_t kMostSets = 64;

std::vector<std::uint8_t> MakeContent(const GraphArgument& argument, std::size_t seed) {
  const auto count = static_cast<std::size_t>(argument.spec.num_elements());
  std::vector<std::uint8_t> bytes(argument.spec.bytes());
  std::mt19937 engine(static_cast<std::mt19937::result_type>(seed));
  if (argument.fill == Fill::kClasses) {
    std::uniform_int_distribution<std::int32_t> label(0, static_cast<std::int32_t>(argument.classes - 1));
    for (std::size_t i = 0; i < count; ++i) {
      const std::int32_t value = label(engine);
      std::memcpy(bytes.data() + i * sizeof(value), &value, sizeof(value));
    }
    return bytes;
  }
  // A few thousand values, repeated: drawing millions would take longer than measuring.
  std::vector<float> drawn(std::min<std::size_t>(count, 4093));
  std::normal_distribution<float> normal;
  for (float& value : drawn) {
    value = argument.fill == Fill::kOnes ? 1.0F : normal(engine);
    if (argument.fill == Fill::kPositive) value = std::fabs(value);
  }
  const std::size_t width = ElementSize(argument.spec.dtype);
  for (std::size_t begin = 0; begin < count; begin += drawn.size()) {
    mpc::internal::ConvertElements(DType::kF32, drawn.data(), argument.spec.dtype, bytes.data() + begin * width,
                                   std::min(drawn.size(), count - begin));
  }
  return bytes;
}

absl::StatusOr<std::unique_ptr<runtime::Executable>> Bind(const std::shared_ptr<const runtime::Program>& program,
                                                          const std::vector<GraphArgument>& arguments,
                                                          const std::vector<std::vector<std::uint8_t>>& content) {
  runtime::StateStore store;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    auto entry = std::make_shared<runtime::StateEntry>(GraphUnderTest::ArgumentName(i), Role::kSlot, arguments[i].spec);
    if (absl::Status status = entry->Write(content[i]); !status.ok()) return status;
    if (absl::Status status = store.Add(std::move(entry)); !status.ok()) return status;
  }
  const absl::StatusOr<const runtime::Device*> device = runtime::GetDevice("cpu");
  if (!device.ok()) return device.status();
  return (*device)->Load(program, store);
}

std::size_t BytesOf(const runtime::Program& program) {
  std::size_t bytes = 0;
  for (const runtime::StateBinding& binding : program.state) bytes += (binding.written ? 2 : 1) * binding.spec.bytes();
  for (const runtime::NamedValue& output : program.outputs) {
    bytes += program.values[static_cast<std::size_t>(output.value)].spec.bytes();
  }
  return bytes;
}

std::size_t SetBytes(const runtime::Executable& step) {
  const runtime::MemoryUse use = step.memory();
  return use.arena + use.state + use.other;
}

}  // namespace

absl::StatusOr<OpProgram> OpProgram::Make(const OpGraph& graph, const Shape& shape, DType dtype, bool fusion,
                                          const BufferChoice& choice) {
  GraphUnderTest builder(dtype);
  graph.build(builder, shape);
  absl::StatusOr<GraphUnderTest::Finished> finished = builder.Finish();
  if (!finished.ok()) return finished.status();
  compiler::CompileOptions options;
  options.function = GraphUnderTest::kFunction;
  options.fusion = fusion;
  options.cache_dir = "off";
  options.plan.keep_packed_weights = false;  // what an operation takes in a training step
  absl::StatusOr<compiler::CompileResult> compiled = compiler::Compile(finished->module, options);
  if (!compiled.ok()) return compiled.status();

  OpProgram program;
  program.program_ = std::make_shared<const runtime::Program>(std::move(compiled->program));
  program.bytes_ = BytesOf(*program.program_);
  std::vector<std::vector<std::uint8_t>> content;
  for (std::size_t i = 0; i < finished->arguments.size(); ++i) {
    content.push_back(MakeContent(finished->arguments[i], i + 1));
  }
  auto sets = static_cast<std::size_t>(std::max<std::int64_t>(choice.sets, 1));
  while (program.steps_.size() < sets) {
    absl::StatusOr<std::unique_ptr<runtime::Executable>> step = Bind(program.program_, finished->arguments, content);
    if (!step.ok()) return step.status();
    program.steps_.push_back(*std::move(step));
    if (choice.sets > 0 || program.steps_.size() > 1) continue;
    const std::size_t each = std::max<std::size_t>(SetBytes(*program.steps_[0]), 1);
    sets = std::clamp<std::size_t>(choice.footprint / each + 1, 1, std::min(kMostSets, choice.most / each + 1));
  }
  return program;
}

absl::Status OpProgram::Run() {
  runtime::Executable& step = *steps_[next_];
  next_ = (next_ + 1) % steps_.size();
  return step.Run({});
}

std::size_t OpProgram::footprint() const { return steps_.size() * SetBytes(*steps_[0]); }

}  // namespace mpc::tools
