// Copies of tensors of 16-bit types into the blocked layouts of the library. The library widens to f32 in a pass of its
// own, and is slower where it writes pairs.
#pragma once

#include <cstdint>
#include <dnnl.hpp>
#include <optional>
#include <vector>

#include "kernels/dtype.h"

namespace mpc::cpu {

/// A copy of a tensor of f16 or bf16 that fills its memory in any order of dimensions. The blocked layout has vectors
/// of 16 elements of one dimension, widened to f32 or in pairs of another dimension. What pads the layout is 0. The
/// copy needs AVX-512.
class BlockedCopy {
 public:
  /// The copy of a tensor that is stored in `storage` and lies as `from` says, whose own type does not count. Nothing
  /// where the processor or the layouts are others than the class takes.
  static std::optional<BlockedCopy> Make(DType storage, const dnnl::memory::desc& from, const dnnl::memory::desc& to);

  /// On threads of our loops. `to` begins at a multiple of 64 bytes.
  void Run(const void* from, void* to) const;

  /// What a lane of 32 bits holds: a number, two that lie together, or two that lie apart.
  enum class Lanes { kHalves, kBFloats, kPairs, kDistantPairs };

 private:
  /// A place in the source and in the result, in bytes.
  struct Place {
    std::int64_t from, to;
  };

  /// A dimension of the source and of the result. Strides and places are in bytes.
  struct Dimension {
    std::int64_t extent, stride;
    std::vector<std::int64_t> places;  ///< places of its elements in the result
  };

  BlockedCopy() = default;
  /// Where the elements of each dimension are in both layouts. An element has `from_size` and `to_size` bytes.
  static std::vector<Dimension> DimensionsOf(const dnnl::memory::desc& from, std::int64_t from_size,
                                             const dnnl::memory::desc& to, std::int64_t to_size);
  /// Sets runs, of all dimensions but that of vectors. `is_direct`: elements of a vector lie together.
  void PlaceColumns(std::vector<Dimension> dimensions, bool is_direct);
  template <Lanes kLanes>
  void RunAs(const std::byte* from, std::byte* to) const;

  Lanes lanes_ = Lanes::kHalves;
  std::int64_t extent_ = 0;           ///< elements of the dimension that makes vectors
  std::int64_t row_bytes_ = 0;        ///< distance of its elements in the source
  std::int64_t second_bytes_ = 0;     ///< distance of the numbers of distant pairs
  std::int64_t groups_of_block_ = 1;  ///< vectors of 16 elements that lie one behind the other
  std::vector<std::int64_t> groups_;  ///< places of each 16 of them in the result, in bytes
  /// The other dimensions: a run, whose lanes lie one behind the other in the source, and the places where runs begin.
  /// Empty where elements of a vector lie together, which then are copied as they are.
  std::vector<std::int64_t> run_;
  std::vector<Place> runs_;
  std::int64_t padded_bytes_ = 0;  ///< size of the result, where it has padding; else 0
};

}  // namespace mpc::cpu
