#include "runtime/cuda/generated_kernel.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/generated_call.h"
#include "runtime/program_binding.h"

namespace mpc::runtime {
namespace {

/// A stage, resolved to one launch.
struct LaunchedStage {
  cuda::KernelFunction function;
  cuda::LaunchShape shape;
};

/// Launches the functions of all stages with the same operand addresses.
class GeneratedKernel : public cuda::Kernel {
 public:
  GeneratedKernel(std::vector<LaunchedStage> stages, std::size_t inputs, std::size_t outputs, bool has_workspace)
      : stages_(std::move(stages)), inputs_(inputs), outputs_(outputs), has_workspace_(has_workspace) {
    addresses_.reserve(inputs + outputs + 1);
    arguments_.reserve(inputs + outputs + 1);
  }

  absl::Status Enqueue(const cuda::KernelOperands& operands, cuda::LaunchQueue& queue) override {
    addresses_.assign(operands.inputs, operands.inputs + inputs_);
    addresses_.insert(addresses_.end(), operands.outputs, operands.outputs + outputs_);
    if (has_workspace_) addresses_.push_back(operands.workspace);
    arguments_.clear();
    for (const void*& address : addresses_) arguments_.push_back({&address, sizeof(address)});
    for (const LaunchedStage& stage : stages_) {
      if (absl::Status status = queue.Launch(stage.function, stage.shape, arguments_); !status.ok()) return status;
    }
    return absl::OkStatus();
  }

 private:
  std::vector<LaunchedStage> stages_;
  std::size_t inputs_, outputs_;
  bool has_workspace_;
  std::vector<const void*> addresses_;
  std::vector<cuda::KernelArgument> arguments_;
};

}  // namespace

absl::StatusOr<GeneratedCode> GeneratedCode::Load(CudaApi& api, const Program& program) {
  GeneratedCode code;
  for (const CodeBlob& blob : program.code) {
    const std::string where = absl::StrCat("program \"", program.name, "\", code \"", blob.name, "\"");
    if (blob.format != "cubin" && blob.format != "ptx") {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " is in format \"", blob.format, "\"; a GPU takes \"cubin\" and \"ptx\""));
    }
    // PTX says so itself: generated functions of one blob all begin alike.
    const std::string_view text(reinterpret_cast<const char*>(blob.bytes.data()), blob.bytes.size());
    const bool awaits_earlier = blob.format == "ptx" && text.find("griddepcontrol.wait") != text.npos;
    OwnedCode library;
    if (absl::Status status = Keep(api, api.LoadCode(blob.bytes), library); !status.ok())
      return WithPlace(where, status);
    for (const std::string& name : blob.kernels) {
      absl::StatusOr<cuda::KernelFunction> function = api.FindKernel(library.get(), name);
      if (!function.ok()) return WithPlace(where, function.status());
      function->awaits_earlier = awaits_earlier;
      code.kernels_[name] = *function;
    }
    code.libraries_.push_back(std::move(library));
  }
  return code;
}

absl::StatusOr<std::unique_ptr<cuda::Kernel>> GeneratedCode::CreateKernel(const Instruction& instruction) const {
  const absl::StatusOr<std::vector<GeneratedStage>> stages = StagesOf(instruction);
  if (!stages.ok()) return stages.status();
  std::vector<LaunchedStage> launches;
  for (const GeneratedStage& stage : *stages) {
    const auto found = kernels_.find(stage.function);
    if (found == kernels_.end()) {
      return absl::InvalidArgumentError(absl::StrCat("no code of the program has a function \"", stage.function, "\""));
    }
    LaunchedStage& launch = launches.emplace_back(LaunchedStage{found->second, {}});
    launch.shape.blocks_x = static_cast<unsigned>(stage.blocks);
    launch.shape.threads = static_cast<unsigned>(stage.threads);
    if (stage.shared_bytes > kMostStaticSharedBytes)
      launch.shape.shared_bytes = static_cast<std::size_t>(stage.shared_bytes);
  }
  return std::make_unique<GeneratedKernel>(std::move(launches), instruction.inputs.size(), instruction.outputs.size(),
                                           instruction.workspace_bytes > 0);
}

}  // namespace mpc::runtime
