#include "tests/tools/planted_device.h"

#include <memory>
#include <string>
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
  explicit PlantedExecutable(std::unique_ptr<Executable> base) : base_(std::move(base)) {}

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
    return dynamic_cast<runtime::ObservableStep&>(*base_).RunObserved(inputs, observe_planted);
  }
  absl::Span<const std::uint8_t> output(std::size_t index) const override { return base_->output(index); }
  std::uint64_t steps_started() const override { return base_->steps_started(); }
  absl::StatusOr<absl::Span<const std::uint8_t>> OutputOfStep(std::uint64_t step, std::size_t index) const override {
    return base_->OutputOfStep(step, index);
  }
  absl::StatusOr<std::vector<runtime::InstructionTime>> RunTimed(StepInputs inputs) override {
    return base_->RunTimed(inputs);
  }
  runtime::MemoryUse memory() const override { return base_->memory(); }
  const Program& program() const override { return base_->program(); }

 private:
  using Instruction = runtime::Instruction;
  std::unique_ptr<Executable> base_;
};

class PlantedDevice : public runtime::Device {
 public:
  explicit PlantedDevice(const runtime::Device& base) : base_(base) {}
  std::string_view name() const override { return "planted"; }
  std::string_view backend() const override { return base_.name(); }
  absl::StatusOr<runtime::InstructionPlan> Plan(const Program& program, const runtime::Instruction& instruction,
                                                const runtime::PlanOptions& options) const override {
    return base_.Plan(program, instruction, options);
  }
  bool MayAlias(std::string_view kernel, std::size_t output, std::size_t input) const override {
    return base_.MayAlias(kernel, output, input);
  }
  absl::StatusOr<std::unique_ptr<Executable>> Load(std::shared_ptr<const Program> program,
                                                   const runtime::StateStore& state,
                                                   const runtime::LoadOptions& options) const override {
    auto of_base = std::make_shared<Program>(*program);
    of_base->device = std::string(base_.name());
    absl::StatusOr<std::unique_ptr<Executable>> loaded = base_.Load(std::move(of_base), state, options);
    if (!loaded.ok()) return loaded.status();
    return std::make_unique<PlantedExecutable>(*std::move(loaded));
  }

 private:
  const runtime::Device& base_;
};

}  // namespace

void PlantDifference(const PlantedDifference& difference, const std::string& device) {
  static std::string registered;
  if (registered != device) runtime::RegisterDevice(std::make_unique<PlantedDevice>(**runtime::GetDevice(device)));
  registered = device;
  ThePlanted() = difference;
}

}  // namespace mpc::tools
