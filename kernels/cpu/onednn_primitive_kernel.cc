// The kernel around a staged oneDNN primitive. Everything is created with it; a run only exchanges data handles.
#include <utility>

#include "kernels/cpu/map.h"
#include "kernels/cpu/onednn_calls.h"
#include "kernels/scalar/vector_math.h"

namespace mpc::cpu {
namespace {

class PrimitiveKernel final : public Kernel {
 public:
  explicit PrimitiveKernel(const StagedPrimitive& staged)
      : call_(staged.primitive),
        output_(staged.output, workspace_),
        scratchpad_(staged.scratchpad),
        activation_(staged.activation) {
    inputs_.reserve(staged.inputs.size());
    for (const Port& port : staged.inputs) {
      Stage& stage = inputs_.emplace_back(port, workspace_);
      stage.AddReorder(port, true, workspace_);
      call_.Add(stage.argument, stage.memory);
    }
    output_.AddReorder(staged.output, false, workspace_);
    call_.Add(output_.argument, output_.memory);
    scratchpad_offset_ = workspace_.Reserve(staged.scratchpad.get_size());
    call_.Add(DNNL_ARG_SCRATCHPAD, scratchpad_);
  }

  std::size_t workspace_bytes() const override { return workspace_.size(); }

  void Run(const KernelOperands& operands) override {
    auto* workspace = static_cast<std::byte*>(operands.workspace);
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      inputs_[i].memory.Bind(inputs_[i].Prepare(operands.inputs[i], workspace));
    }
    const bool converted = output_.storage != output_.type;
    void* row_major = converted ? workspace + output_.conversion_offset : operands.outputs[0];
    void* packed = workspace + output_.packed_offset;
    output_.memory.Bind(output_.reorder ? packed : row_major);
    scratchpad_.Bind(workspace + scratchpad_offset_);
    call_.Execute();
    if (output_.reorder) output_.reorder->Execute(packed, row_major, workspace + output_.scratchpad_offset);
    ActivateAndRound(activation_, {output_.type, row_major}, {output_.storage, operands.outputs[0]}, output_.elements);
  }

 private:
  WorkspaceLayout workspace_;
  PreparedCall call_;
  std::vector<Stage> inputs_;
  Stage output_;
  BoundMemory scratchpad_;
  std::size_t scratchpad_offset_ = 0;
  Activation activation_;
};

}  // namespace

void ActivateAndRound(Activation activation, Source x, Sink y, std::int64_t elements) {
  switch (activation) {
    case Activation::kNone:
      if (x.data != y.data) Map(x, y, elements, [](float v) { return v; });
      return;
    case Activation::kRelu:
      return Map(x, y, elements, [](float v) { return v < 0.0f ? 0.0f : v; });
    case Activation::kSigmoid:
      return Map(x, y, elements, [](float v) { return scalar::Sigmoid(v); });
    case Activation::kTanh:
      return Map(x, y, elements, [](float v) { return scalar::Tanh(v); });
    case Activation::kGelu:
      return Map(x, y, elements, [](float v) { return scalar::GeluOp::Apply(v); });
    case Activation::kGeluTanh:
      return Map(x, y, elements, [](float v) { return scalar::GeluTanhOp::Apply(v); });
  }
}

std::unique_ptr<Kernel> MakePrimitiveKernel(const StagedPrimitive& staged) {
  return std::make_unique<PrimitiveKernel>(staged);
}

}  // namespace mpc::cpu
