#include "tools/mpc-bench/op_program.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>
#include <utility>

#include "absl/strings/str_cat.h"
#include "compiler/driver/compiler.h"
#include "frontend/graph/element_conversion.h"
#include "kernels/cpu/kernel.h"
#include "kernels/kernel_key.h"
#include "runtime/choose_kernels.h"
#include "runtime/generated_call.h"
#include "runtime/packed_weights.h"
#include "runtime/program_binding.h"
#include "tools/support/synthetic_data.h"

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

/// The keys of instructions that have several kernels, and the names of these.
using KernelChoices = std::vector<std::pair<std::string, std::vector<std::string>>>;

absl::StatusOr<KernelChoices> ChoicesOf(const runtime::Program& program) {
  KernelChoices found;
  const runtime::Instruction* pack = nullptr;
  for (runtime::Instruction instruction : program.step().instructions) {
    if (runtime::PacksWeight(instruction)) continue;
    for (const runtime::Instruction& each : program.step().instructions) {
      pack = runtime::PacksWeightOf(each, instruction) ? &each : nullptr;
      if (pack != nullptr) break;
    }
    if (pack != nullptr) runtime::UnpackWeight(*pack, instruction);
    if (runtime::IsGenerated(instruction.kernel)) continue;
    const absl::StatusOr<KernelSpec> spec = runtime::MakeKernelSpec(program, instruction);
    if (!spec.ok()) return spec.status();
    std::vector<std::string> names = cpu::CandidateChoices(*spec);
    if (names.size() > 1) found.emplace_back(KernelKey(*spec), std::move(names));
  }
  return found;
}

std::size_t BytesOf(const runtime::Program& program) {
  std::size_t bytes = 0;
  for (const runtime::StateBinding& binding : program.state) bytes += (binding.written ? 2 : 1) * binding.spec.bytes();
  for (const runtime::NamedValue& output : program.outputs) {
    bytes += program.values[static_cast<std::size_t>(output.value)].spec.bytes();
  }
  return bytes;
}

/// Plans the instructions that offer `name` anew with it.
absl::Status Choose(const KernelChoices& choices, const std::string& name, runtime::Program& program) {
  for (const auto& [key, names] : choices) {
    if (std::find(names.begin(), names.end(), name) != names.end()) program.choices.emplace_back(key, name);
  }
  const absl::StatusOr<const runtime::Device*> device = runtime::GetDevice("cpu");
  return device.ok() ? runtime::RepackWeights(**device, program) : device.status();
}

std::size_t SetBytes(const runtime::Executable& step) {
  const runtime::MemoryUse use = step.memory();
  return use.arena + use.state + use.other;
}

}  // namespace

absl::StatusOr<OpProgram> OpProgram::Make(const OpGraph& graph, const Shape& shape, DType dtype, bool fusion,
                                          const BufferChoice& choice, const std::string& kernel_choice) {
  GraphUnderTest builder(dtype);
  graph.build(builder, shape);
  absl::StatusOr<GraphUnderTest::Finished> finished = builder.Finish();
  if (!finished.ok()) return finished.status();
  std::vector<TensorSpec> operands;
  for (const GraphArgument& argument : finished->arguments) operands.push_back(argument.spec);
  if (absl::Status status = CheckTensorsFit(operands, "operands", "give a smaller --shape").status(); !status.ok()) {
    return status;
  }
  compiler::CompileOptions options;
  options.function = GraphUnderTest::kFunction;
  options.fusion = fusion;
  options.cache_dir = "off";
  options.plan.keep_packed_weights = false;  // what an operation takes in a training step
  absl::StatusOr<compiler::CompileResult> compiled = compiler::Compile(finished->module, options);
  if (!compiled.ok()) return compiled.status();

  OpProgram program;
  const absl::StatusOr<KernelChoices> choices = ChoicesOf(compiled->program);
  if (!choices.ok()) return choices.status();
  if (!choices->empty()) program.kernel_choices_ = choices->front().second;
  if (!kernel_choice.empty()) {
    if (absl::Status status = Choose(*choices, kernel_choice, compiled->program); !status.ok()) return status;
  }
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
