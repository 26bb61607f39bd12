#include "compiler/dialect/tensor_values.h"

#include "compiler/dialect/attribute_conversion.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mpc {

bool isLow(Type Element) {
  std::optional<DType> Known = Element ? toDType(Element) : std::nullopt;
  return Known && IsLowPrecision(*Known);
}

bool isCastOnly(Type Element) {
  std::optional<DType> Known = Element ? toDType(Element) : std::nullopt;
  return Known && InfoOf(*Known).cast_only;
}

bool widensExactly(Type Narrow, Type Wide) {
  std::optional<DType> From = toDType(Narrow), To = toDType(Wide);
  return From && To && WidensExactly(*From, *To);
}

int64_t elementCount(Value V) {
  auto Tensor = dyn_cast<RankedTensorType>(V.getType());
  return Tensor && Tensor.hasStaticShape() ? Tensor.getNumElements() : 0;
}

int64_t bytesOf(Value V) {
  Type Element = elementOf(V);
  return Element.isIntOrFloat() ? elementCount(V) * ((Element.getIntOrFloatBitWidth() + 7) / 8) : 0;
}

SmallVector<int64_t> permuted(ArrayRef<int64_t> Extents, ArrayRef<int64_t> Permutation) {
  return llvm::map_to_vector(Permutation, [&](int64_t Axis) { return Extents[Axis]; });
}

RankedTensorType permuted(Type Tensor, ArrayRef<int64_t> Permutation) {
  auto Ranked = cast<RankedTensorType>(Tensor);
  return Ranked.clone(permuted(Ranked.getShape(), Permutation));
}

std::string typeText(Type Type) {
  std::string Text;
  llvm::raw_string_ostream(Text) << Type;
  return Text;
}

} // namespace mpc
