#include "runtime/cuda/shared_kernels.h"

#include <cstddef>
#include <iostream>
#include <utility>
#include <variant>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpc::runtime {

std::string SharedKernelKey(const KernelSpec& spec, const cuda::KernelContext& context) {
  std::string key = cuda::ChoiceKey(spec);
  for (std::size_t i = 0; i < spec.outputs.size(); ++i) absl::StrAppend(&key, spec.uses(i) ? "+" : "-");
  for (const auto& [name, value] : spec.attributes.entries()) {
    if (const auto* number = std::get_if<double>(&value)) absl::StrAppendFormat(&key, " %a", *number);
    const auto* numbers = std::get_if<std::vector<double>>(&value);
    for (std::size_t i = 0; numbers != nullptr && i < numbers->size(); ++i) {
      absl::StrAppendFormat(&key, " %a", (*numbers)[i]);
    }
  }
  absl::StrAppend(&key, " sm_", context.target.compute_capability, " x ", context.target.multiprocessors,
                  context.use_libraries ? " libraries" : " own", context.allow_tf32 ? " TF32 " : " ",
                  context.workspace_cap, " bytes: ", context.choice);
  return key;
}

absl::StatusOr<std::shared_ptr<cuda::Kernel>> SharedKernels::Get(const KernelSpec& spec,
                                                                 const cuda::KernelContext& context) {
  const std::string key = SharedKernelKey(spec, context);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const auto found = kernels_.find(key); found != kernels_.end()) return found->second;
  }
  absl::StatusOr<std::shared_ptr<cuda::Kernel>> kernel = Make(spec, context);
  if (kernel.ok()) Keep(spec, context, *kernel);
  return kernel;
}

bool SharedKernels::Has(const std::string& key) {
  const std::lock_guard<std::mutex> lock(mutex_);
  return kernels_.count(key) > 0;
}

absl::StatusOr<std::shared_ptr<cuda::Kernel>> SharedKernels::Make(const KernelSpec& spec,
                                                                  const cuda::KernelContext& context) const {
  absl::StatusOr<std::unique_ptr<cuda::Kernel>> kernel = make_(spec, context);
  if (!kernel.ok()) return kernel.status();
  return std::shared_ptr<cuda::Kernel>(*std::move(kernel));
}

void SharedKernels::Keep(const KernelSpec& spec, const cuda::KernelContext& context,
                         const std::shared_ptr<cuda::Kernel>& kernel) {
  cuda::KernelContext named = context;
  named.choice = kernel->choice();
  const std::lock_guard<std::mutex> lock(mutex_);
  kernels_.try_emplace(SharedKernelKey(spec, context), kernel);
  kernels_.try_emplace(SharedKernelKey(spec, named), kernel);
}

void SharedKernels::WarnOnce(const std::string& text) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (said_.insert(text).second) std::cerr << "warning: " << text << "\n";
}

}  // namespace mpc::runtime
