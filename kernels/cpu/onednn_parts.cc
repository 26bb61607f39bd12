// An operation as primitives for one thread each, called in parts on our own threads. A library's threads would take
// longer to start than a small product takes to compute, and would wait for each other on a busy machine. Bits depend
// on how many of them there are.
#include <omp.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

#include "kernels/cpu/map.h"
#include "kernels/cpu/onednn_calls.h"

namespace mpc::cpu {
namespace {

constexpr std::size_t kMaxInputs = 4;

/// Several parts are always worth several threads.
constexpr std::int64_t kWork = std::numeric_limits<std::int64_t>::max();

/// Scratch memory of an operation, in bytes, and slots that it has in any case. Some implementations keep all windows
/// of all images.
constexpr std::int64_t kScratchBytes = 128 << 20, kLeastSlots = 2;

/// An operand that is converted or packed once, before the parts begin.
class PreparedOperand {
 public:
  PreparedOperand(std::size_t input, const Port& port, WorkspaceLayout& workspace) : input_(input) {
    if (port.stored == port.wanted) {
      stage_.emplace(port, workspace);
      return;
    }
    change_.emplace(port, workspace);
    packed_offset_ = workspace.Reserve(port.wanted.get_size());
  }

  std::size_t input() const { return input_; }
  /// Returns where it then is.
  const void* Prepare(const void* operand, std::byte* workspace) {
    if (stage_) return stage_->Convert(operand, workspace);
    change_->Execute(operand, workspace + packed_offset_, workspace);
    return workspace + packed_offset_;
  }

 private:
  std::size_t input_;
  std::optional<Stage> stage_;  ///< where it only changes its type
  std::optional<LayoutChange> change_;
  std::size_t packed_offset_ = 0;
};

class PartsKernel final : public Kernel {
 public:
  explicit PartsKernel(const StagedOperation& operation)
      : parts_(operation.parts), whole_(operation.whole), addend_(operation.addend) {
    const SerialLibrary serial;
    inputs_ = operation.primitives.front().inputs.size();
    for (std::size_t i = 0; i < operation.prepared.size(); ++i) {
      if (operation.prepared[i]) prepared_.emplace_back(i, *operation.prepared[i], workspace_);
    }
    for (StagedPart& part : parts_) part.input_offsets.resize(inputs_);
    PlaceWhole();
    MakeSlots(operation);
  }

  std::size_t workspace_bytes() const override { return workspace_.size(); }

  void Run(const KernelOperands& operands) override {
    auto* workspace = static_cast<std::byte*>(operands.workspace);
    std::array<const void*, kMaxInputs> inputs{};
    std::copy(operands.inputs, operands.inputs + inputs_, inputs.begin());
    for (PreparedOperand& operand : prepared_) {
      inputs[operand.input()] = operand.Prepare(inputs[operand.input()], workspace);
    }
    void* result = whole_ && !IsInPlace() ? workspace + whole_offset_ : operands.outputs[0];
    if (addend_ && operands.inputs[inputs_] != result) {
      Map({*addend_, operands.inputs[inputs_]}, {whole_->computed, result}, whole_->elements,
          [](float v) { return v; });
    }
    FirstError error;
    RunTasksInSlots(tasks(), slots_, kWork, [&](std::int64_t begin, std::int64_t end, std::int64_t slot) {
      const SerialLibrary serial;
      std::byte* place = workspace + slots_offset_ + static_cast<std::size_t>(slot) * slot_bytes_;
      error.Catch([&] {
        for (std::int64_t task = begin; task < end; ++task) RunTask(task, inputs, result, workspace, slot, place);
      });
    });
    error.Throw();
    if (whole_) Finish(operands.outputs[0], result, workspace);
  }

 private:
  using Inputs = std::array<const void*, kMaxInputs>;

  std::int64_t parts() const { return static_cast<std::int64_t>(parts_.size()); }
  bool IsSum() const { return whole_ && whole_->partial_sums > 1; }
  /// What runs at a time: parts, or partial sums.
  std::int64_t tasks() const { return IsSum() ? whole_->partial_sums : parts(); }
  bool IsInPlace() const { return whole_->computed == whole_->storage && !whole_->layouts; }
  std::int64_t summands() const { return static_cast<std::int64_t>(whole_bytes_ / sizeof(float)); }

  void PlaceWhole() {
    if (!whole_) return;
    const std::size_t result_bytes = static_cast<std::size_t>(whole_->elements) * ElementSize(whole_->computed);
    whole_bytes_ = whole_->layouts ? whole_->layouts->summed.get_size() : result_bytes;
    if (!IsInPlace()) whole_offset_ = workspace_.Reserve(whole_bytes_);
    // The first partial sum is where the whole is.
    sums_offset_ = workspace_.Reserve(CacheLines(whole_bytes_) * static_cast<std::size_t>(whole_->partial_sums - 1));
    if (!whole_->layouts) return;
    reorder_.emplace(whole_->layouts->summed, whole_->layouts->stored);
    reorder_offset_ = workspace_.Reserve(reorder_->scratchpad_bytes());
    if (whole_->computed != whole_->storage) reordered_offset_ = workspace_.Reserve(result_bytes);
  }

  /// A slot has a kernel for each primitive, since kernels hold the addresses of their operands.
  void MakeSlots(const StagedOperation& operation) {
    const auto add_slot = [&] {
      std::vector<std::unique_ptr<Kernel>>& kernels = kernels_.emplace_back();
      for (const StagedPrimitive& primitive : operation.primitives) {
        kernels.push_back(MakePrimitiveKernel(primitive));
        slot_bytes_ = std::max(slot_bytes_, CacheLines(kernels.back()->workspace_bytes()));
      }
    };
    add_slot();
    summand_offset_ = slot_bytes_;
    if (IsSum() && parts() > tasks()) slot_bytes_ += CacheLines(whole_bytes_);
    const std::int64_t fitting = kScratchBytes / std::max<std::int64_t>(1, static_cast<std::int64_t>(slot_bytes_));
    slots_ = std::min({operation.slots, tasks(), std::max(fitting, kLeastSlots)});
    while (std::ssize(kernels_) < slots_) add_slot();
    slots_offset_ = workspace_.Reserve(slot_bytes_ * static_cast<std::size_t>(slots_));
  }

  void RunTask(std::int64_t task, const Inputs& inputs, void* result, std::byte* workspace, std::int64_t slot,
               std::byte* place) {
    if (!IsSum()) {
      const StagedPart& part = parts_[static_cast<std::size_t>(task)];
      return RunPart(part, inputs, static_cast<std::byte*>(result) + part.output_offset, slot, place);
    }
    float* sum = PartialSum(task, result, workspace);
    const std::int64_t begin = parts() * task / tasks(), end = parts() * (task + 1) / tasks();
    RunPart(parts_[static_cast<std::size_t>(begin)], inputs, sum, slot, place);
    auto* summand = reinterpret_cast<float*>(place + summand_offset_);
    for (std::int64_t i = begin + 1; i < end; ++i) {
      RunPart(parts_[static_cast<std::size_t>(i)], inputs, summand, slot, place);
      for (std::int64_t k = 0, count = summands(); k < count; ++k) sum[k] += summand[k];
    }
  }

  void RunPart(const StagedPart& part, const Inputs& inputs, void* result, std::int64_t slot, std::byte* place) {
    Inputs begins{};
    for (std::size_t k = 0; k < inputs_; ++k) {
      begins[k] = static_cast<const std::byte*>(inputs[k]) + part.input_offsets[k];
    }
    kernels_[static_cast<std::size_t>(slot)][part.primitive]->Run({begins.data(), &result, place});
  }

  float* PartialSum(std::int64_t task, void* result, std::byte* workspace) const {
    if (task == 0) return static_cast<float*>(result);
    const std::size_t offset = CacheLines(whole_bytes_) * static_cast<std::size_t>(task - 1);
    return reinterpret_cast<float*>(workspace + sums_offset_ + offset);
  }

  /// Adds partial sums, changes their layout, activates and rounds.
  void Finish(void* output, void* result, std::byte* workspace) {
    if (IsSum()) {
      auto* sum = static_cast<float*>(result);
      ParallelBlocks(summands(), kBlock, [&](std::int64_t begin, std::int64_t size) {
        for (std::int64_t task = 1; task < tasks(); ++task) {
          const float* partial = PartialSum(task, result, workspace);
          for (std::int64_t k = begin; k < begin + size; ++k) sum[k] += partial[k];
        }
      });
    }
    if (reorder_) {
      void* reordered = whole_->computed == whole_->storage ? output : workspace + reordered_offset_;
      reorder_->Execute(result, reordered, workspace + reorder_offset_);
      result = reordered;
    }
    ActivateAndRound(whole_->activation, {whole_->computed, result}, {whole_->storage, output}, whole_->elements);
  }

  std::vector<StagedPart> parts_;
  std::optional<WholeResult> whole_;
  std::optional<DType> addend_;
  std::size_t inputs_ = 0;
  WorkspaceLayout workspace_;
  std::vector<PreparedOperand> prepared_;
  std::optional<ReorderInParts> reorder_;                      ///< layout of sums to that of the result
  std::vector<std::vector<std::unique_ptr<Kernel>>> kernels_;  ///< kernels of each slot, one for each primitive
  std::int64_t slots_ = 0;
  std::size_t slot_bytes_ = 0, slots_offset_ = 0, summand_offset_ = 0;
  std::size_t whole_bytes_ = 0;  ///< bytes of what parts compute
  std::size_t whole_offset_ = 0, sums_offset_ = 0, reorder_offset_ = 0, reordered_offset_ = 0;
};

}  // namespace

SerialLibrary::SerialLibrary() : threads_(omp_get_max_threads()) {
  if (threads_ != 1) omp_set_num_threads(1);
}

SerialLibrary::~SerialLibrary() {
  if (threads_ != 1) omp_set_num_threads(threads_);
}

std::unique_ptr<Kernel> MakePartsKernel(const StagedOperation& operation) {
  return std::make_unique<PartsKernel>(operation);
}

}  // namespace mpc::cpu
