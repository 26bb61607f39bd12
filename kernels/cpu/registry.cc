#include "kernels/cpu/registry.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <string>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "kernels/attribute_words.h"
#include "kernels/cpu/loop_processors.h"
#include "kernels/cpu/state_hash.h"
#include "kernels/f64_scalars.h"
#include "kernels/kernel_key.h"

namespace mpc::cpu {
namespace {

Registry BuildRegistry() {
  Registry registry;
  RegisterUnary(registry);
  RegisterBinary(registry);
  RegisterActivation(registry);
  RegisterPrelu(registry);
  RegisterCompare(registry);
  RegisterCast(registry);
  RegisterRandom(registry);
  RegisterIntegerArithmetic(registry);
  RegisterIota(registry);
  RegisterDataMovement(registry);
  RegisterMovement(registry);
  RegisterGather(registry);
  RegisterReduce(registry);
  RegisterReduceMax(registry);
  RegisterReduceProd(registry);
  RegisterCumsum(registry);
  RegisterTopK(registry);
  RegisterMaxPool(registry);
  RegisterAvgPool(registry);
  RegisterResize(registry);
  RegisterBatchNorm(registry);
  RegisterLossScale(registry);
  RegisterOptimizers(registry);
  RegisterAccumulation(registry);
  RegisterCollectives(registry);
  RegisterGradientNorm(registry);
  RegisterStepFlags(registry);
  RegisterStateHash(registry);
  RegisterTensorStatistics(registry);
  RegisterAttention(registry);
  RegisterAttentionGrad(registry);
  RegisterRecurrent(registry);
  RegisterGroupNorm(registry);
  RegisterConvTranspose2d(registry);
  RegisterBatchMatmul(registry);
  RegisterConv2d(registry);
  RegisterConvolutionStatistics(registry);
  RegisterMatmul(registry);
  RegisterPackWeight(registry);
  return registry;
}

const Registry& TheRegistry() {
  static const Registry registry = BuildRegistry();
  return registry;
}

const Registry::Entry* FindEntry(std::string_view name) {
  const auto& entries = TheRegistry().entries();
  const auto found = entries.find(name);
  return found == entries.end() ? nullptr : &found->second;
}

/// 0 until the first use.
std::atomic<int> g_threads{0};

/// OMP_NUM_THREADS, of whose list the first number counts. Without it, or where it has no number, what is usable.
int DefaultThreads() {
  const char* given = std::getenv("OMP_NUM_THREADS");
  const std::string text = given == nullptr ? "" : given;
  int threads = 0;
  const bool is_number = absl::SimpleAtoi(text.substr(0, text.find(',')), &threads);
  return is_number && threads > 0 ? threads : UsableLoopProcessors();
}

class ChosenKernel final : public Kernel {
 public:
  ChosenKernel(std::unique_ptr<Kernel> kernel, std::string choice, std::optional<WeightPacking> packing)
      : kernel_(std::move(kernel)), choice_(std::move(choice)), packing_(std::move(packing)) {}
  std::size_t workspace_bytes() const override { return kernel_->workspace_bytes(); }
  void Run(const KernelOperands& operands) override { kernel_->Run(operands); }
  std::string choice() const override { return choice_; }
  std::optional<WeightPacking> packing() const override { return packing_; }

 private:
  std::unique_ptr<Kernel> kernel_;
  std::string choice_;
  std::optional<WeightPacking> packing_;
};

}  // namespace

std::unique_ptr<Kernel> WithChoice(std::unique_ptr<Kernel> kernel, std::string choice,
                                   std::optional<WeightPacking> packing) {
  return std::make_unique<ChosenKernel>(std::move(kernel), std::move(choice), std::move(packing));
}

absl::Status UnsupportedTypes(const KernelSpec& spec) {
  return absl::UnimplementedError(absl::StrCat("mpc.", spec.name, " has no CPU kernel for (", TypesOf(spec.inputs),
                                               ") -> (", TypesOf(spec.outputs), ")"));
}

absl::Status CheckSpec(const KernelSpec& spec) {
  return TakesStorageTypes(spec) ? CheckWords(spec.name, spec.attributes) : UnsupportedTypes(spec);
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateKernel(const KernelSpec& spec, const KernelOptions& options) {
  const Registry::Entry* entry = FindEntry(spec.name);
  if (entry == nullptr) return absl::UnimplementedError(absl::StrCat("mpc.", spec.name, " has no CPU kernel"));
  if (absl::Status status = CheckSpec(spec); !status.ok()) return status;
  if (entry->implementations.create != nullptr) {
    KernelOptions making = options;
    if (!spec.weight_layout.empty()) making.choice = spec.weight_choice;
    return entry->implementations.create(spec, making);
  }
  if (!spec.weight_layout.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("mpc.", spec.name, " takes no weight packed as \"", spec.weight_layout, "\""));
  }
  if (!options.choice.empty()) {
    return absl::FailedPreconditionError(
        absl::StrCat("mpc.", spec.name, " has one CPU kernel; \"", options.choice, "\" cannot be chosen"));
  }
  return entry->factory(spec);
}

std::vector<std::string> CandidateChoices(const KernelSpec& spec, const KernelOptions& options) {
  const Registry::Entry* entry = FindEntry(spec.name);
  if (entry == nullptr || entry->implementations.candidates == nullptr || !CheckSpec(spec).ok()) return {};
  return entry->implementations.candidates(spec, options);
}

bool MayGroup(std::string_view name) {
  const Registry::Entry* entry = FindEntry(name);
  return entry != nullptr && entry->group != nullptr;
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateGroupKernel(absl::Span<const KernelSpec> specs) {
  if (specs.empty()) return absl::InvalidArgumentError("a group kernel needs at least one operation, got none");
  if (!MayGroup(specs[0].name)) {
    return absl::UnimplementedError(absl::StrCat("mpc.", specs[0].name, " has no CPU kernel for several operations"));
  }
  for (const KernelSpec& spec : specs) {
    if (absl::Status status = CheckSpec(spec); !status.ok()) return status;
  }
  return FindEntry(specs[0].name)->group(specs);
}

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

void SetNumThreads(int threads) { g_threads.store(std::max(threads, 1), std::memory_order_relaxed); }

int NumThreads() {
  const int threads = g_threads.load(std::memory_order_relaxed);
  if (threads != 0) return threads;
  int unset = 0;
  const int usable = DefaultThreads();
  return g_threads.compare_exchange_strong(unset, usable, std::memory_order_relaxed) ? usable : unset;
}

}  // namespace mpc::cpu
