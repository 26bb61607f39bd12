#include "runtime/cuda/step_kernels.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/cuda/own_kernel.h"
#include "runtime/cuda/nccl_kernels.h"
#include "runtime/generated_call.h"
#include "runtime/program_binding.h"

namespace mpc::runtime {
namespace {

/// The choice of `key` in `choices`, made empty where there is none.
std::string& ChoiceIn(std::vector<std::pair<std::string, std::string>>& choices, const std::string& key) {
  const auto found =
      std::find_if(choices.begin(), choices.end(), [&key](const auto& choice) { return choice.first == key; });
  return found != choices.end() ? found->second : choices.emplace_back(key, "").second;
}

/// The image on the result's side of a convolution, whose channels are the filter's first extent, and the filter.
std::pair<const TensorSpec*, const TensorSpec*> ResultAndFilter(const KernelSpec& spec) {
  if (spec.name == "conv2d" || spec.name == "conv2d_statistics") return {&spec.outputs[0], &spec.inputs[1]};
  if (spec.name == "conv2d_grad_weight") return {&spec.inputs[1], &spec.outputs[0]};
  if (spec.name == "conv2d_grad_input" || spec.name == "conv_transpose2d") return {&spec.inputs[0], &spec.inputs[1]};
  return {nullptr, nullptr};
}

/// Whether `spec` is attention, packed or not, or its gradient.
bool IsAttention(const KernelSpec& spec) {
  return spec.name.ends_with("attention") || spec.name.ends_with("attention_grad");
}

/// Floating-point operations of the two products of attention, or of the five products of its gradient.
double AttentionFlops(const KernelSpec& spec) {
  const bool is_gradient = spec.name.ends_with("attention_grad");
  const std::size_t first = is_gradient ? 1 : 0;
  if (spec.name.starts_with("packed")) {
    // [B, T, 3 * H * D]: a third of the elements are queries.
    const TensorSpec& qkv = spec.inputs[first];
    if (qkv.shape.size() != 3) return 0;
    const double scores = static_cast<double>(qkv.num_elements()) / 3 * static_cast<double>(qkv.shape[1]);
    return scores * (is_gradient ? 10 : 4);
  }
  if (spec.inputs.size() < first + 3) return 0;
  const Shape& query = spec.inputs[first].shape;
  const Shape& value = spec.inputs[first + 2].shape;
  if (query.size() != 4 || value.size() != 4) return 0;
  const double scores = static_cast<double>(NumElements(query)) * static_cast<double>(value[2]);
  return scores * (is_gradient ? 10 : 4);
}

}  // namespace

double MatrixFlops(const KernelSpec& spec) {
  if (spec.inputs.empty() || spec.outputs.empty()) return 0;
  if (IsAttention(spec)) return AttentionFlops(spec);
  if (spec.inputs.size() < 2) return 0;
  if (spec.name == "matmul" || spec.name == "batch_matmul") {
    const Shape& a = spec.inputs[0].shape;
    if (a.size() < 2) return 0;
    const std::int64_t depth = a[a.size() - (spec.attributes.GetBool("transpose_a") ? 2 : 1)];
    return 2.0 * static_cast<double>(spec.outputs[0].num_elements()) * static_cast<double>(depth);
  }
  const auto [result, filter] = ResultAndFilter(spec);
  if (result == nullptr || filter->shape.size() != 4 || filter->shape[0] < 1) return 0;
  const double pixels = static_cast<double>(result->num_elements()) / static_cast<double>(filter->shape[0]);
  return 2.0 * pixels * static_cast<double>(filter->num_elements());
}

std::optional<std::string> SlowKernelWarning(const KernelSpec& spec, const cuda::Kernel& kernel) {
  constexpr double kMuch = 1e9;
  const double flops = MatrixFlops(spec);
  const auto* own = dynamic_cast<const cuda::OwnKernel*>(&kernel);
  if (own == nullptr || own->reason().empty() || flops < kMuch) return std::nullopt;
  return absl::StrFormat("%.1f GFLOP of each run go to mpc's own kernel, which is much slower than a library's: %s: %s",
                         1e-9 * flops, cuda::ChoiceKey(spec), own->reason());
}

void StepKernels::Collect() {
  if (is_collected_) return;
  is_collected_ = true;
  const auto add = [this](const Instruction& instruction) {
    // Kernels of groups are made with their group.
    if (instruction.sequence != 0 || IsGenerated(instruction.kernel) || cuda::MayGroup(instruction.kernel)) return;
    const absl::StatusOr<KernelSpec> spec = MakeKernelSpec(program_, instruction);
    if (spec.ok() && !IsExchange(*spec)) EntryOf(*spec);
  };
  for (const Sequence& sequence : program_.sequences) {
    for (const Instruction& instruction : sequence.instructions) add(instruction);
  }
  for (const StateRefresh& refresh : program_.refreshes) add(refresh.instruction);
}

std::size_t StepKernels::LongToMake() {
  Collect();
  return static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), [this](const auto& each) {
    const auto& [key, entry] = each;
    const bool is_plan = entry.spec.name.starts_with("conv") || IsAttention(entry.spec);
    return is_plan && entry.context.choice != cuda::kOwnChoice && !shared_.Has(key);
  }));
}

StepKernels::Entry& StepKernels::EntryOf(const KernelSpec& spec) {
  cuda::KernelContext context = context_;
  context.choice = ChoiceFor(program_, cuda::ChoiceKey(spec));
  return entries_.try_emplace(SharedKernelKey(spec, context), Entry{spec, context}).first->second;
}

void StepKernels::Make(Entry& entry) const {
  entry.kernel = shared_.Get(entry.spec, entry.context);
  const absl::Status status = entry.kernel->status();
  const bool is_refused = absl::IsFailedPrecondition(status) || absl::IsUnimplemented(status);
  if (entry.context.choice.empty() || !is_refused) return;
  entry.refusal = std::string(status.message());
  cuda::KernelContext open = entry.context;
  open.choice.clear();
  entry.kernel = shared_.Get(entry.spec, open);
}

void StepKernels::MakeAll(CudaApi& api, absl::Span<const cuda::LibraryHandles> handles) {
  Collect();
  std::vector<Entry*> missing;
  for (auto& [key, entry] : entries_) {
    if (!entry.kernel.has_value()) missing.push_back(&entry);
  }
  std::atomic<std::size_t> next{0};
  const auto make = [&](const cuda::LibraryHandles& own) {
    for (std::size_t i = next++; i < missing.size(); i = next++) {
      missing[i]->context.handles = own;
      Make(*missing[i]);
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < std::min(handles.size(), missing.size()); ++i) {
    // A thread that cannot use the device leaves the work to the others.
    threads.emplace_back([&, i] {
      if (api.UseDevice().ok()) make(handles[i]);
    });
  }
  if (!handles.empty()) make(handles[0]);
  for (std::thread& thread : threads) thread.join();
}

absl::StatusOr<std::shared_ptr<cuda::Kernel>> StepKernels::GroupKernelFor(const std::vector<KernelSpec>& specs) const {
  return IsExchange(specs.front()) ? CreateExchange(specs, group_) : cuda::CreateGroupKernel(specs, context_);
}

absl::StatusOr<std::shared_ptr<cuda::Kernel>> StepKernels::KernelFor(const KernelSpec& spec) {
  if (IsExchange(spec)) return CreateExchange({&spec, 1}, group_);
  Entry& entry = EntryOf(spec);
  if (!entry.kernel.has_value()) Make(entry);
  return *entry.kernel;
}

std::shared_ptr<const Program> StepKernels::WithChoices(const std::shared_ptr<const Program>& program) const {
  std::vector<std::pair<std::string, std::string>> choices = program->choices;
  for (const auto& [key, entry] : entries_) {
    if (entry.made() == nullptr) continue;
    if (std::string made = entry.made()->choice(); !made.empty()) {
      ChoiceIn(choices, cuda::ChoiceKey(entry.spec)) = std::move(made);
    }
  }
  if (choices == program->choices) return program;
  auto changed = std::make_shared<Program>(*program);
  changed->choices = std::move(choices);
  return changed;
}

void StepKernels::Warn() const {
  std::size_t chosen = 0, replaced = 0;
  std::string first;
  for (const auto& [key, entry] : entries_) {
    if (entry.made() == nullptr) continue;
    if (!entry.context.choice.empty()) ++chosen;
    if (const auto text = SlowKernelWarning(entry.spec, *entry.made())) shared_.WarnOnce(*text);
    if (entry.refusal.empty() || ++replaced > 1) continue;
    first = absl::StrCat(cuda::ChoiceKey(entry.spec), ": ", entry.context.choice, " became ", entry.made()->choice(),
                         ": ", entry.refusal);
  }
  if (replaced == 0) return;
  shared_.WarnOnce(absl::StrCat(
      "program \"", program_.name, "\": this device refuses ", replaced, " of ", chosen,
      " choices that it was compiled with. They were made again here, by the libraries' heuristics first, mpc's own "
      "kernels last; results may differ in their last bits. The choice table has them. The first: ",
      first));
}

}  // namespace mpc::runtime
