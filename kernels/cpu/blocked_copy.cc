#include "kernels/cpu/blocked_copy.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <numeric>
#include <utility>

#include "kernels/cpu/lane_transpose.h"
#include "kernels/cpu/onednn_api.h"
#include "kernels/cpu/onednn_common.h"
#include "kernels/cpu/parallel.h"

namespace mpc::cpu {

#if defined(__x86_64__)

namespace {

using Lanes = BlockedCopy::Lanes;

constexpr std::int64_t kLanes = 16;

/// The most places that a copy keeps. Weights have fewer.
constexpr std::int64_t kMostPlaces = 1 << 17;

#define MPC_AVX512 [[gnu::target("avx512f,avx512bw,avx512vl")]]

constexpr std::int64_t BytesOfLane(Lanes lanes) { return lanes == Lanes::kPairs ? 4 : 2; }

/// The lanes of `mask` that lie one behind the other; zeros in the others.
template <Lanes kKind>
MPC_AVX512 inline __m512i Load(const std::byte* from, std::int64_t second_bytes, __mmask16 mask) {
  if constexpr (kKind == Lanes::kPairs) return _mm512_maskz_loadu_epi32(mask, from);
  const __m256i numbers = _mm256_maskz_loadu_epi16(mask, from);
  if constexpr (kKind == Lanes::kHalves) return _mm512_castps_si512(_mm512_maskz_cvtph_ps(mask, numbers));
  const __m512i first = _mm512_maskz_cvtepu16_epi32(mask, numbers);
  if constexpr (kKind == Lanes::kBFloats) return _mm512_maskz_slli_epi32(mask, first, 16);
  const __m512i second = _mm512_maskz_cvtepu16_epi32(mask, _mm256_maskz_loadu_epi16(mask, from + second_bytes));
  return _mm512_or_si512(first, _mm512_maskz_slli_epi32(mask, second, 16));
}

constexpr __mmask16 MaskOf(std::int64_t count) {
  return static_cast<__mmask16>((std::uint32_t{1} << static_cast<std::uint32_t>(std::min(count, kLanes))) - 1);
}

/// Up to 16 rows of up to 16 lanes of a source.
struct Tile {
  const std::byte* from;
  std::int64_t rows, row_bytes, second_bytes;
  std::int64_t lanes;
};

/// Stores a vector of the tile's rows for each lane, at `places` from `to`.
template <Lanes kKind>
MPC_AVX512 void CopyTransposed(const Tile& tile, const std::int64_t* places, std::byte* to) {
  const __mmask16 mask = MaskOf(tile.lanes);
  __m512i rows[kLanes];
  for (std::int64_t i = 0; i < kLanes; ++i) {
    rows[i] = i < tile.rows ? Load<kKind>(tile.from + i * tile.row_bytes, tile.second_bytes, mask) : __m512i{};
  }
  TransposeLanes(rows);
  for (std::int64_t j = 0; j < kLanes && j < tile.lanes; ++j) _mm512_store_si512(to + places[j], rows[j]);
}

template <Lanes kKind>
MPC_AVX512 void CopyVector(const std::byte* from, std::int64_t second_bytes, std::int64_t count, std::byte* to) {
  _mm512_store_si512(to, Load<kKind>(from, second_bytes, MaskOf(count)));
}

/// Whether types, layouts and processor are such as the class takes. An odd number of paired elements is not excluded.
bool IsTaken(DType storage, const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  if (!UsesInstructionsOf(dnnl::cpu_isa::avx512_core) || !IsBlocked(from) || !IsBlocked(to)) return false;
  if ((storage != DType::kF16 && storage != DType::kBF16) || !BlocksOf(from).empty()) return false;
  const dnnl::memory::dims extents = ExtentsOf(to);
  if (std::any_of(extents.begin(), extents.end(), [](std::int64_t extent) { return extent < 1; })) return false;
  std::vector<LayoutBlock> blocks = BlocksOf(to);
  const DType type = TypeOf(to);
  if (type == storage && blocks.size() > 1 && blocks.back().size == 2) {
    const int paired = blocks.back().dimension;
    blocks.pop_back();
    return blocks.back().dimension != paired && blocks.back().size % kLanes == 0;
  }
  return type == DType::kF32 && !blocks.empty() && blocks.back().size % kLanes == 0;
}

}  // namespace

std::vector<BlockedCopy::Dimension> BlockedCopy::DimensionsOf(const dnnl::memory::desc& from, std::int64_t from_size,
                                                              const dnnl::memory::desc& to, std::int64_t to_size) {
  const dnnl::memory::dims extents = ExtentsOf(to), sources = StridesOf(from), strides = StridesOf(to);
  const std::vector<LayoutBlock> blocks = BlocksOf(to);
  std::vector<Dimension> dimensions;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    Dimension& dimension = dimensions.emplace_back(Dimension{extents[d], sources[d] * from_size, {}});
    for (std::int64_t i = 0; i < extents[d]; ++i) {
      std::int64_t rest = i, place = 0, stride = 1;
      for (auto block = blocks.rbegin(); block != blocks.rend(); ++block) {
        if (block->dimension == static_cast<int>(d)) {
          place += rest % block->size * stride;
          rest /= block->size;
        }
        stride *= block->size;
      }
      dimension.places.push_back((place + rest * strides[d]) * to_size);
    }
  }
  return dimensions;
}

std::optional<BlockedCopy> BlockedCopy::Make(DType storage, const dnnl::memory::desc& from,
                                             const dnnl::memory::desc& to) {
  if (!IsTaken(storage, from, to)) return std::nullopt;
  std::vector<LayoutBlock> blocks = BlocksOf(to);
  const auto size = static_cast<std::int64_t>(ElementSize(storage));
  const auto packed_size = static_cast<std::int64_t>(ElementSize(TypeOf(to)));
  std::vector<Dimension> dimensions = DimensionsOf(from, size, to, packed_size);
  BlockedCopy copy;
  copy.lanes_ = storage == DType::kF16 ? Lanes::kHalves : Lanes::kBFloats;
  if (packed_size == size) {
    // Every second place of a pair's dimension is that of a lane.
    Dimension& paired = dimensions[static_cast<std::size_t>(blocks.back().dimension)];
    if (paired.extent % 2 != 0) return std::nullopt;
    copy.lanes_ = paired.stride == size ? Lanes::kPairs : Lanes::kDistantPairs;
    copy.second_bytes_ = paired.stride;
    paired.extent /= 2;
    paired.stride *= 2;
    for (std::size_t i = 0; i < paired.places.size() / 2; ++i) paired.places[i] = paired.places[2 * i];
    blocks.pop_back();
  }
  copy.groups_of_block_ = blocks.back().size / kLanes;
  const auto vector_dimension = dimensions.begin() + blocks.back().dimension;
  const Dimension vectors = std::move(*vector_dimension);
  dimensions.erase(vector_dimension);
  copy.extent_ = vectors.extent;
  copy.row_bytes_ = vectors.stride;
  for (std::int64_t i = 0; i < vectors.extent; i += kLanes) {
    copy.groups_.push_back(vectors.places[static_cast<std::size_t>(i)]);
  }
  const dnnl::memory::dims extents = ExtentsOf(to);
  const auto elements = std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
  if (elements / vectors.extent > kMostPlaces) return std::nullopt;
  copy.PlaceColumns(std::move(dimensions), vectors.stride == BytesOfLane(copy.lanes_) || vectors.extent == 1);
  const auto bytes = static_cast<std::int64_t>(to.get_size());
  if (bytes != elements * packed_size) copy.padded_bytes_ = bytes;
  return copy;
}

void BlockedCopy::PlaceColumns(std::vector<Dimension> dimensions, bool is_direct) {
  std::stable_sort(dimensions.begin(), dimensions.end(),
                   [](const Dimension& a, const Dimension& b) { return a.stride < b.stride; });
  std::int64_t next = BytesOfLane(lanes_);
  runs_ = {{0, 0}};
  if (!is_direct) run_ = {0};
  for (const Dimension& dimension : dimensions) {
    if (dimension.extent == 1) continue;
    const bool continues = !is_direct && dimension.stride == next && runs_.size() == 1;
    std::vector<std::int64_t> run;
    std::vector<Place> runs;
    for (std::int64_t i = 0; i < dimension.extent; ++i) {
      const std::int64_t place = dimension.places[static_cast<std::size_t>(i)];
      if (continues) {
        for (const std::int64_t inner : run_) run.push_back(inner + place);
      } else {
        for (const Place& inner : runs_) runs.push_back({inner.from + i * dimension.stride, inner.to + place});
      }
    }
    if (continues) {
      run_ = std::move(run);
      next *= dimension.extent;
    } else {
      runs_ = std::move(runs);
    }
  }
  std::sort(runs_.begin(), runs_.end(), [](const Place& a, const Place& b) { return a.to < b.to; });
}

template <Lanes kKind>
void BlockedCopy::RunAs(const std::byte* from, std::byte* to) const {
  // A block's groups go together, since their vectors lie together. A block is cut into parts where there are few.
  constexpr std::int64_t kParts = 32;
  const std::int64_t groups = std::ssize(groups_), runs = std::ssize(runs_);
  const std::int64_t blocks = (groups + groups_of_block_ - 1) / groups_of_block_;
  const std::int64_t parts = std::clamp<std::int64_t>(kParts / blocks, 1, runs);
  const std::int64_t lanes = std::max<std::int64_t>(1, std::ssize(run_)) * runs * kLanes * groups;
  ParallelFor(blocks * parts, lanes, [&](std::int64_t task) {
    const std::int64_t begin = task / parts * groups_of_block_, part = task % parts;
    const std::int64_t end = std::min(groups, begin + groups_of_block_);
    for (std::int64_t i = part * runs / parts; i < (part + 1) * runs / parts; ++i) {
      const Place& place = runs_[static_cast<std::size_t>(i)];
      for (std::int64_t j = 0; j == 0 || j < std::ssize(run_); j += kLanes) {
        for (std::int64_t group = begin; group < end; ++group) {
          const std::int64_t rows = std::min(kLanes, extent_ - group * kLanes);
          const std::byte* const source = from + group * kLanes * row_bytes_ + place.from + j * BytesOfLane(kKind);
          std::byte* const target = to + groups_[static_cast<std::size_t>(group)] + place.to;
          if (run_.empty()) {
            CopyVector<kKind>(source, second_bytes_, rows, target);
          } else {
            CopyTransposed<kKind>({source, rows, row_bytes_, second_bytes_, std::ssize(run_) - j}, run_.data() + j,
                                  target);
          }
        }
      }
    }
  });
}

void BlockedCopy::Run(const void* from, void* to) const {
  const auto* source = static_cast<const std::byte*>(from);
  auto* target = static_cast<std::byte*>(to);
  if (padded_bytes_ > 0) std::memset(target, 0, static_cast<std::size_t>(padded_bytes_));
  switch (lanes_) {
    case Lanes::kHalves:
      return RunAs<Lanes::kHalves>(source, target);
    case Lanes::kBFloats:
      return RunAs<Lanes::kBFloats>(source, target);
    case Lanes::kPairs:
      return RunAs<Lanes::kPairs>(source, target);
    case Lanes::kDistantPairs:
      return RunAs<Lanes::kDistantPairs>(source, target);
  }
}

#else

std::optional<BlockedCopy> BlockedCopy::Make(DType, const dnnl::memory::desc&, const dnnl::memory::desc&) {
  return std::nullopt;
}
void BlockedCopy::Run(const void*, void*) const {}

#endif

}  // namespace mpc::cpu
