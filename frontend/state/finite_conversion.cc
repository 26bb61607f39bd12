#include "frontend/state/finite_conversion.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/graph/element_conversion.h"

namespace mpc::internal {
namespace {

constexpr std::size_t kBlock = 4096;

}  // namespace

std::string LostValues(DType from, const void* elements, DType to, const void* converted, std::size_t count) {
  if (!IsFloating(from) || !IsFloating(to) || from == to || ElementSize(to) > ElementSize(from)) return {};
  const auto* before = static_cast<const std::uint8_t*>(elements);
  const auto* after = static_cast<const std::uint8_t*>(converted);
  std::vector<double> values(kBlock);
  for (std::size_t begin = 0; begin < count; begin += kBlock) {
    const std::size_t size = std::min(kBlock, count - begin);
    ConvertElements(to, after + begin * ElementSize(to), DType::kF64, values.data(), size);
    for (std::size_t i = 0; i < size; ++i) {
      if (std::isfinite(values[i])) continue;
      double value = 0;
      ConvertElements(from, before + (begin + i) * ElementSize(from), DType::kF64, &value, 1);
      if (!std::isfinite(value)) continue;
      return absl::StrCat("has values too large for ", std::string(DTypeName(to)), ", first ", value, " at element ",
                          begin + i);
    }
  }
  return {};
}

std::string LostValues(const Tensor& tensor, const Tensor& converted) {
  return LostValues(tensor.dtype(), tensor.bytes().data(), converted.dtype(), converted.bytes().data(),
                    static_cast<std::size_t>(tensor.size()));
}

}  // namespace mpc::internal
