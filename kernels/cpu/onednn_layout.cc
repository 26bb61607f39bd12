#include "kernels/cpu/onednn_layout.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/tensor_spec.h"

namespace mpc::cpu {
namespace {

struct Block {
  std::int64_t size;
  int dimension;
};

std::string NameOf(const std::vector<int>& order, const std::vector<Block>& blocks) {
  std::string name;
  for (const int dimension : order) {
    const bool is_blocked = std::any_of(blocks.begin(), blocks.end(),
                                        [dimension](const Block& block) { return block.dimension == dimension; });
    name.push_back(static_cast<char>((is_blocked ? 'A' : 'a') + dimension));
  }
  for (const Block& block : blocks) absl::StrAppend(&name, block.size, std::string(1, char('a' + block.dimension)));
  return name;
}

/// A dense layout: dimensions in `order`, then `blocks`.
dnnl::memory::desc LayoutOf(const dnnl::memory::dims& extents, dnnl::memory::data_type type,
                            const std::vector<int>& order, const std::vector<Block>& blocks) {
  // The library's own constructor fills in what is not about blocks.
  dnnl_memory_desc_t layout = dnnl::memory::desc(extents, type, RowMajorStrides(extents)).data;
  dnnl_blocking_desc_t& blocking = layout.format_desc.blocking;
  std::array<std::int64_t, DNNL_MAX_NDIMS> block_sizes;
  block_sizes.fill(1);
  std::int64_t stride = 1;
  blocking.inner_nblks = static_cast<int>(blocks.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    blocking.inner_blks[i] = blocks[i].size;
    blocking.inner_idxs[i] = blocks[i].dimension;
    block_sizes[static_cast<std::size_t>(blocks[i].dimension)] *= blocks[i].size;
    stride *= blocks[i].size;
  }
  for (auto dimension = order.rbegin(); dimension != order.rend(); ++dimension) {
    const auto i = static_cast<std::size_t>(*dimension);
    const std::int64_t count = (extents[i] + block_sizes[i] - 1) / block_sizes[i];
    layout.padded_dims[i] = count * block_sizes[i];
    blocking.strides[i] = stride;
    stride *= count;
  }
  return dnnl::memory::desc(layout);
}

}  // namespace

std::string LayoutName(const dnnl::memory::desc& layout) {
  const dnnl_memory_desc_t& data = layout.data;
  if (data.format_kind != dnnl_blocked || data.ndims < 1) return "";
  const dnnl_blocking_desc_t& blocking = data.format_desc.blocking;
  std::vector<Block> blocks;
  std::array<std::int64_t, DNNL_MAX_NDIMS> counts{};
  std::copy_n(data.padded_dims, data.ndims, counts.begin());
  for (int i = 0; i < blocking.inner_nblks; ++i) {
    blocks.push_back({blocking.inner_blks[i], static_cast<int>(blocking.inner_idxs[i])});
    counts[static_cast<std::size_t>(blocking.inner_idxs[i])] /= blocking.inner_blks[i];
  }
  // Of the dimensions that share a stride, all but the outermost have one element.
  std::vector<int> order(static_cast<std::size_t>(data.ndims));
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
    if (blocking.strides[a] != blocking.strides[b]) return blocking.strides[a] > blocking.strides[b];
    return counts[static_cast<std::size_t>(a)] > counts[static_cast<std::size_t>(b)];
  });
  const bool is_dense = LayoutOf(layout.dims(), layout.data_type(), order, blocks) == layout;
  return is_dense ? NameOf(order, blocks) : "";
}

absl::StatusOr<dnnl::memory::desc> NamedLayout(const dnnl::memory::dims& extents, dnnl::memory::data_type type,
                                               std::string_view name) {
  const auto invalid = [&] {
    return absl::InvalidArgumentError(absl::StrCat("\"", std::string(name), "\" names no layout of ", extents.size(),
                                                   " dimensions, as \"ABcd16b16a\" does of 4"));
  };
  const std::size_t rank = extents.size();
  if (rank < 1 || rank > DNNL_MAX_NDIMS || name.size() < rank) return invalid();
  if (std::any_of(extents.begin(), extents.end(), [](std::int64_t extent) { return extent < 1; })) return invalid();
  std::vector<int> order;
  for (const char letter : name.substr(0, rank)) {
    const int dimension = absl::ascii_tolower(static_cast<unsigned char>(letter)) - 'a';
    const bool is_new = std::find(order.begin(), order.end(), dimension) == order.end();
    if (dimension < 0 || dimension >= static_cast<int>(rank) || !is_new) return invalid();
    order.push_back(dimension);
  }
  std::vector<Block> blocks;
  constexpr std::int64_t kMaxBlocks = 1 << 16;  // all of them together
  std::int64_t size = 0, all = 1;
  for (const char letter : name.substr(rank)) {
    if (absl::ascii_isdigit(static_cast<unsigned char>(letter))) {
      size = 10 * size + (letter - '0');
      if (size > kMaxBlocks) return invalid();
      continue;
    }
    const int dimension = letter - 'a';
    if (size < 1 || dimension < 0 || dimension >= static_cast<int>(rank) || blocks.size() == DNNL_MAX_NDIMS) {
      return invalid();
    }
    blocks.push_back({size, dimension});
    all *= size;
    if (all > kMaxBlocks) return invalid();
    size = 0;
  }
  if (size != 0 || NameOf(order, blocks) != name) return invalid();
  return LayoutOf(extents, type, order, blocks);
}

}  // namespace mpc::cpu
