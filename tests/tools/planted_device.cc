#include "tests/tools/planted_device.h"

#include <memory>
#include <utility>

#include "runtime/executable.h"
#include "runtime/observable_step.h"

namespace mpc::tools {
namespace {

using runtime::Executable;
using runtime::Program;
using runtime::StepInputs;

PlantedDifference& ThePlanted() {
  static PlantedDifference planted;
  return planted;
}

class PlantedExecutable : public Executable, public runtime::ObservableStep {
 public:
  explicit PlantedExecutable(std::unique_ptr<Executable> cpu) : cpu_(std::move(cpu)) {}

  absl::Status Run(StepInputs inputs) override {
    return RunObserved(inputs, [](const auto&) {});
  }
  absl::Status RunObserved(StepInputs inputs, const runtime::ResultObserver& observe) override {
    const PlantedDifference& planted = ThePlanted();
    const auto observe_planted = [&](const runtime::ObservedResult& seen) {
      if (seen.sequence == 0 && seen.instruction == planted.instruction && seen.result == planted.result) {
        const Instruction& instruction = program().step().instructions[seen.instruction];
        const std::size_t size = ElementSize(program().values[instruction.outputs[seen.result]].spec.dtype);
        // The first byte is the lowest one: one more is the next number, away from zero.
        std::uint8_t* const element = seen.bytes.data() + planted.element * size;
        for (std::size_t i = 0; i < size && ++element[i] == 0; ++i) continue;
      }
      observe(seen);
    };
    return dynamic_cast<runtime::ObservableStep&>(*cpu_).RunObserved(inputs, observe_planted);
  }
  absl::Span<const std::uint8_t> output(std::size_t index) const override { return cpu_->output(index); }
  std::uint64_t steps_started() const override { return cpu_->steps_started(); }
  absl::StatusOr<absl::Span<const std::uint8_t>> OutputOfStep(std::uint64_t step, std::size_t index) const override {
    return cpu_->OutputOfStep(step, index);
  }
  absl::StatusOr<std::vector<runtime::InstructionTime>> RunTimed(StepInputs inputs) override {
    return cpu_->RunTimed(inputs);
  }
  runtime::MemoryUse memory() const override { return cpu_->memory(); }
  const Program& program() const override { return cpu_->program(); }

 private:
  using Instruction = runtime::Instruction;
  std::unique_ptr<Executable> cpu_;
};

class PlantedDevice : public runtime::Device {
 public:
  explicit PlantedDevice(const runtime::Device& cpu) : cpu_(cpu) {}
  std::string_view name() const override { return "planted"; }
  std::string_view backend() const override { return cpu_.name(); }
  absl::StatusOr<runtime::InstructionPlan> Plan(const Program& program, const runtime::Instruction& instruction,
                                                const runtime::PlanOptions& options) const override {
    return cpu_.Plan(program, instruction, options);
  }
  bool MayAlias(std::string_view kernel, std::size_t output, std::size_t input) const override {
    return cpu_.MayAlias(kernel, output, input);
  }
  absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const Program> program,
                                                   const runtime::StateStore& state,
                                                   const runtime::LoadOptions& options) const override {
    auto of_cpu = std::make_shared<Program>(*program);
    of_cpu->device = "cpu";
    absl::StatusOr<std::unique_ptr<Executable>> loaded = cpu_.Load(std::move(of_cpu), state, options);
    if (!loaded.ok()) return loaded.status();
    return std::make_unique<PlantedExecutable>(*std::move(loaded));
  }

 private:
  const runtime::Device& cpu_;
};

}  // namespace

void PlantDifference(const PlantedDifference& difference) {
  static const bool registered = [] {
    runtime::RegisterDevice(std::make_unique<PlantedDevice>(**runtime::GetDevice("cpu")));
    return true;
  }();
  static_cast<void>(registered);
  ThePlanted() = difference;
}

}  // namespace mpc::tools
