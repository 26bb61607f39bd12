#include "passes/precision/stored_assignment.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "llvm/ADT/StringMap.h"

using namespace mlir;

namespace mpc {

StoredAssignment readAssignment(ModuleOp Module) {
  StoredAssignment Assignment;
  if (DictionaryAttr Stored = dialectOf(Module).getAssignmentAttrHelper().getAttr(Module))
    for (NamedAttribute Entry : Stored)
      if (auto Type = dyn_cast<StringAttr>(Entry.getValue()))
        Assignment[Entry.getName().str()] = Type.getValue().str();
  return Assignment;
}

void writeAssignment(ModuleOp Module, const StoredAssignment &Assignment) {
  Builder B(Module.getContext());
  SmallVector<NamedAttribute> Entries;
  for (const auto &[Name, Type] : Assignment)
    Entries.push_back(B.getNamedAttr(Name, B.getStringAttr(Type)));
  dialectOf(Module).getAssignmentAttrHelper().setAttr(Module, B.getDictionaryAttr(Entries));
}

// The name that training and inference share.
static StringRef familyName(Operation *Op) {
  return has<Property::BatchNorm>(Op) ? "batch_norm" : Op->getName().stripDialect();
}

SlotNames::SlotNames(ModuleOp Module) {
  llvm::StringMap<unsigned> Counts;
  Module.walk<WalkOrder::PreOrder>([&](AmpOpInterface Op) {
    if (Op.getAmpClass() == AmpClass::Exempt)
      return;
    std::string Kind = (pathOf(Op) + "#" + familyName(Op)).str();
    Names[Op] = Kind + "." + std::to_string(Counts[Kind]++);
  });
}

std::string SlotNames::lookup(Operation *Op) const { return Names.lookup(Op); }

} // namespace mpc
