// What differs between the interfaces of oneDNN 2 and oneDNN 3. The kernels on oneDNN are written once, on this.
#pragma once

#include <dnnl.hpp>
#include <optional>
#include <vector>

#if DNNL_VERSION_MAJOR != 2 && DNNL_VERSION_MAJOR != 3
#error "mpc is written for oneDNN 2 and 3"
#endif

namespace mpc::cpu {

/// A block of a blocked layout: so many neighbours of a dimension lie together.
struct LayoutBlock {
  dnnl::memory::dim size;
  int dimension;

  bool operator==(const LayoutBlock&) const = default;
};

#if DNNL_VERSION_MAJOR == 2

/// The primitive of `operation`, the arguments of its description. Throws dnnl::error where the library has none.
template <typename Primitive, typename... Operation>
typename Primitive::primitive_desc Describe(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                            const Operation&... operation) {
  return {typename Primitive::desc(operation...), attributes, engine};
}

/// The same for a derivative, which takes the description of the forward primitive as a hint.
template <typename Primitive, typename Hint, typename... Operation>
typename Primitive::primitive_desc DescribeBackward(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                                    const Hint& hint, const Operation&... operation) {
  return {typename Primitive::desc(operation...), attributes, engine, hint};
}

inline dnnl::memory::dims ExtentsOf(const dnnl::memory::desc& layout) { return layout.dims(); }
inline dnnl::memory::data_type DataTypeOf(const dnnl::memory::desc& layout) { return layout.data_type(); }
inline bool IsBlocked(const dnnl::memory::desc& layout) { return layout.data.format_kind == dnnl_blocked; }

/// In elements, one for a dimension. The layout is blocked.
inline dnnl::memory::dims StridesOf(const dnnl::memory::desc& layout) {
  const dnnl_dim_t* strides = layout.data.format_desc.blocking.strides;
  return {strides, strides + layout.data.ndims};
}

/// Outermost first. The layout is blocked.
inline std::vector<LayoutBlock> BlocksOf(const dnnl::memory::desc& layout) {
  const dnnl_blocking_desc_t& blocking = layout.data.format_desc.blocking;
  std::vector<LayoutBlock> blocks;
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    blocks.push_back({blocking.inner_blks[i], static_cast<int>(blocking.inner_idxs[i])});
  }
  return blocks;
}

/// The level of processors for which the library multiplies f16; none in version 2.
inline std::optional<dnnl::cpu_isa> LevelOfF16() { return std::nullopt; }

/// Lets a primitive apply `function` to its sums.
inline void AppendFunction(dnnl::post_ops& post_ops, dnnl::algorithm function) {
  post_ops.append_eltwise(1.0f, function, 0.0f, 0.0f);
}

#else

template <typename Primitive, typename... Operation>
typename Primitive::primitive_desc Describe(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                            const Operation&... operation) {
  return {engine, operation..., attributes};
}

template <typename Primitive, typename Hint, typename... Operation>
typename Primitive::primitive_desc DescribeBackward(const dnnl::engine& engine, const dnnl::primitive_attr& attributes,
                                                    const Hint& hint, const Operation&... operation) {
  return {engine, operation..., hint, attributes};
}

inline dnnl::memory::dims ExtentsOf(const dnnl::memory::desc& layout) { return layout.get_dims(); }
inline dnnl::memory::data_type DataTypeOf(const dnnl::memory::desc& layout) { return layout.get_data_type(); }
inline bool IsBlocked(const dnnl::memory::desc& layout) {
  return layout.get_format_kind() == dnnl::memory::format_kind::blocked;
}
inline dnnl::memory::dims StridesOf(const dnnl::memory::desc& layout) { return layout.get_strides(); }
inline std::vector<LayoutBlock> BlocksOf(const dnnl::memory::desc& layout) {
  std::vector<LayoutBlock> blocks;
  const dnnl::memory::dims sizes = layout.get_inner_blks(), dimensions = layout.get_inner_idxs();
  for (int i = 0; i < layout.get_inner_nblks(); ++i) {
    const auto block = static_cast<std::size_t>(i);
    blocks.push_back({sizes[block], static_cast<int>(dimensions[block])});
  }
  return blocks;
}
/// None: version 3 has it from avx512_core_fp16 on, but widening f16 is faster for convolutions (docs/cpu.md).
inline std::optional<dnnl::cpu_isa> LevelOfF16() { return std::nullopt; }
inline void AppendFunction(dnnl::post_ops& post_ops, dnnl::algorithm function) {
  post_ops.append_eltwise(function, 0.0f, 0.0f);
}

#endif

}  // namespace mpc::cpu
