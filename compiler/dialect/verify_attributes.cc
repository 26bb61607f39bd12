// The verifier of the dialect's discardable attributes on operations.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/step_signature.h"

using namespace mlir;

namespace mpc {

namespace {

/// A discardable attribute that mpc_base.td declares, and what it may be.
struct Declared {
  StringRef Name;
  bool (*Accepts)(Attribute);
  StringRef Accepted; ///< for messages
};

} // namespace

template <typename Kind> static bool is(Attribute Given) { return isa<Kind>(Given); }

static bool isPair(Attribute Given) {
  auto Numbers = dyn_cast<DenseI64ArrayAttr>(Given);
  return Numbers && Numbers.size() == 2;
}

static bool isNames(Attribute Given) {
  auto Names = dyn_cast<ArrayAttr>(Given);
  return Names && llvm::all_of(Names, is<StringAttr>);
}

static bool isDictionaryOfNames(Attribute Given) {
  auto Records = dyn_cast<DictionaryAttr>(Given);
  return Records && llvm::all_of(Records, [](NamedAttribute Record) { return isNames(Record.getValue()); });
}

static ArrayRef<Declared> declaredAttributes() {
  static const Declared All[] = {
      {MpcDialect::StepAttrHelper::getNameStr(), is<UnitAttr>, "a unit attribute"},
      {MpcDialect::ScopeAttrHelper::getNameStr(), is<ScopeAttr>, "a #mpc.scope"},
      {MpcDialect::PrecisionAttrHelper::getNameStr(), is<PrecisionAttr>, "a #mpc.precision"},
      {MpcDialect::BackwardAttrHelper::getNameStr(), is<UnitAttr>, "a unit attribute"},
      {MpcDialect::RecomputeAttrHelper::getNameStr(), is<IntegerAttr>, "an integer"},
      {MpcDialect::RecomputedAttrHelper::getNameStr(), is<UnitAttr>, "a unit attribute"},
      {MpcDialect::RecomputeCandidatesAttrHelper::getNameStr(), isPair, "an array of two i64"},
      {MpcDialect::HeadChunksAttrHelper::getNameStr(), isPair, "an array of two i64"},
      {MpcDialect::ChainAttrHelper::getNameStr(), is<UnitAttr>, "a unit attribute"},
      {MpcDialect::FusionChoiceAttrHelper::getNameStr(), is<DictionaryAttr>, "a dictionary"},
      {MpcDialect::GradientsAttrHelper::getNameStr(), isDictionaryOfNames, "a dictionary of arrays of strings"},
      {MpcDialect::AssignmentAttrHelper::getNameStr(), is<DictionaryAttr>, "a dictionary"},
  };
  return All;
}

LogicalResult MpcDialect::verifyOperationAttribute(Operation *Op, NamedAttribute Attribute) {
  StringRef Name = Attribute.getName().getValue();
  const Declared *Known = llvm::find_if(declaredAttributes(), [&](const Declared &One) { return One.Name == Name; });
  if (Known == declaredAttributes().end()) {
    std::string Names;
    for (const Declared &One : declaredAttributes())
      Names += (Names.empty() ? "" : ", ") + One.Name.str();
    return Op->emitOpError() << "attribute '" << Name << "' is unknown; operations may have " << Names;
  }
  if (!Known->Accepts(Attribute.getValue()))
    return Op->emitOpError() << "attribute '" << Name << "' must be " << Known->Accepted << ", got "
                             << Attribute.getValue();
  return Name == StepAttrHelper::getNameStr() ? verifyStep(Op) : success();
}

} // namespace mpc
