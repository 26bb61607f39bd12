#include "tests/cuda/model_kernels.h"

#include <memory>
#include <set>
#include <utility>

#include "compiler/compiler.h"
#include "kernels/cuda/kernel.h"
#include "models/registry.h"
#include "runtime/executable.h"
#include "runtime/program_binding.h"

namespace mpc::testing {
namespace {

/// A CUDA device that plans every kernel as if it needed nothing, and notes it.
class NotingDevice : public runtime::Device {
 public:
  std::string_view name() const override { return "cuda"; }
  absl::StatusOr<runtime::InstructionPlan> Plan(const runtime::Program& program,
                                                const runtime::Instruction& instruction,
                                                const runtime::PlanOptions&) const override {
    absl::StatusOr<KernelSpec> spec = runtime::MakeKernelSpec(program, instruction);
    if (!spec.ok()) return spec.status();
    if (seen_.insert(cuda::ChoiceKey(*spec)).second) noted_.push_back(*std::move(spec));
    return runtime::InstructionPlan{};
  }
  bool MayAlias(std::string_view kernel, std::size_t output, std::size_t input) const override {
    return cuda::MayAlias(kernel, output, input);
  }
  absl::StatusOr<std::unique_ptr<runtime::Executable>> Load(std::shared_ptr<const runtime::Program>,
                                                            const runtime::StateStore&,
                                                            const runtime::LoadOptions&) const override {
    return absl::FailedPreconditionError("this device only takes notes");
  }
  std::vector<KernelSpec> Take() const {
    seen_.clear();
    return std::exchange(noted_, {});
  }

 private:
  mutable std::set<std::string> seen_;
  mutable std::vector<KernelSpec> noted_;
};

const NotingDevice& TheDevice() {
  static const NotingDevice* const device = [] {
    auto made = std::make_unique<NotingDevice>();
    const NotingDevice* const kept = made.get();
    runtime::RegisterDevice(std::move(made));
    return kept;
  }();
  return *device;
}

}  // namespace

absl::StatusOr<std::vector<KernelSpec>> KernelsOf(const ModelStep& step) {
  const NotingDevice& device = TheDevice();
  absl::StatusOr<std::unique_ptr<models::Workload>> workload = models::MakeWorkload(step.model);
  if (!workload.ok()) return workload.status();
  nn::Momentum optimizer((*workload)->network().TrainableParams(), {.learning_rate = 0.01, .momentum = 0.9});
  ModelOptions options;
  options.amp_level = step.level;
  options.amp_dtype = step.low;
  options.device = "cuda";
  const Model model = step.train ? (*workload)->MakeModel(optimizer, std::move(options))
                                 : (*workload)->MakePredictor(std::move(options));
  if (!model.status().ok()) return model.status();
  absl::StatusOr<compiler::Module> traced = step.train ? model.TraceTrainStep((*workload)->TrainInputs(step.batch))
                                                       : model.TracePredict((*workload)->PredictInputs(step.batch));
  if (!traced.ok()) return traced.status();
  compiler::CompileOptions compile = model.compile_options(step.train);
  compile.conv_statistics = step.conv_statistics;
  absl::StatusOr<compiler::CompileResult> compiled = compiler::Compile(*traced, compile);
  std::vector<KernelSpec> noted = device.Take();
  if (!compiled.ok()) return compiled.status();
  return noted;
}

}  // namespace mpc::testing
