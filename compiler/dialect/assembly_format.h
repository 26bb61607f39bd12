// The text of operations, for parser and printer.
#pragma once

#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"

namespace mpc {

/// Prints what follows an operation's name:
///
///     %x, %weight {data_format = NHWC, strides = [2, 2]} as <f16, level "O2"> in "net/conv" : (T, U) -> V
///
/// Words stand without quotes and integers in brackets. An i64 has no type, nor has an f32 in decimal digits.
/// Attributes with the values in \p defaults (null: none) are left out. `backward` marks what autodiff has made.
/// The precision follows `as`, the scope `in`. The path alone stands for a scope of a network that has nothing else.
/// Where all operands and the only result have one type, it stands alone behind the colon. An update of state has no
/// arrow where its results have the types of its first operands.
void printOperation(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::DictionaryAttr defaults);

/// The default values of the attributes of operations of class \p Op, which the text leaves out. Null: there are none.
template <typename Op> mlir::DictionaryAttr defaultAttributes(mlir::MLIRContext *context) {
  using Properties = typename Op::template InferredProperties<Op>;
  if constexpr (std::is_same_v<Properties, mlir::EmptyProperties>) {
    return {};
  } else {
    Properties values;
    Op::populateDefaultProperties(mlir::OperationName(Op::getOperationName(), context), values);
    return llvm::dyn_cast_or_null<mlir::DictionaryAttr>(Op::getPropertiesAsAttr(context, values));
  }
}

/// Parses what printOperation prints. Words may have quotes and numbers their type. Precision and scope may be in the
/// dictionary.
llvm::ParseResult parseOperation(mlir::OpAsmParser &parser, mlir::OperationState &state);

/// Prints the types of mpc.guarded_update. The types of the held state alone stand where the condition is a scalar i1
/// and the updated state has the same types. Otherwise the whole function type stands.
void printHeldTypes(mlir::OpAsmPrinter &printer, mlir::Operation *op, mlir::Type condition, mlir::TypeRange held,
                    mlir::TypeRange updated);
/// Parses what printHeldTypes prints.
llvm::ParseResult parseHeldTypes(mlir::OpAsmParser &parser, mlir::Type &condition,
                                 llvm::SmallVectorImpl<mlir::Type> &held, llvm::SmallVectorImpl<mlir::Type> &updated);

} // namespace mpc
