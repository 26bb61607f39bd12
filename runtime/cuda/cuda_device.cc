#include "runtime/cuda/cuda_device.h"

#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/cuda/cuda_context.h"
#include "runtime/cuda/cuda_executable.h"
#include "runtime/cuda/device_step.h"
#include "runtime/cuda/generated_kernel.h"
#include "runtime/cuda/kernel_timing.h"
#include "runtime/cuda/nccl_kernels.h"
#include "runtime/cuda/step_kernels.h"
#include "runtime/cuda/version_text.h"
#include "runtime/generated_call.h"
#include "runtime/launch_limits.h"
#include "runtime/program_binding.h"
#include "runtime/program_check.h"

namespace mpc::runtime {
namespace {

constexpr int kOldestComputeCapability = 80;

/// A device that is compiled for without having it: compute capability and multiprocessors of an A100 and an H200.
struct KnownTarget {
  std::string_view arch;
  cuda::Target target;
};
constexpr KnownTarget kKnownTargets[] = {{"sm_80", {80, 108}}, {"sm_90", {90, 132}}};

std::string CapabilityText(int capability) { return absl::StrCat(capability / 10, ".", capability % 10); }

/// The oldest architecture of the same major version: machine code for it runs on all of them.
std::string ArchOf(int compute_capability) { return absl::StrCat("sm_", compute_capability / 10, "0"); }

absl::Status CheckProperties(const CudaDeviceProperties& properties) {
  if (properties.driver_version / 1000 < properties.runtime_version / 1000) {
    return absl::UnavailableError(
        absl::StrCat("device \"cuda\": the driver is too old: it serves CUDA ",
                     CudaVersionText(properties.driver_version), ", this backend was built with CUDA ",
                     CudaVersionText(properties.runtime_version), "; install a newer driver"));
  }
  if (properties.compute_capability < kOldestComputeCapability) {
    return absl::UnavailableError(absl::StrCat("device \"cuda\": found ", properties.name, " of compute capability ",
                                               CapabilityText(properties.compute_capability), "; mpc needs ",
                                               CapabilityText(kOldestComputeCapability), " or later (Ampere, Hopper)"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::Open(CudaApi& api, const CudaDeviceOptions& options) {
  const absl::StatusOr<int> count = api.DeviceCount();
  if (!count.ok()) {
    return absl::UnavailableError(absl::StrCat("device \"cuda\": ", count.status().message()));
  }
  if (*count == 0) {
    return absl::UnavailableError(
        absl::StrCat("device \"cuda\": the driver sees no GPU (is CUDA_VISIBLE_DEVICES empty?); mpc needs one of "
                     "compute capability ",
                     CapabilityText(kOldestComputeCapability), " or later"));
  }
  const absl::StatusOr<CudaDeviceProperties> properties = api.Properties();
  if (!properties.ok()) return properties.status();
  if (absl::Status status = CheckProperties(*properties); !status.ok()) return status;
  absl::StatusOr<std::shared_ptr<CudaContext>> context = CudaContext::Create(api, options.use_libraries);
  if (!context.ok()) return context.status();
  std::unique_ptr<CudaDevice> device(new CudaDevice(options));
  device->arch_ = ArchOf(properties->compute_capability);
  device->description_ = absl::StrCat(properties->name, " (", device->arch_, ")");
  device->id_ = properties->id;
  device->context_ = *std::move(context);
  device->kernels_.target = {properties->compute_capability, properties->multiprocessors};
  device->kernels_.use_libraries = options.use_libraries;
  device->kernels_.handles = device->context_->handles();
  device->measured_on_ = absl::StrCat(properties->name, " with ", properties->multiprocessors, " multiprocessors, ",
                                      options.use_libraries ? api.LibraryVersions() : "no libraries");
  return device;
}

absl::StatusOr<std::unique_ptr<CudaDevice>> CudaDevice::ForTarget(std::string_view arch,
                                                                  const CudaDeviceOptions& options) {
  std::string known;
  for (const KnownTarget& candidate : kKnownTargets) {
    absl::StrAppend(&known, known.empty() ? "" : ", ", "\"", std::string(candidate.arch), "\"");
    if (candidate.arch != arch) continue;
    std::unique_ptr<CudaDevice> device(new CudaDevice(options));
    device->arch_ = std::string(arch);
    device->description_ = absl::StrCat("a target that is only compiled for (", device->arch_, ")");
    device->kernels_.target = candidate.target;
    device->kernels_.use_libraries = options.use_libraries;
    return device;
  }
  return absl::InvalidArgumentError(
      absl::StrCat("\"", std::string(arch), "\" is no architecture that mpc compiles for; known: ", known));
}

cuda::KernelContext CudaDevice::KernelsOf(bool allow_tf32) const {
  cuda::KernelContext kernels = kernels_;
  kernels.allow_tf32 = allow_tf32;
  return kernels;
}

absl::StatusOr<MeasuredChoice> CudaDevice::Choose(const Program& program, const KernelSpec& spec,
                                                  const cuda::KernelContext& kernels,
                                                  const PlanOptions& options) const {
  const std::string key = cuda::ChoiceKey(spec);
  MeasuredChoice choice{ChoiceFor(program, key), ""};
  if (!choice.choice.empty() || (!options.tune && options.choice_cache.empty())) return choice;
  if (context_ == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("kernels are timed, and choices cached, for a GPU that is here; this is ", description_));
  }
  if (absl::Status status = context_->api().UseDevice(); !status.ok()) return status;
  absl::StatusOr<std::vector<std::string>> candidates;
  {
    // Libraries are asked through the handles that all Programs share.
    const std::lock_guard<std::mutex> device_lock(context_->mutex());
    candidates = candidates_(spec, kernels);
  }
  if (!candidates.ok()) return candidates.status();
  const std::string conditions = absl::StrCat(key, " on ", measured_on_, kernels.allow_tf32 ? ", TF32" : "",
                                              ", workspaces up to ", kernels.workspace_cap);
  std::map<std::string, std::shared_ptr<cuda::Kernel>> tried;
  absl::StatusOr<MeasuredChoice> fastest =
      tuner_.Choose(conditions, *candidates, options, [&](const std::string& name) -> absl::StatusOr<double> {
        const std::lock_guard<std::mutex> device_lock(context_->mutex());
        cuda::KernelContext chosen = kernels;
        chosen.choice = name;
        const absl::StatusOr<std::shared_ptr<cuda::Kernel>> kernel = shared_.Make(spec, chosen);
        if (!kernel.ok()) return kernel.status();
        tried[name] = *kernel;
        return TimeKernel(*context_, spec, **kernel);
      });
  // The fastest kernel is kept, so that neither the plan nor the step makes it again.
  if (fastest.ok() && tried.count(fastest->choice) > 0) {
    cuda::KernelContext chosen = kernels;
    chosen.choice = fastest->choice;
    shared_.Keep(spec, chosen, tried[fastest->choice]);
  }
  return fastest;
}

absl::StatusOr<std::shared_ptr<cuda::Kernel>> CudaDevice::MakeShared(const KernelSpec& spec,
                                                                     const cuda::KernelContext& kernels) const {
  if (context_ == nullptr) return shared_.Get(spec, kernels);
  // All Programs share the library handles.
  const std::lock_guard<std::mutex> device_lock(context_->mutex());
  if (absl::Status status = context_->api().UseDevice(); !status.ok()) return status;
  return shared_.Get(spec, kernels);
}

absl::StatusOr<InstructionPlan> CudaDevice::Plan(const Program& program, const Instruction& instruction,
                                                 const PlanOptions& options) const {
  if (IsGenerated(instruction.kernel)) return InstructionPlan{instruction.workspace_bytes, {}};
  absl::StatusOr<KernelSpec> spec = MakeKernelSpec(program, instruction);
  if (!spec.ok()) return spec.status();
  if (IsExchange(*spec)) {
    const absl::StatusOr<std::size_t> workspace = ExchangeWorkspace(*spec);
    if (!workspace.ok()) return workspace.status();
    return InstructionPlan{*workspace, {}};
  }
  cuda::KernelContext kernels = KernelsOf(options.allow_tf32 || program.allow_tf32);
  const absl::StatusOr<MeasuredChoice> choice = Choose(program, *spec, kernels, options);
  if (!choice.ok()) return choice.status();
  kernels.choice = choice->choice;
  const absl::StatusOr<std::shared_ptr<cuda::Kernel>> kernel = MakeShared(*spec, kernels);
  if (!kernel.ok()) return kernel.status();
  if (const auto warning = SlowKernelWarning(*spec, **kernel)) shared_.WarnOnce(*warning);
  InstructionPlan plan;
  plan.workspace_bytes = (*kernel)->workspace_bytes();
  if (std::string made = (*kernel)->choice(); !made.empty()) plan.choice = {cuda::ChoiceKey(*spec), std::move(made)};
  plan.times = choice->times;
  return plan;
}

absl::Status CudaDevice::EndPlanning(const PlanOptions& options) const { return tuner_.WriteCache(options); }

bool CudaDevice::MayAlias(std::string_view kernel, std::size_t output, std::size_t input) const {
  return cuda::MayAlias(kernel, output, input);
}

absl::Status CudaDevice::Join(const std::shared_ptr<Communicator>& processes) const {
  if (context_ == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("no process can join others on ", description_));
  }
  const std::lock_guard<std::mutex> device_lock(context_->mutex());
  return context_->GroupOf(processes, nccl_(), id_).status();
}

absl::StatusOr<std::unique_ptr<Executable>> CudaDevice::Load(std::shared_ptr<const Program> program,
                                                             const StateStore& state,
                                                             const LoadOptions& options) const {
  if (program == nullptr) return absl::InvalidArgumentError("there is no program to load");
  if (program->device != name()) {
    return absl::InvalidArgumentError(absl::StrCat("program \"", program->name, "\" was compiled for device \"",
                                                   program->device, "\", not for \"cuda\""));
  }
  if (context_ == nullptr) {
    return absl::FailedPreconditionError(absl::StrCat("program \"", program->name, "\" cannot run on ", description_,
                                                      "; load it on the device \"cuda\""));
  }
  if (program->arch != arch_) {
    return absl::FailedPreconditionError(absl::StrCat("program \"", program->name, "\" was compiled for \"",
                                                      program->arch, "\"; this device is ", description_));
  }
  if (options.steps_per_launch < 1 || options.steps_per_launch > kMostStepsPerLaunch) {
    return absl::InvalidArgumentError(
        absl::StrCat("steps_per_launch is 1 to ", kMostStepsPerLaunch, ", got ", options.steps_per_launch));
  }
  if (options.branches < 1 || options.branches > kMostBranches) {
    return absl::InvalidArgumentError(absl::StrCat("branches is 1 to ", kMostBranches, ", got ", options.branches));
  }
  if (absl::Status status = CheckProgram(*program); !status.ok()) return status;
  if (absl::Status status = CheckProcesses(*program, options.communicator.get()); !status.ok()) return status;
  absl::StatusOr<StateEntries> entries = BindState(*program, state);
  if (!entries.ok()) return entries.status();
  std::shared_ptr<NcclGroup> group;
  if (const auto processes = ProcessesOf(*program); processes.ok() && *processes > 1) {
    const std::lock_guard<std::mutex> device_lock(context_->mutex());
    absl::StatusOr<std::shared_ptr<NcclGroup>> joined = context_->GroupOf(options.communicator, nccl_(), id_);
    if (!joined.ok()) return WithPlace(absl::StrCat("program \"", program->name, "\""), joined.status());
    group = *std::move(joined);
  }
  const cuda::KernelContext kernels = KernelsOf(program->allow_tf32);
  return CudaExecutable::Create(context_, std::move(program), *entries, kernels, shared_, options, std::move(group));
}

}  // namespace mpc::runtime
