#include "compiler/dialect/attribute_conversion.h"

#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/ErrorHandling.h"

using namespace mlir;

namespace mpc {

static std::optional<AttributeValue> toValue(Attribute Value) {
  return llvm::TypeSwitch<Attribute, std::optional<AttributeValue>>(Value)
      .Case([](BoolAttr Bool) { return AttributeValue(Bool.getValue()); })
      .Case([](IntegerAttr Integer) { return AttributeValue(std::int64_t(Integer.getInt())); })
      .Case([](FloatAttr Float) { return AttributeValue(Float.getValueAsDouble()); })
      .Case([](StringAttr String) { return AttributeValue(String.getValue().str()); })
      .Case([](DenseI64ArrayAttr Array) {
        return AttributeValue(std::vector<std::int64_t>(Array.asArrayRef().begin(), Array.asArrayRef().end()));
      })
      .Default([](Attribute) { return std::optional<AttributeValue>(); });
}

Attributes toAttributes(DictionaryAttr Dictionary) {
  Attributes Result;
  if (!Dictionary)
    return Result;
  for (NamedAttribute Named : Dictionary) {
    // Discardable attributes carry the dialect's prefix.
    if (Named.getName().getValue().contains('.'))
      continue;
    if (std::optional<AttributeValue> Value = toValue(Named.getValue()))
      Result.Set(Named.getName().str(), std::move(*Value));
  }
  return Result;
}

Attributes kernelAttributes(Operation *Op) {
  NamedAttrList List(Op->getAttrDictionary());
  Op->getName().populateDefaultAttrs(List);
  return toAttributes(List.getDictionary(Op->getContext()));
}

SmallVector<NamedAttribute> toNamedAttributes(MLIRContext *Context, const Attributes &Values) {
  Builder B(Context);
  SmallVector<NamedAttribute> Result;
  for (const auto &[Name, Value] : Values.entries()) {
    Attribute Converted = std::visit(
        [&](const auto &Held) -> Attribute {
          using T = std::decay_t<decltype(Held)>;
          if constexpr (std::is_same_v<T, bool>)
            return B.getBoolAttr(Held);
          else if constexpr (std::is_same_v<T, std::int64_t>)
            return B.getI64IntegerAttr(Held);
          else if constexpr (std::is_same_v<T, double>)
            return B.getF32FloatAttr(static_cast<float>(Held));
          else if constexpr (std::is_same_v<T, std::string>)
            return B.getStringAttr(Held);
          else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
            return B.getDenseI64ArrayAttr(Held);
          else
            return B.getDenseF64ArrayAttr(Held);
        },
        Value);
    Result.push_back(B.getNamedAttr(Name, Converted));
  }
  return Result;
}

std::optional<DType> toDType(Type Type) {
  if (Type.isF32())
    return DType::kF32;
  if (Type.isF16())
    return DType::kF16;
  if (Type.isBF16())
    return DType::kBF16;
  if (Type.isF64())
    return DType::kF64;
  if (Type.isInteger(32))
    return DType::kI32;
  if (Type.isInteger(64))
    return DType::kI64;
  if (Type.isInteger(1))
    return DType::kBool;
  if (Type.isSignlessInteger(8))
    return DType::kI8;
  if (isa<Float8E4M3FNType>(Type))
    return DType::kF8E4M3FN;
  if (isa<Float8E5M2Type>(Type))
    return DType::kF8E5M2;
  return std::nullopt;
}

Type toType(MLIRContext *Context, DType Dtype) {
  Builder B(Context);
  switch (Dtype) {
  case DType::kF32:
    return B.getF32Type();
  case DType::kF16:
    return B.getF16Type();
  case DType::kBF16:
    return B.getBF16Type();
  case DType::kF64:
    return B.getF64Type();
  case DType::kI32:
    return B.getI32Type();
  case DType::kI64:
    return B.getI64Type();
  case DType::kBool:
    return B.getI1Type();
  case DType::kI8:
    return B.getI8Type();
  case DType::kF8E4M3FN:
    return Float8E4M3FNType::get(Context);
  case DType::kF8E5M2:
    return Float8E5M2Type::get(Context);
  }
  llvm_unreachable("covered switch");
}

TensorSpec toTensorSpec(RankedTensorType Type) {
  return {*toDType(Type.getElementType()), Shape(Type.getShape().begin(), Type.getShape().end())};
}

RankedTensorType toTensorType(MLIRContext *Context, const TensorSpec &Spec) {
  return RankedTensorType::get(Spec.shape, toType(Context, Spec.dtype));
}

} // namespace mpc
