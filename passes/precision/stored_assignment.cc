#include "passes/precision/stored_assignment.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace mpc {

StoredAssignment readAssignment(ModuleOp module) {
  StoredAssignment assignment;
  if (DictionaryAttr stored = dialectOf(module).getAssignmentAttrHelper().getAttr(module))
    for (NamedAttribute entry : stored)
      if (auto type = dyn_cast<StringAttr>(entry.getValue()))
        assignment[entry.getName().str()] = type.getValue().str();
  return assignment;
}

void writeAssignment(ModuleOp module, const StoredAssignment &assignment) {
  Builder b(module.getContext());
  SmallVector<NamedAttribute> entries;
  for (const auto &[name, type] : assignment)
    entries.push_back(b.getNamedAttr(name, b.getStringAttr(type)));
  dialectOf(module).getAssignmentAttrHelper().setAttr(module, b.getDictionaryAttr(entries));
}

// The name that training and inference share.
static StringRef familyName(Operation *op) {
  return has<Property::BatchNorm>(op) ? "batch_norm" : op->getName().stripDialect();
}

AssignmentNames::AssignmentNames(ModuleOp module) {
  llvm::StringMap<unsigned> counts;
  module.walk<WalkOrder::PreOrder>([&](AmpOpInterface op) {
    if (op.getAmpClass() == AmpClass::Exempt)
      return;
    std::string kind = (pathOf(op) + "#" + familyName(op)).str();
    names[op] = kind + "." + std::to_string(counts[kind]++);
  });
}

std::string AssignmentNames::lookup(Operation *op) const { return names.lookup(op); }

std::string AssignmentNames::slotOf(Operation *op) const {
  return lookup(op) + (cast<AmpOpInterface>(op).getAmpClass() == AmpClass::Norm ? ".y" : "");
}

} // namespace mpc
