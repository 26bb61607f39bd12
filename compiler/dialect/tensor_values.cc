#include "compiler/dialect/tensor_values.h"

#include "compiler/dialect/attribute_conversion.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mpc {

bool isLow(Type element) {
  std::optional<DType> known = element ? toDType(element) : std::nullopt;
  return known && IsLowPrecision(*known);
}

bool isCastOnly(Type element) {
  std::optional<DType> known = element ? toDType(element) : std::nullopt;
  return known && InfoOf(*known).cast_only;
}

bool widensExactly(Type narrow, Type wide) {
  std::optional<DType> from = toDType(narrow), to = toDType(wide);
  return from && to && WidensExactly(*from, *to);
}

int64_t elementCount(Value v) {
  auto tensor = dyn_cast<RankedTensorType>(v.getType());
  return tensor && tensor.hasStaticShape() ? tensor.getNumElements() : 0;
}

int64_t bytesOf(Value v) {
  Type element = elementOf(v);
  return element.isIntOrFloat() ? elementCount(v) * ((element.getIntOrFloatBitWidth() + 7) / 8) : 0;
}

SmallVector<int64_t> permuted(ArrayRef<int64_t> extents, ArrayRef<int64_t> permutation) {
  return llvm::map_to_vector(permutation, [&](int64_t axis) { return extents[axis]; });
}

RankedTensorType permuted(Type tensor, ArrayRef<int64_t> permutation) {
  auto ranked = cast<RankedTensorType>(tensor);
  return ranked.clone(permuted(ranked.getShape(), permutation));
}

std::string typeText(Type type) {
  std::string text;
  llvm::raw_string_ostream(text) << type;
  return text;
}

} // namespace mpc
