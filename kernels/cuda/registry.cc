#include "kernels/cuda/registry.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "kernels/attribute_words.h"
#include "kernels/cuda/own_kernel.h"
#include "kernels/cuda/state_hash.h"
#include "kernels/f64_scalars.h"
#include "kernels/kernel_key.h"

namespace mpc::cuda {
namespace {

Registry BuildRegistry() {
  Registry registry;
  RegisterUnary(registry);
  RegisterActivation(registry);
  RegisterBinary(registry);
  RegisterSelection(registry);
  RegisterRandom(registry);
  RegisterIntegerArithmetic(registry);
  RegisterIota(registry);
  RegisterDataMovement(registry);
  RegisterCollectives(registry);
  RegisterStateHash(registry);
  RegisterStepFlags(registry);
  RegisterReduce(registry);
  RegisterCumsum(registry);
  RegisterTopK(registry);
  RegisterSoftmax(registry);
  RegisterLosses(registry);
  RegisterBatchNorm(registry);
  RegisterLayerNorm(registry);
  RegisterGroupNorm(registry);
  RegisterFinite(registry);
  RegisterPooling(registry);
  RegisterResize(registry);
  RegisterGather(registry);
  RegisterConvolution(registry);
  RegisterConvolutionStatistics(registry);
  RegisterMatmul(registry);
  RegisterAttention(registry);
  RegisterRecurrent(registry);
  RegisterOptimizers(registry);
  RegisterLossScale(registry);
#ifndef MPC_CUDA_EMULATION
  RegisterCublasLt(registry);
  RegisterCudnnConvolution(registry);
  RegisterCudnnAttention(registry);
#endif
  return registry;
}

const Registry& TheRegistry() {
  static const Registry registry = BuildRegistry();
  return registry;
}

const Registry::Entry* FindEntry(std::string_view name) {
  const auto found = TheRegistry().entries().find(name);
  return found == TheRegistry().entries().end() ? nullptr : &found->second;
}

}  // namespace

absl::Status UnsupportedTypes(const KernelSpec& spec) {
  return absl::UnimplementedError(absl::StrCat("mpc.", spec.name, " has no CUDA kernel for (", TypesOf(spec.inputs),
                                               ") -> (", TypesOf(spec.outputs), ")"));
}

absl::Status CheckSpec(const KernelSpec& spec) {
  return TakesStorageTypes(spec) ? CheckWords(spec.name, spec.attributes) : UnsupportedTypes(spec);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const KernelSpec& spec, const KernelContext& context) {
  const Registry::Entry* entry = FindEntry(spec.name);
  if (entry == nullptr) return absl::UnimplementedError(absl::StrCat("mpc.", spec.name, " has no CUDA kernel"));
  if (absl::Status status = CheckSpec(spec); !status.ok()) return status;
  if (entry->library == nullptr) return entry->own(spec, context);
  const bool own_only = !context.use_libraries || context.choice == kOwnChoice;
  std::string reason;
  if (!own_only) {
    absl::StatusOr<std::unique_ptr<Kernel>> kernel = entry->library(spec, context);
    const bool may_fall_back = absl::IsUnimplemented(kernel.status()) && context.choice.empty();
    if (kernel.ok() || !may_fall_back || entry->own == nullptr) return kernel;
    reason = kernel.status() == UnsupportedTypes(spec) ? "the libraries have none for its types and shapes"
                                                       : std::string(kernel.status().message());
  }
  if (entry->own == nullptr) return UnsupportedTypes(spec);
  absl::StatusOr<std::unique_ptr<Kernel>> kernel = entry->own(spec, context);
  if (!kernel.ok()) return kernel.status();
  return std::make_unique<OwnKernel>(*std::move(kernel), std::move(reason));
}

bool MayGroup(std::string_view name) {
  const Registry::Entry* entry = FindEntry(name);
  return entry != nullptr && entry->group != nullptr;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGroupKernel(absl::Span<const KernelSpec> specs,
                                                          const KernelContext& context) {
  const Registry::Entry* entry = specs.empty() ? nullptr : FindEntry(specs[0].name);
  if (entry == nullptr || entry->group == nullptr) {
    return absl::InvalidArgumentError(
        absl::StrCat("instructions of mpc.", specs.empty() ? "" : specs[0].name, " cannot share one launch"));
  }
  for (const KernelSpec& spec : specs) {
    if (absl::Status status = CheckSpec(spec); !status.ok()) return status;
  }
  return entry->group(specs, context);
}

absl::StatusOr<std::vector<std::string>> CandidateChoices(const KernelSpec& spec, const KernelContext& context) {
  const Registry::Entry* entry = FindEntry(spec.name);
  std::vector<std::string> choices;
  if (entry == nullptr || entry->candidates == nullptr || !context.use_libraries) return choices;
  if (absl::Status status = CheckWords(spec.name, spec.attributes); !status.ok()) return status;
  absl::StatusOr<std::vector<std::string>> offered = entry->candidates(spec, context);
  if (!offered.ok() && !absl::IsUnimplemented(offered.status())) return offered.status();
  if (offered.ok()) choices = *std::move(offered);
  if (entry->own != nullptr) choices.push_back(kOwnChoice);
  return choices;
}

std::string ChoiceKey(const KernelSpec& spec) { return KernelKey(spec); }

std::vector<std::string_view> KernelNames() {
  std::vector<std::string_view> names;
  for (const auto& [name, entry] : TheRegistry().entries()) names.push_back(name);
  return names;
}

bool MayAlias(std::string_view name, std::size_t output, std::size_t input) {
  const Registry::Entry* entry = FindEntry(name);
  if (entry == nullptr) return false;
  for (const AliasRule& rule : entry->aliases) {
    if (rule.output == output && rule.input == input) return true;
  }
  return false;
}

}  // namespace mpc::cuda
