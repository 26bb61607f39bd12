#include "compiler/dialect/attribute_conversion.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/word_attributes.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;

namespace mpc {

static std::optional<AttributeValue> toValue(Attribute value) {
  return llvm::TypeSwitch<Attribute, std::optional<AttributeValue>>(value)
      .Case([](BoolAttr boolean) { return AttributeValue(boolean.getValue()); })
      .Case([](IntegerAttr integer) { return AttributeValue(std::int64_t(integer.getInt())); })
      .Case([](FloatAttr number) { return AttributeValue(number.getValueAsDouble()); })
      .Case([](StringAttr string) { return AttributeValue(string.getValue().str()); })
      .Case([](DenseI64ArrayAttr array) {
        return AttributeValue(std::vector<std::int64_t>(array.asArrayRef().begin(), array.asArrayRef().end()));
      })
      .Default([](Attribute other) {
        std::optional<StringRef> word = wordOf(other);
        return word ? std::optional(AttributeValue(word->str())) : std::nullopt;
      });
}

Attributes toAttributes(DictionaryAttr dictionary) {
  Attributes result;
  if (!dictionary)
    return result;
  for (NamedAttribute named : dictionary) {
    // Discardable attributes carry the dialect's prefix.
    if (named.getName().getValue().contains('.'))
      continue;
    if (std::optional<AttributeValue> value = toValue(named.getValue()))
      result.Set(named.getName().str(), std::move(*value));
  }
  return result;
}

std::string_view kernelName(Operation *op) {
  StringRef name =
      isa<AllReduceStartOp, AllReduceWaitOp>(op) ? AllReduceOp::getOperationName() : op->getName().getStringRef();
  return name.split('.').second;
}

Attributes kernelAttributes(Operation *op) { return toAttributes(op->getAttrDictionary()); }

// A word of an attribute that takes words, or a string: the verifier refuses one that stands for no word.
static Attribute textAttribute(Builder &b, StringRef name, StringRef text) {
  Attribute word = wordAttribute(b.getContext(), name, text);
  return word ? word : b.getStringAttr(text);
}

SmallVector<NamedAttribute> toNamedAttributes(MLIRContext *context, const Attributes &values) {
  Builder b(context);
  SmallVector<NamedAttribute> result;
  for (const auto &[name, value] : values.entries()) {
    Attribute converted = std::visit(
        [&](const auto &held) -> Attribute {
          using T = std::decay_t<decltype(held)>;
          if constexpr (std::is_same_v<T, bool>)
            return b.getBoolAttr(held);
          else if constexpr (std::is_same_v<T, std::int64_t>)
            return b.getI64IntegerAttr(held);
          else if constexpr (std::is_same_v<T, double>)
            return b.getF32FloatAttr(static_cast<float>(held));
          else if constexpr (std::is_same_v<T, std::string>)
            return textAttribute(b, name, held);
          else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
            return b.getDenseI64ArrayAttr(held);
          else
            return b.getDenseF64ArrayAttr(held);
        },
        value);
    result.push_back(b.getNamedAttr(name, converted));
  }
  return result;
}

std::optional<DType> toDType(Type type) {
  if (type.isF32())
    return DType::kF32;
  if (type.isF16())
    return DType::kF16;
  if (type.isBF16())
    return DType::kBF16;
  if (type.isF64())
    return DType::kF64;
  if (type.isInteger(32))
    return DType::kI32;
  if (type.isInteger(64))
    return DType::kI64;
  if (type.isInteger(1))
    return DType::kBool;
  if (type.isSignlessInteger(8))
    return DType::kI8;
  if (isa<Float8E4M3FNType>(type))
    return DType::kF8E4M3FN;
  if (isa<Float8E5M2Type>(type))
    return DType::kF8E5M2;
  return std::nullopt;
}

Type toType(MLIRContext *context, DType dtype) {
  Builder b(context);
  switch (dtype) {
  case DType::kF32:
    return b.getF32Type();
  case DType::kF16:
    return b.getF16Type();
  case DType::kBF16:
    return b.getBF16Type();
  case DType::kF64:
    return b.getF64Type();
  case DType::kI32:
    return b.getI32Type();
  case DType::kI64:
    return b.getI64Type();
  case DType::kBool:
    return b.getI1Type();
  case DType::kI8:
    return b.getI8Type();
  case DType::kF8E4M3FN:
    return Float8E4M3FNType::get(context);
  case DType::kF8E5M2:
    return Float8E5M2Type::get(context);
  case DType::kU8:
    return b.getIntegerType(8, /*isSigned=*/false);
  }
  llvm_unreachable("covered switch");
}

TensorSpec toTensorSpec(RankedTensorType type) {
  return {*toDType(type.getElementType()), Shape(type.getShape().begin(), type.getShape().end())};
}

RankedTensorType toTensorType(MLIRContext *context, const TensorSpec &spec) {
  return RankedTensorType::get(spec.shape, toType(context, spec.dtype));
}

} // namespace mpc
