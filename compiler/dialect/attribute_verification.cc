// The verifiers of the dialect's attributes on operations.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

namespace {

/// A discardable attribute that mpc_base.td declares, and what it may be.
struct Declared {
  StringRef name;
  bool (*standsOn)(Operation *);
  StringRef places; ///< for messages
  bool (*accepts)(Attribute);
  StringRef accepted; ///< for messages
};

} // namespace

static bool isAnything(Operation *) { return true; }
template <typename... Kinds> static bool isA(Operation *op) { return isa<Kinds...>(op); }

static bool isCollective(Operation *op) { return has<Property::Collective>(op); }

template <typename Kind> static bool is(Attribute given) { return isa<Kind>(given); }

static bool isI64(Attribute given) {
  auto number = dyn_cast<IntegerAttr>(given);
  return number && number.getType().isSignlessInteger(64);
}

static bool isPair(Attribute given) {
  auto numbers = dyn_cast<DenseI64ArrayAttr>(given);
  return numbers && numbers.size() == 2;
}

static bool isNames(Attribute given) {
  auto names = dyn_cast<ArrayAttr>(given);
  return names && llvm::all_of(names, is<StringAttr>);
}

template <bool (*IsEntry)(Attribute)> static bool isDictionaryOf(Attribute given) {
  auto entries = dyn_cast<DictionaryAttr>(given);
  return entries && llvm::all_of(entries, [](NamedAttribute entry) { return IsEntry(entry.getValue()); });
}

static bool isNumberOrNames(Attribute given) { return isI64(given) || isNames(given); }

static ArrayRef<Declared> declaredAttributes() {
  constexpr auto *onFunction = isA<FunctionOpInterface>;
  static const Declared all[] = {
      {MpcDialect::StepAttrHelper::getNameStr(), isA<func::FuncOp>, "functions", is<UnitAttr>, "a unit attribute"},
      {MpcDialect::SequenceAttrHelper::getNameStr(), isA<func::FuncOp>, "functions", is<UnitAttr>, "a unit attribute"},
      {MpcDialect::ScopeAttrHelper::getNameStr(), isAnything, "", is<ScopeAttr>, "a #mpc.scope"},
      {MpcDialect::PrecisionAttrHelper::getNameStr(), isAnything, "", is<PrecisionAttr>, "a #mpc.precision"},
      {MpcDialect::BackwardAttrHelper::getNameStr(), isAnything, "", is<UnitAttr>, "a unit attribute"},
      {MpcDialect::DifferentiatedAttrHelper::getNameStr(), isAnything, "", is<UnitAttr>, "a unit attribute"},
      {MpcDialect::RecomputeAttrHelper::getNameStr(), isAnything, "", isI64, "an i64"},
      {MpcDialect::RecomputedAttrHelper::getNameStr(), isAnything, "", is<UnitAttr>, "a unit attribute"},
      {MpcDialect::RecomputeCandidatesAttrHelper::getNameStr(), onFunction, "functions", isPair, "an array of two i64"},
      {MpcDialect::HeadChunksAttrHelper::getNameStr(), onFunction, "functions", isPair, "an array of two i64"},
      {MpcDialect::PaddedAttrHelper::getNameStr(), isA<MatmulOp, ReduceSumOp>, "products and sums", isPair,
       "an array of two i64"},
      {MpcDialect::ChainAttrHelper::getNameStr(), isAnything, "", is<UnitAttr>, "a unit attribute"},
      {MpcDialect::FlatGroupAttrHelper::getNameStr(), isA<OptimizerOpInterface>, "optimizers", isI64, "an i64"},
      {MpcDialect::BucketAttrHelper::getNameStr(), isCollective, "collectives", isI64, "an i64"},
      {MpcDialect::FusionChoiceAttrHelper::getNameStr(), isA<FusionOp>, "regions", isDictionaryOf<isNumberOrNames>,
       "a dictionary of i64 and arrays of strings"},
      {MpcDialect::GradientsAttrHelper::getNameStr(), onFunction, "functions", isDictionaryOf<isNames>,
       "a dictionary of arrays of strings"},
      {MpcDialect::AssignmentAttrHelper::getNameStr(), isA<ModuleOp>, "modules", isDictionaryOf<is<StringAttr>>,
       "a dictionary of strings"},
      {MpcDialect::ProcessesAttrHelper::getNameStr(), onFunction, "functions", isI64, "an i64"},
      {MpcDialect::TargetAttrHelper::getNameStr(), isA<ModuleOp>, "modules", is<TargetAttr>, "a #mpc.target"},
  };
  return all;
}

LogicalResult MpcDialect::verifyOperationAttribute(Operation *op, NamedAttribute attribute) {
  StringRef name = attribute.getName().getValue();
  const Declared *known = llvm::find_if(declaredAttributes(), [&](const Declared &one) { return one.name == name; });
  if (known == declaredAttributes().end()) {
    std::string names;
    for (const Declared &one : declaredAttributes())
      names += (names.empty() ? "" : ", ") + one.name.str();
    return op->emitOpError() << "attribute '" << name << "' is unknown; operations may have " << names;
  }
  if (!known->standsOn(op))
    return op->emitOpError() << "attribute '" << name << "' stands on " << known->places << " alone";
  if (!known->accepts(attribute.getValue()))
    return op->emitOpError() << "attribute '" << name << "' must be " << known->accepted << ", got "
                             << attribute.getValue();
  if (name == SequenceAttrHelper::getNameStr())
    return verifySequence(op);
  return name == StepAttrHelper::getNameStr() ? verifyStep(op) : success();
}

LogicalResult ScopeAttr::verify(llvm::function_ref<InFlightDiagnostic()> emitError, StringRef path, bool network,
                                Type pin, StringRef level, Type low) {
  if (pin && !pin.isF32() && !isLow(pin))
    return emitError() << "scope '" << path << "' pins " << pin << "; choose f32, f16 or bf16";
  if (!llvm::is_contained({"", "O0", "O1", "O2", "O3", "auto"}, level))
    return emitError() << "scope '" << path << "' has level '" << level << "'; choose O0, O1, O2, O3 or auto";
  if (low && !isLow(low))
    return emitError() << "scope '" << path << "' has low type " << low << "; choose f16 or bf16";
  return success();
}

} // namespace mpc
