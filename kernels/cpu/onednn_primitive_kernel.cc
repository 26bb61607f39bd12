// The kernel around a staged oneDNN primitive. Everything is created with it; a run only exchanges data handles.
#include <omp.h>

#include <cstdint>
#include <optional>
#include <utility>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/map.h"
#include "kernels/cpu/onednn_common.h"
#include "kernels/cpu/parallel.h"
#include "kernels/scalar/vector_math.h"

namespace mpc::cpu {
namespace {

std::size_t Aligned(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

/// Hands out parts of the workspace.
class WorkspaceLayout {
 public:
  std::size_t Reserve(std::size_t bytes) { return std::exchange(size_, size_ + Aligned(bytes)); }
  std::size_t size() const { return size_; }

 private:
  std::size_t size_ = 0;
};

/// One for each thread: a primitive of a part runs beside others.
const dnnl::stream& Stream() {
  static thread_local const dnnl::stream stream(OnednnEngine());
  return stream;
}

/// Memory without data of its own.
class BoundMemory {
 public:
  explicit BoundMemory(const dnnl::memory::desc& layout) : memory_(layout, OnednnEngine(), nullptr) {}

  dnnl_memory_t get() const { return memory_.get(); }
  void Bind(void* data) {
    // oneDNN clears the padding of blocked layouts when a handle is set; an unchanged one is left alone.
    if (data == data_) return;
    memory_.set_data_handle(data);
    data_ = data;
  }

 private:
  dnnl::memory memory_;
  void* data_ = nullptr;
};

/// A primitive and its arguments in the form of oneDNN's C interface: the C++ one builds its list on every call.
class PreparedCall {
 public:
  explicit PreparedCall(dnnl::primitive primitive) : primitive_(std::move(primitive)) {}

  void Add(int argument, const BoundMemory& memory) { arguments_.push_back({argument, memory.get()}); }
  void Execute() const {
    if (omp_get_max_threads() > 1) RestThreads();
    dnnl::error::wrap_c_api(dnnl_primitive_execute(primitive_.get(), Stream().get(),
                                                   static_cast<int>(arguments_.size()), arguments_.data()),
                            "a oneDNN primitive failed");
  }

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

/// Bytes of a change of layout below which the library's threads take longer to start than to copy.
constexpr std::size_t kSerialReorder = 128 * 1024;

/// A change of layout between two bound memories.
class Reorder {
 public:
  Reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to)
      : is_serial_(to.get_size() < kSerialReorder),
        description_(Describe(from, to)),
        from_(from),
        to_(to),
        scratchpad_(description_.scratchpad_desc()),
        call_(dnnl::reorder(description_)) {
    call_.Add(DNNL_ARG_FROM, from_);
    call_.Add(DNNL_ARG_TO, to_);
    call_.Add(DNNL_ARG_SCRATCHPAD, scratchpad_);
  }

  std::size_t scratchpad_bytes() const { return description_.scratchpad_desc().get_size(); }

  void Execute(void* from, void* to, void* scratchpad) {
    from_.Bind(from);
    to_.Bind(to);
    scratchpad_.Bind(scratchpad);
    const SerialLibrary serial(is_serial_);
    call_.Execute();
  }

 private:
  dnnl::reorder::primitive_desc Describe(const dnnl::memory::desc& from, const dnnl::memory::desc& to) const {
    const SerialLibrary serial(is_serial_);
    return {OnednnEngine(), from, OnednnEngine(), to, StrictAttributes()};
  }

  bool is_serial_;
  dnnl::reorder::primitive_desc description_;
  BoundMemory from_;
  BoundMemory to_;
  BoundMemory scratchpad_;
  PreparedCall call_;
};

DType TypeOf(const dnnl::memory::desc& layout) {
  return layout.data_type() == dnnl::memory::data_type::bf16 ? DType::kBF16 : DType::kF32;
}

std::int64_t ElementsOf(const dnnl::memory::desc& layout) {
  return static_cast<std::int64_t>(layout.get_size() / ElementSize(TypeOf(layout)));
}

/// One operand or result: where it is converted and where it is reordered, if it has to be.
struct Stage {
  Stage(const Port& port, WorkspaceLayout& workspace)
      : argument(port.argument),
        storage(port.storage),
        type(TypeOf(port.stored)),
        elements(ElementsOf(port.stored)),
        memory(port.wanted) {
    if (storage != type) conversion_offset = workspace.Reserve(port.stored.get_size());
  }

  /// The reorder and the place of the primitive's side of it.
  void AddReorder(const Port& port, bool towards_primitive, WorkspaceLayout& workspace) {
    if (port.stored == port.wanted) return;
    packed_offset = workspace.Reserve(port.wanted.get_size());
    reorder.emplace(towards_primitive ? port.stored : port.wanted, towards_primitive ? port.wanted : port.stored);
    scratchpad_offset = workspace.Reserve(reorder->scratchpad_bytes());
  }

  int argument;
  DType storage;
  DType type;
  std::int64_t elements;
  BoundMemory memory;  ///< the primitive's argument
  std::optional<Reorder> reorder;
  std::size_t conversion_offset = 0;
  std::size_t packed_offset = 0;
  std::size_t scratchpad_offset = 0;
};

void Widen(Source source, float* target, std::int64_t count) {
  ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
    LoadFloats(source.dtype, source.data, offset, size, target + offset);
  });
}

class PrimitiveKernel final : public Kernel {
 public:
  explicit PrimitiveKernel(const StagedPrimitive& staged)
      : call_(staged.primitive),
        output_(staged.output, workspace_),
        scratchpad_(staged.scratchpad),
        activation_(staged.activation),
        adds_to_input_(staged.adds_to_input),
        added_(staged.added) {
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
    for (std::size_t i = 0; i < inputs_.size(); ++i) Prepare(inputs_[i], operands.inputs[i], workspace);
    const bool converted = output_.storage != output_.type;
    void* row_major = converted ? workspace + output_.conversion_offset : operands.outputs[0];
    void* packed = workspace + output_.packed_offset;
    if (adds_to_input_ && operands.inputs[inputs_.size()] != row_major) {
      Map({added_, operands.inputs[inputs_.size()]}, {output_.type, row_major}, output_.elements,
          [](float v) { return v; });
    }
    output_.memory.Bind(output_.reorder ? packed : row_major);
    scratchpad_.Bind(workspace + scratchpad_offset_);
    call_.Execute();
    if (output_.reorder) output_.reorder->Execute(packed, row_major, workspace + output_.scratchpad_offset);
    ActivateAndRound(row_major, operands.outputs[0]);
  }

 private:
  static void Prepare(Stage& stage, const void* operand, std::byte* workspace) {
    // oneDNN's handles are not const; inputs are only read.
    void* data = const_cast<void*>(operand);
    if (stage.storage != stage.type) {
      data = workspace + stage.conversion_offset;
      Widen({stage.storage, operand}, static_cast<float*>(data), stage.elements);
    }
    if (stage.reorder) {
      void* packed = workspace + stage.packed_offset;
      stage.reorder->Execute(data, packed, workspace + stage.scratchpad_offset);
      data = packed;
    }
    stage.memory.Bind(data);
  }

  void ActivateAndRound(const void* computed, void* result) const {
    const Source x{output_.type, computed};
    const Sink y{output_.storage, result};
    switch (activation_) {
      case Activation::kNone:
        if (computed != result) Map(x, y, output_.elements, [](float v) { return v; });
        return;
      case Activation::kRelu:
        return Map(x, y, output_.elements, [](float v) { return v < 0.0f ? 0.0f : v; });
      case Activation::kSigmoid:
        return Map(x, y, output_.elements, [](float v) { return scalar::Sigmoid(v); });
      case Activation::kTanh:
        return Map(x, y, output_.elements, [](float v) { return scalar::Tanh(v); });
    }
  }

  WorkspaceLayout workspace_;
  PreparedCall call_;
  std::vector<Stage> inputs_;
  Stage output_;
  BoundMemory scratchpad_;
  std::size_t scratchpad_offset_ = 0;
  Activation activation_;
  bool adds_to_input_;
  DType added_;
};

}  // namespace

std::unique_ptr<Kernel> MakePrimitiveKernel(const StagedPrimitive& staged) {
  return std::make_unique<PrimitiveKernel>(staged);
}

}  // namespace mpc::cpu
