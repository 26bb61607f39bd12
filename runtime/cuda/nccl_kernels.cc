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
  std::vector<std::size_t> bytes;
  for (const KernelSpec& spec : specs) {
    if (spec.name == "all_reduce") bytes.push_back(spec.inputs[0].bytes());
  }
  return SumWorkspace(bytes, static_cast<int>(ProcessesOfSpec(specs.front())));
}

/// The operands of one operation, among those of a kernel.
struct ExchangedParts {
  std::vector<std::size_t> indices;
  std::vector<DevicePart> parts;

  void Add(const KernelSpec& spec, std::size_t index) {
    indices.push_back(index);
    parts.push_back({nullptr, nullptr, static_cast<std::size_t>(spec.inputs[0].num_elements()), spec.inputs[0].dtype});
  }
  const std::vector<DevicePart>& With(const cuda::KernelOperands& operands) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      parts[i].input = operands.inputs[indices[i]];
      parts[i].output = operands.outputs[indices[i]];
    }
    return parts;
  }
};

class ExchangeKernel final : public cuda::Kernel {
 public:
  ExchangeKernel(absl::Span<const KernelSpec> specs, std::shared_ptr<NcclGroup> group)
      : is_rank_(specs.front().name == "process_rank"), workspace_bytes_(WorkspaceOf(specs)), group_(std::move(group)) {
    for (std::size_t i = 0; i < specs.size() && !is_rank_; ++i) {
      const bool is_largest = specs[i].name == "all_reduce_max";
      (specs[i].name == "all_reduce" ? sums_ : is_largest ? largest_ : gathers_).Add(specs[i], i);
    }
  }

  std::size_t workspace_bytes() const override { return workspace_bytes_; }

  absl::Status Enqueue(const cuda::KernelOperands& operands, cuda::LaunchQueue& queue) override {
    if (is_rank_) return cuda::EnqueueNumber(queue, static_cast<std::int32_t*>(operands.outputs[0]), group_->rank());
    absl::Status status;
    if (!sums_.parts.empty()) status = group_->EnqueueSums(sums_.With(operands), operands.workspace, queue);
    if (status.ok() && !largest_.parts.empty()) status = group_->EnqueueLargest(largest_.With(operands), queue);
    if (status.ok() && !gathers_.parts.empty()) status = group_->EnqueueGathers(gathers_.With(operands), queue);
    return status;
  }

 private:
  const bool is_rank_;
  const std::size_t workspace_bytes_;
  const std::shared_ptr<NcclGroup> group_;
  ExchangedParts sums_, largest_, gathers_;
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
