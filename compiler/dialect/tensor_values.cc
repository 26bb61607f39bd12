#include "compiler/dialect/tensor_values.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace mpc {

int64_t elementCount(Value V) {
  auto Tensor = dyn_cast<RankedTensorType>(V.getType());
  return Tensor && Tensor.hasStaticShape() ? Tensor.getNumElements() : 0;
}

int64_t bytesOf(Value V) {
  Type Element = elementOf(V);
  return Element.isIntOrFloat() ? elementCount(V) * ((Element.getIntOrFloatBitWidth() + 7) / 8) : 0;
}

std::string typeText(Type Type) {
  std::string Text;
  llvm::raw_string_ostream(Text) << Type;
  return Text;
}

} // namespace mpc
