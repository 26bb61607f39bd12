#include "compiler/dialect/dialect.h"

#include "mlir/IR/DialectImplementation.h"
#include "llvm/ADT/TypeSwitch.h"

#include "compiler/dialect/mpc_enums.cc.inc"

#include "compiler/dialect/mpc_dialect.cc.inc"

#include "compiler/dialect/mpc_interfaces.cc.inc"

#define GET_ATTRDEF_CLASSES
#include "compiler/dialect/mpc_attributes.cc.inc"

using namespace mlir;

namespace mpc {

void MpcDialect::initialize() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "compiler/dialect/mpc_attributes.cc.inc"
      >();
  registerMpcDialectOperations(this);
}

Operation *MpcDialect::materializeConstant(OpBuilder &builder, Attribute value, Type type, Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type)
    return nullptr;
  return ConstantOp::create(builder, loc, type, elements);
}

} // namespace mpc
