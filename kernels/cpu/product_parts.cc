#include "kernels/cpu/product_parts.h"

#include <algorithm>
#include <bit>

#include "kernels/cpu/onednn_common.h"

namespace mpc::cpu {
namespace {

/// A product of fewer multiply-adds is one part. It takes 40 us, and starting other threads may take as long.
constexpr std::int64_t kSerialProduct = std::int64_t{1} << 21;
/// Multiply-adds of a part at least, of small and of large products. Small ones are worth shorter parts, since other
/// threads have nothing else to do meanwhile.
constexpr std::int64_t kSmallPart = std::int64_t{1} << 20, kLargePart = std::int64_t{1} << 22;
constexpr std::int64_t kMostSmallParts = 4;
/// The least of a part: fewer rows or columns leave registers empty, fewer terms make stores a part of the time.
constexpr std::int64_t kLeastExtent = 64, kLeastTerms = 256;
/// Each part of so many multiply-adds reads all of b again, and packs it: then it has more rows.
constexpr std::int64_t kLargeProduct = std::int64_t{1} << 26, kLeastExtentOfLarge = 128;
/// Each is as large as the result.
constexpr std::int64_t kMostPartialSums = 8;

/// `extent` cut into `parts`, each a multiple of what registers hold.
std::int64_t SizeOf(std::int64_t extent, std::int64_t parts) {
  const std::int64_t size = PartsOf(extent, parts);
  const std::int64_t unit = size >= 256 ? 64 : 16;
  return std::min(extent, PartsOf(size, unit) * unit);
}

/// The parts of an extent of the result, whose other one all parts have: `parts`, or as many more as `results` asks
/// for.
std::int64_t PartsOfResult(std::int64_t extent, std::int64_t other, std::int64_t parts, std::int64_t least,
                           std::int64_t results) {
  const std::int64_t most = std::max<std::int64_t>(1, extent / least);
  if (parts > most) return most;
  return std::clamp(PartsOf(extent * other, results), parts, most);
}

}  // namespace

std::int64_t MostParts(std::int64_t multiply_adds) {
  if (multiply_adds < kSerialProduct) return 1;
  const std::int64_t small = std::min(multiply_adds / kSmallPart, kMostSmallParts);
  const std::int64_t most = std::min(std::max(small, multiply_adds / kLargePart), StagedOperation::kMostParts);
  return static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(most)));
}

ProductPart CutProduct(const ProductExtents& product, const ProductCuts& cuts) {
  const auto [m, k, n] = product;
  const std::int64_t parts = MostParts(product.multiply_adds());
  const std::int64_t least = product.multiply_adds() < kLargeProduct ? kLeastExtent : kLeastExtentOfLarge;
  if (parts == 1) return {m, n, k};
  // Where sums are long beside the result, its partial sums cost little.
  if (cuts.terms && k >= 8 * (m + n) && k >= 2 * kLeastTerms) {
    return {m, n, PartsOf(k, std::min({parts, k / kLeastTerms, kMostPartialSums}))};
  }
  // A part reads all of the operand that is not cut: of the shorter extent. Whole rows of a and y lie as the library's
  // best products take them.
  const bool has_rows = m >= 2 * least;
  if (cuts.columns && n >= 2 * kLeastExtent && (n > 4 * m || !has_rows)) {
    return {m, SizeOf(n, PartsOfResult(n, m, parts, kLeastExtent, cuts.results)), k};
  }
  return {SizeOf(m, PartsOfResult(m, n, parts, least, cuts.results)), n, k};
}

}  // namespace mpc::cpu
