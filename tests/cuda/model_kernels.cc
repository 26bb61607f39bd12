#include "tests/cuda/model_kernels.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <utility>

#include "compiler/driver/compiler.h"
#include "kernels/cuda/kernel.h"
#include "models/registry.h"
#include "runtime/executable.h"
#include "runtime/program_binding.h"

namespace mpc::testing {
namespace {

const std::set<std::string> kCudnnOperations = {
    "attention",         "attention_grad",     "packed_attention",  "packed_attention_grad", "conv2d",
    "conv2d_grad_input", "conv2d_grad_weight", "conv2d_statistics", "conv_transpose2d"};

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
  compile.fusion = false;  // what is generated has no spec, and no library takes it
  absl::StatusOr<compiler::CompileResult> compiled = compiler::Compile(*traced, compile);
  std::vector<KernelSpec> noted = device.Take();
  if (!compiled.ok()) return compiled.status();
  return noted;
}

std::vector<ModelStep> StepsOfAllModels() {
  const std::vector<std::pair<std::string, std::int64_t>> models = {{"lenet5", 32},
                                                                    {"lenet5", 1024},
                                                                    {"bnnet", 32},
                                                                    {"dcgan-generator", 64},
                                                                    {"dcgan-discriminator", 64},
                                                                    {"resnet18", 128},
                                                                    {"resnet18-imagenet", 64},
                                                                    {"resnet50-imagenet", 256},
                                                                    {"bert-tiny", 8},
                                                                    {"bert", 32},
                                                                    {"gpt2-tiny", 8},
                                                                    {"gpt2", 32}};
  std::vector<ModelStep> steps;
  for (const auto& [model, batch] : models) {
    for (bool train : {false, true}) {
      steps.push_back({model, batch, train, "O0", std::nullopt});
      steps.push_back({model, batch, train, "O2", DType::kF16});
      steps.push_back({model, batch, train, "O2", DType::kBF16});
    }
  }
  for (const auto& [model, batch] : models) {
    steps.push_back({model, batch, /*train=*/true, "O2", DType::kF16, /*conv_statistics=*/true});
  }
  return steps;
}

std::map<std::string, ModelKernel> CudnnOperationsOf(const std::vector<ModelStep>& steps) {
  std::map<std::string, ModelKernel> found;
  for (const ModelStep& step : steps) {
    absl::StatusOr<std::vector<KernelSpec>> specs = KernelsOf(step);
    EXPECT_TRUE(specs.ok()) << step.model << " " << step.level << ": " << specs.status();
    if (!specs.ok()) continue;
    for (KernelSpec& spec : *specs) {
      if (kCudnnOperations.count(spec.name) == 0) continue;
      std::string key = cuda::ChoiceKey(spec);
      found.emplace(std::move(key), ModelKernel{std::move(spec), step});
    }
  }
  return found;
}

}  // namespace mpc::testing
