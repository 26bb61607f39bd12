#include "runtime/cuda/generated_kernel.h"

#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mpc::runtime {
namespace {

constexpr std::string_view kPrefix = "generated.";

/// Launches one kernel with the addresses of its operands.
class GeneratedKernel : public cuda::Kernel {
 public:
  GeneratedKernel(cuda::KernelFunction function, cuda::LaunchShape shape, std::size_t inputs, std::size_t outputs,
                  bool has_workspace)
      : function_(function), shape_(shape), inputs_(inputs), outputs_(outputs), has_workspace_(has_workspace) {
    addresses_.reserve(inputs + outputs + 1);
    arguments_.reserve(inputs + outputs + 1);
  }

  absl::Status Enqueue(const cuda::KernelOperands& operands, cuda::LaunchQueue& queue) override {
    addresses_.assign(operands.inputs, operands.inputs + inputs_);
    for (std::size_t i = 0; i < outputs_; ++i) {
      if (operands.outputs[i] != nullptr) addresses_.push_back(operands.outputs[i]);
    }
    if (has_workspace_) addresses_.push_back(operands.workspace);
    arguments_.clear();
    for (const void*& address : addresses_) arguments_.push_back({&address, sizeof(address)});
    return queue.Launch(function_, shape_, arguments_);
  }

 private:
  cuda::KernelFunction function_;
  cuda::LaunchShape shape_;
  std::size_t inputs_, outputs_;
  bool has_workspace_;
  std::vector<const void*> addresses_;
  std::vector<cuda::KernelArgument> arguments_;
};

}  // namespace

bool IsGenerated(std::string_view kernel) { return kernel.substr(0, kPrefix.size()) == kPrefix; }

absl::StatusOr<GeneratedCode> GeneratedCode::Load(CudaApi& api, const Program& program) {
  GeneratedCode code;
  for (const CodeBlob& blob : program.code) {
    const std::string where = absl::StrCat("program \"", program.name, "\", code \"", blob.name, "\"");
    if (blob.format != "cubin" && blob.format != "ptx") {
      return absl::InvalidArgumentError(
          absl::StrCat(where, " is in format \"", blob.format, "\"; a GPU takes \"cubin\" and \"ptx\""));
    }
    OwnedCode library;
    if (absl::Status status = Keep(api, api.LoadCode(blob.bytes), library); !status.ok()) {
      return absl::Status(status.code(), absl::StrCat(where, ": ", status.message()));
    }
    for (const std::string& name : blob.kernels) {
      absl::StatusOr<cuda::KernelFunction> function = api.FindKernel(library.get(), name);
      if (!function.ok()) {
        return absl::Status(function.status().code(), absl::StrCat(where, ": ", function.status().message()));
      }
      if (!code.kernels_.emplace(name, *function).second) {
        return absl::InvalidArgumentError(absl::StrCat(where, ": another blob has a kernel \"", name, "\" too"));
      }
    }
    code.libraries_.push_back(std::move(library));
  }
  return code;
}

absl::StatusOr<std::unique_ptr<cuda::Kernel>> GeneratedCode::CreateKernel(const Instruction& instruction) const {
  const std::string name = instruction.kernel.substr(kPrefix.size());
  const auto found = kernels_.find(name);
  if (found == kernels_.end()) {
    return absl::InvalidArgumentError(absl::StrCat("no code of the program has a kernel \"", name, "\""));
  }
  const std::int64_t blocks = instruction.attributes.GetInt("blocks");
  const std::int64_t threads = instruction.attributes.GetInt("threads");
  const std::int64_t shared_bytes = instruction.attributes.GetInt("shared_bytes");
  if (blocks <= 0 || threads <= 0 || threads > 1024 || shared_bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat("a generated kernel takes blocks >= 1, 1 to 1024 threads and ",
                                                   "shared_bytes >= 0; got blocks = ", blocks, ", threads = ", threads,
                                                   ", shared_bytes = ", shared_bytes));
  }
  cuda::LaunchShape shape;
  shape.blocks_x = static_cast<unsigned>(blocks);
  shape.threads = static_cast<unsigned>(threads);
  shape.shared_bytes = static_cast<std::size_t>(shared_bytes);
  return std::make_unique<GeneratedKernel>(found->second, shape, instruction.inputs.size(), instruction.outputs.size(),
                                           instruction.workspace_bytes > 0);
}

}  // namespace mpc::runtime
