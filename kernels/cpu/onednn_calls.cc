#include "kernels/cpu/onednn_calls.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "kernels/cpu/onednn_api.h"
#include "kernels/cpu/onednn_layout.h"
#include "kernels/cpu/parallel.h"

namespace mpc::cpu {
namespace {

/// One for each thread: a primitive of a part runs beside others.
const dnnl::stream& Stream() {
  static thread_local const dnnl::stream stream(OnednnEngine());
  return stream;
}

/// Bytes of a part of a change of layout at least: starting threads takes as long as copying them.
constexpr std::size_t kReorderedBytes = 128 * 1024;

/// Elements of `dimension` that lie together: the blocks of a layout cut no part.
std::int64_t BlockOf(const dnnl::memory::desc& layout, int dimension) {
  std::int64_t size = 1;
  for (const LayoutBlock& block : BlocksOf(layout)) size *= block.dimension == dimension ? block.size : 1;
  return size;
}

/// The dimension of several blocks that lie furthest apart; -1 where every dimension has one.
int OutermostDimension(const dnnl::memory::desc& layout) {
  const dnnl::memory::dims extents = ExtentsOf(layout), strides = StridesOf(layout);
  int outermost = -1;
  for (int i = 0; i < static_cast<int>(extents.size()); ++i) {
    const auto at = static_cast<std::size_t>(i);
    if (extents[at] <= BlockOf(layout, i)) continue;
    if (outermost < 0 || strides[at] > strides[static_cast<std::size_t>(outermost)]) outermost = i;
  }
  return outermost;
}

/// `layout` with another extent of `dimension`, from a whole block on. Nothing where it has no such form.
std::optional<dnnl::memory::desc> Slice(const dnnl::memory::desc& layout, int dimension, std::int64_t extent) {
  dnnl::memory::dims extents = ExtentsOf(layout);
  extents[static_cast<std::size_t>(dimension)] = extent;
  const dnnl::memory::dims strides = StridesOf(layout);
  if (BlocksOf(layout).empty()) return dnnl::memory::desc(extents, DataTypeOf(layout), strides);
  const std::string name = LayoutName(layout);
  if (name.empty()) return std::nullopt;
  auto slice = NamedLayout(extents, DataTypeOf(layout), name);
  if (!slice.ok() || StridesOf(*slice) != strides) return std::nullopt;
  return *std::move(slice);
}

/// Where block `begin` of `dimension` lies, in bytes.
std::size_t OffsetOf(const dnnl::memory::desc& layout, int dimension, std::int64_t begin) {
  const std::int64_t stride = StridesOf(layout)[static_cast<std::size_t>(dimension)];
  return static_cast<std::size_t>(begin / BlockOf(layout, dimension) * stride) * ElementSize(TypeOf(layout));
}

/// The elements of `dimension` in each part of a change of layout; all of them where there is one.
std::int64_t PartOfReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to, int dimension) {
  const std::int64_t extent = ExtentsOf(to)[static_cast<std::size_t>(dimension)];
  const std::int64_t block = std::lcm(BlockOf(from, dimension), BlockOf(to, dimension));
  const auto parts = static_cast<std::int64_t>(to.get_size() / kReorderedBytes);
  const std::int64_t most = std::min({parts, StagedOperation::kMostParts, extent / block});
  if (most < 2) return extent;
  return ((extent + most - 1) / most + block - 1) / block * block;
}

void Widen(Source source, float* target, std::int64_t count) {
  ParallelBlocks(count, kBlock, [&](std::int64_t offset, std::int64_t size) {
    LoadFloats(source.dtype, source.data, offset, size, target + offset);
  });
}

}  // namespace

std::size_t WorkspaceLayout::Reserve(std::size_t bytes) { return std::exchange(size_, size_ + CacheLines(bytes)); }

void PreparedCall::Execute() const {
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive_.get(), Stream().get(), static_cast<int>(arguments_.size()), arguments_.data()),
      "a oneDNN primitive failed");
}

Reorder::Reorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to)
    : description_(OnednnEngine(), from, OnednnEngine(), to, StrictAttributes()),
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
  call_.Execute();
}

ReorderInParts::ReorderInParts(const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  const SerialLibrary serial;
  const int dimension = IsBlocked(from) && IsBlocked(to) ? OutermostDimension(to) : -1;
  if (dimension < 0) {
    Add(from, to, 0, 0);
    return;
  }
  const std::int64_t extent = ExtentsOf(to)[static_cast<std::size_t>(dimension)];
  const std::int64_t size = PartOfReorder(from, to, dimension);
  for (std::int64_t begin = 0; begin < extent; begin += size) {
    const std::int64_t part = std::min(size, extent - begin);
    const auto from_part = Slice(from, dimension, part), to_part = Slice(to, dimension, part);
    if (part == extent || !from_part || !to_part) {
      parts_.clear();
      scratchpad_bytes_ = 0;
      Add(from, to, 0, 0);
      return;
    }
    Add(*from_part, *to_part, OffsetOf(from, dimension, begin), OffsetOf(to, dimension, begin));
  }
}

void ReorderInParts::Add(const dnnl::memory::desc& from, const dnnl::memory::desc& to, std::size_t from_offset,
                         std::size_t to_offset) {
  parts_.push_back({Reorder(from, to), from_offset, to_offset, scratchpad_bytes_});
  scratchpad_bytes_ += CacheLines(parts_.back().reorder.scratchpad_bytes());
}

void ReorderInParts::Execute(const void* from, void* to, std::byte* scratchpad) {
  // Parts are large enough for threads of their own.
  constexpr std::int64_t kWork = std::numeric_limits<std::int64_t>::max();
  FirstError error;
  ParallelFor(static_cast<std::int64_t>(parts_.size()), kWork, [&](std::int64_t i) {
    const SerialLibrary serial;
    Part& part = parts_[static_cast<std::size_t>(i)];
    // oneDNN's handles are not const; what is reordered is only read.
    auto* source = static_cast<std::byte*>(const_cast<void*>(from)) + part.from_offset;
    error.Catch([&] {
      part.reorder.Execute(source, static_cast<std::byte*>(to) + part.to_offset, scratchpad + part.scratchpad_offset);
    });
  });
  error.Throw();
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

LayoutChange::LayoutChange(const Port& port, WorkspaceLayout& workspace)
    : copy_(BlockedCopy::Make(port.storage, port.stored, port.wanted)) {
  if (copy_) return;
  stage_.emplace(port, workspace);
  reorder_.emplace(port.stored, port.wanted);
  scratchpad_offset_ = workspace.Reserve(reorder_->scratchpad_bytes());
}

void LayoutChange::Execute(const void* operand, void* to, std::byte* workspace) {
  if (copy_) return copy_->Run(operand, to);
  reorder_->Execute(stage_->Convert(operand, workspace), to, workspace + scratchpad_offset_);
}

}  // namespace mpc::cpu
