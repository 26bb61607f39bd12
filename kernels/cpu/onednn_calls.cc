#include "kernels/cpu/onednn_calls.h"

#include <omp.h>

#include <utility>

#include "kernels/cpu/blocks.h"
#include "kernels/cpu/parallel.h"

namespace mpc::cpu {
namespace {

/// One for each thread: a primitive of a part runs beside others.
const dnnl::stream& Stream() {
  static thread_local const dnnl::stream stream(OnednnEngine());
  return stream;
}

/// Bytes of a change of layout below which the library's threads take longer to start than to copy.
constexpr std::size_t kSerialReorder = 128 * 1024;

void Widen(Source source, float* target, std::int64_t count) {
  ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
    LoadFloats(source.dtype, source.data, offset, size, target + offset);
  });
}

}  // namespace

std::size_t WorkspaceLayout::Reserve(std::size_t bytes) { return std::exchange(size_, size_ + CacheLines(bytes)); }

void PreparedCall::Execute() const {
  if (omp_get_max_threads() > 1) RestThreads();
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), Stream().get(), static_cast<int>(arguments_.size()), arguments_.data()),
      "a oneDNN primitive failed");
}

Reorder::Reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to)
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

void Reorder::Execute(void* from, void* to, void* scratchpad) {
  from_.Bind(from);
  to_.Bind(to);
  scratchpad_.Bind(scratchpad);
  const SerialLibrary serial(is_serial_);
  call_.Execute();
}

dnnl::reorder::primitive_desc Reorder::Describe(const dnnl::memory::desc& from, const dnnl::memory::desc& to) const {
  const SerialLibrary serial(is_serial_);
  return {OnednnEngine(), from, OnednnEngine(), to, StrictAttributes()};
}

Stage::Stage(const Port& port, WorkspaceLayout& workspace)
    : argument(port.argument),
      storage(port.storage),
      type(TypeOf(port.stored)),
      elements(static_cast<std::int64_t>(port.stored.get_size() / ElementSize(type))),
      memory(port.wanted) {
  if (storage != type) conversion_offset = workspace.Reserve(port.stored.get_size());
}

void Stage::AddReorder(const Port& port, bool towards_primitive, WorkspaceLayout& workspace) {
  if (port.stored == port.wanted) return;
  packed_offset = workspace.Reserve(port.wanted.get_size());
  reorder.emplace(towards_primitive ? port.stored : port.wanted, towards_primitive ? port.wanted : port.stored);
  scratchpad_offset = workspace.Reserve(reorder->scratchpad_bytes());
}

void* Stage::Convert(const void* operand, std::byte* workspace) const {
  // oneDNN's handles are not const; inputs are only read.
  if (storage == type) return const_cast<void*>(operand);
  auto* widened = reinterpret_cast<float*>(workspace + conversion_offset);
  Widen({storage, operand}, widened, elements);
  return widened;
}

void* Stage::Prepare(const void* operand, std::byte* workspace) {
  void* data = Convert(operand, workspace);
  if (!reorder) return data;
  void* packed = workspace + packed_offset;
  reorder->Execute(data, packed, workspace + scratchpad_offset);
  return packed;
}

}  // namespace mpc::cpu
