#include "runtime/cuda/nccl_kernels.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/collective.h"
#include "kernels/cuda/collectives.h"
#include "kernels/known_attributes.h"

namespace mpc::runtime {
namespace {

std::int64_t ProcessesOfSpec(const KernelSpec& spec) { return spec.attributes.Get(attribute::kProcesses); }

absl::Status CheckExchange(const KernelSpec& spec) {
  const auto has = [&spec](DType dtype) { return spec.inputs[0].dtype == dtype; };
  const bool is_known = spec.name == "process_rank" || spec.name == "all_gather" ||
                        (spec.name == "all_reduce_max" && has(DType::kI32)) ||
                        (spec.name == "all_reduce" && (has(DType::kF32) || has(DType::kF16) || has(DType::kBF16)));
  if (is_known && (spec.inputs.empty() || has(spec.outputs[0].dtype))) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("transport \"nccl\" has no mpc.", spec.name, " of ",
                                               spec.inputs.empty() ? "nothing" : spec.inputs[0].ToString(),
                                               "; it sums f32, f16 and bf16, takes maxima of i32, and gathers all"));
}

std::size_t WorkspaceOf(absl::Span<const KernelSpec> specs) {
  if (specs.front().name != "all_reduce") return 0;
  std::vector<std::size_t> bytes;
  for (const KernelSpec& spec : specs) bytes.push_back(spec.inputs[0].bytes());
  return SumWorkspace(bytes, static_cast<int>(ProcessesOfSpec(specs.front())));
}

class ExchangeKernel final : public cuda::Kernel {
 public:
  ExchangeKernel(absl::Span<const KernelSpec> specs, std::shared_ptr<NcclGroup> group)
      : name_(specs.front().name), workspace_bytes_(WorkspaceOf(specs)), group_(std::move(group)) {
    for (const KernelSpec& spec : specs) {
      if (spec.inputs.empty()) continue;
      parts_.push_back(
          {nullptr, nullptr, static_cast<std::size_t>(spec.inputs[0].num_elements()), spec.inputs[0].dtype});
    }
  }

  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Enqueue(const cuda::KernelOperands& operands, cuda::LaunchQueue& queue) override {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].input = operands.inputs[i];
      parts_[i].output = operands.outputs[i];
    }
    if (name_ == "all_reduce") return group_->EnqueueSums(parts_, operands.workspace, queue);
    if (name_ == "all_reduce_max") return group_->EnqueueLargest(parts_, queue);
    if (name_ == "all_gather") {
      return group_->EnqueueGather(parts_[0].input, parts_[0].output, parts_[0].bytes(), queue);
    }
    return cuda::EnqueueNumber(queue, static_cast<std::int32_t*>(operands.outputs[0]), group_->rank());
  }

 private:
  const std::string name_;
  const std::size_t workspace_bytes_;
  const std::shared_ptr<NcclGroup> group_;
  std::vector<DevicePart> parts_;  ///< one a spec; none of process_rank
};

}  // namespace

bool IsExchange(const KernelSpec& spec) { return IsCollective(spec.name) && ProcessesOfSpec(spec) > 1; }

absl::StatusOr<std::size_t> ExchangeWorkspace(const KernelSpec& spec) {
  if (absl::Status status = CheckExchange(spec); !status.ok()) return status;
  return WorkspaceOf({&spec, 1});
}

absl::StatusOr<std::unique_ptr<cuda::Kernel>> CreateExchange(absl::Span<const KernelSpec> specs,
                                                             std::shared_ptr<NcclGroup> group) {
  for (const KernelSpec& spec : specs) {
    if (absl::Status status = CheckExchange(spec); !status.ok()) return status;
  }
  return std::make_unique<ExchangeKernel>(specs, std::move(group));
}

}  // namespace mpc::runtime
