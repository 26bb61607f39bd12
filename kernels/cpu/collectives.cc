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

/// Several reductions as one message: each has one operand and one result.
template <Reduction kReduction>
class AllReduce final : public Kernel {
 public:
  explicit AllReduce(absl::Span<const KernelSpec> specs) : alone_(IsAlone(specs.front())) {
    for (const KernelSpec& spec : specs) {
      ReducedPart part;
      part.elements = static_cast<std::size_t>(spec.inputs[0].num_elements());
      part.dtype = spec.inputs[0].dtype;
      part.reduction = kReduction;
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

template <Reduction kReduction>
absl::StatusOr<std::unique_ptr<Kernel>> CreateAllReduces(absl::Span<const KernelSpec> specs) {
  for (const KernelSpec& spec : specs) {
    if (spec.inputs[0].dtype != spec.outputs[0].dtype) return UnsupportedTypes(spec);
  }
  return std::unique_ptr<Kernel>(new AllReduce<kReduction>(specs));
}

template <Reduction kReduction>
absl::StatusOr<std::unique_ptr<Kernel>> CreateAllReduce(const KernelSpec& spec) {
  return CreateAllReduces<kReduction>({&spec, 1});
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateAllGather(const KernelSpec& spec) {
  if (spec.inputs[0].dtype != spec.outputs[0].dtype) return UnsupportedTypes(spec);
  return MakeKernel([alone = IsAlone(spec), bytes = spec.inputs[0].bytes()](const KernelOperands& operands) {
    if (alone) {
      std::memcpy(operands.outputs[0], operands.inputs[0], bytes);
      return;
    }
    assert(operands.communicator != nullptr && "the device refuses to load a program of several processes without");
    operands.communicator->AllGather(operands.inputs[0], operands.outputs[0], bytes).IgnoreError();
  });
}

absl::StatusOr<std::unique_ptr<Kernel>> CreateProcessRank(const KernelSpec&) {
  return MakeKernel([](const KernelOperands& operands) {
    const int rank = operands.communicator == nullptr ? 0 : operands.communicator->rank();
    *static_cast<std::int32_t*>(operands.outputs[0]) = rank;
  });
}

}  // namespace

void RegisterCollectives(Registry& registry) {
  registry.Add("all_reduce", CreateAllReduce<Reduction::kSum>, {{0, 0}});
  registry.AddGroup("all_reduce", CreateAllReduces<Reduction::kSum>);
  registry.Add("all_reduce_max", CreateAllReduce<Reduction::kMax>, {{0, 0}});
  registry.AddGroup("all_reduce_max", CreateAllReduces<Reduction::kMax>);
  registry.Add("all_gather", CreateAllGather);
  registry.Add("process_rank", CreateProcessRank);
}

}  // namespace mpc::cpu
