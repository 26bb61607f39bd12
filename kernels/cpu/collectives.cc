// all_reduce, all_reduce_max, all_gather, process_rank: what processes that train together compute of each other's
// values. With one process they copy.
#include <cassert>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/registry.h"
#include "kernels/known_attributes.h"

namespace mpc::cpu {
namespace {

bool IsAlone(const KernelSpec& spec) { return spec.attributes.Get(attribute::kProcesses) == 1; }

absl::Status CheckTypes(absl::Span<const KernelSpec> specs) {
  for (const KernelSpec& spec : specs) {
    if (spec.inputs[0].dtype != spec.outputs[0].dtype) return UnsupportedTypes(spec);
  }
  return absl::OkStatus();
}

/// Several reductions as one message: each has one operand and one result.
class AllReduce final : public Kernel {
 public:
  explicit AllReduce(absl::Span<const KernelSpec> specs) : alone_(IsAlone(specs.front())) {
    for (const KernelSpec& spec : specs) {
      ReducedPart part;
      part.elements = static_cast<std::size_t>(spec.inputs[0].num_elements());
      part.dtype = spec.inputs[0].dtype;
      part.reduction = spec.name == "all_reduce_max" ? Reduction::kMax : Reduction::kSum;
      parts_.push_back(part);
      bytes_.push_back(spec.inputs[0].bytes());
    }
  }

  void Run(const KernelOperands& operands) override {
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      parts_[i].input = operands.inputs[i];
      parts_[i].output = operands.outputs[i];
      if (alone_ && parts_[i].input != parts_[i].output) std::memcpy(parts_[i].output, parts_[i].input, bytes_[i]);
    }
    if (alone_) return;
    assert(operands.communicator != nullptr && "the device refuses to load a program of several processes without");
    operands.communicator->AllReduce(parts_).IgnoreError();  // its status() stays
  }

 private:
  bool alone_;
  std::vector<ReducedPart> parts_;
  std::vector<std::size_t> bytes_;
};

/// Several gathers as one message, which goes through memory of the kernel: a process gives its operands behind each
/// other. One gather needs none.
class AllGather final : public Kernel {
 public:
  explicit AllGather(absl::Span<const KernelSpec> specs)
      : processes_(static_cast<std::size_t>(specs.front().attributes.Get(attribute::kProcesses))) {
    for (const KernelSpec& spec : specs) {
      bytes_.push_back(spec.inputs[0].bytes());
      all_bytes_ += bytes_.back();
    }
    if (specs.size() > 1 && processes_ > 1) {
      given_.resize(all_bytes_);
      gathered_.resize(all_bytes_ * processes_);
    }
  }

  void Run(const KernelOperands& operands) override {
    if (processes_ == 1) {
      for (std::size_t i = 0; i < bytes_.size(); ++i) {
        if (operands.outputs[i] != operands.inputs[i]) std::memcpy(operands.outputs[i], operands.inputs[i], bytes_[i]);
      }
      return;
    }
    assert(operands.communicator != nullptr && "the device refuses to load a program of several processes without");
    if (bytes_.size() == 1) {
      operands.communicator->AllGather(operands.inputs[0], operands.outputs[0], all_bytes_).IgnoreError();
      return;
    }
    std::size_t offset = 0;
    for (std::size_t i = 0; i < bytes_.size(); offset += bytes_[i++]) {
      std::memcpy(given_.data() + offset, operands.inputs[i], bytes_[i]);
    }
    operands.communicator->AllGather(given_.data(), gathered_.data(), all_bytes_).IgnoreError();
    offset = 0;
    for (std::size_t i = 0; i < bytes_.size(); offset += bytes_[i++]) {
      for (std::size_t rank = 0; rank < processes_; ++rank) {
        std::memcpy(static_cast<std::byte*>(operands.outputs[i]) + rank * bytes_[i],
                    gathered_.data() + rank * all_bytes_ + offset, bytes_[i]);
      }
    }
  }

 private:
  std::size_t processes_;
  std::vector<std::size_t> bytes_;
  std::size_t all_bytes_ = 0;
  std::vector<std::byte> given_;     ///< the operands of this process, behind each other
  std::vector<std::byte> gathered_;  ///< those of all processes
};

template <typename Collective>
absl::StatusOr<std::unique_ptr<Kernel>> CreateMessage(absl::Span<const KernelSpec> specs) {
  if (absl::Status status = CheckTypes(specs); !status.ok()) return status;
  return std::unique_ptr<Kernel>(new Collective(specs));
}

template <typename Collective>
absl::StatusOr<std::unique_ptr<Kernel>> CreateLone(const KernelSpec& spec) {
  return CreateMessage<Collective>({&spec, 1});
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateProcessRank(const KernelSpec&) {
  return MakeKernel([](const KernelOperands& operands) {
    const int rank = operands.communicator == nullptr ? 0 : operands.communicator->rank();
    *static_cast<std::int32_t*>(operands.outputs[0]) = rank;
  });
}

}  // namespace

void RegisterCollectives(Registry& registry) {
  registry.Add("all_reduce", CreateLone<AllReduce>, {{0, 0}});
  registry.AddGroup("all_reduce", CreateMessage<AllReduce>);
  registry.Add("all_reduce_max", CreateLone<AllReduce>, {{0, 0}});
  registry.AddGroup("all_reduce_max", CreateMessage<AllReduce>);
  registry.Add("all_gather", CreateLone<AllGather>);
  registry.AddGroup("all_gather", CreateMessage<AllGather>);
  registry.Add("process_rank", CreateProcessRank);
}

}  // namespace mpc::cpu
