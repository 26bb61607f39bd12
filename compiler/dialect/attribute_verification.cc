// The verifiers of the dialect's attributes on operations.
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/step_signature.h"
#include "compiler/dialect/tensor_values.h"

using namespace mlir;

namespace mpc {

namespace {

/// A discardable attribute that mpc_base.td declares, and what it may be.
struct Declared {
  StringRef Name;
  bool (*StandsOn)(Operation *);
  StringRef Places; ///< for messages
  bool (*Accepts)(Attribute);
  StringRef Accepted; ///< for messages
};

} // namespace

static bool isAnything(Operation *) { return true; }
template <typename Kind> static bool isA(Operation *Op) { return isa<Kind>(Op); }

template <typename Kind> static bool is(Attribute Given) { return isa<Kind>(Given); }

static bool isI64(Attribute Given) {
  auto Number = dyn_cast<IntegerAttr>(Given);
  return Number && Number.getType().isSignlessInteger(64);
}

static bool isPair(Attribute Given) {
  auto Numbers = dyn_cast<DenseI64ArrayAttr>(Given);
  return Numbers && Numbers.size() == 2;
}

static bool isNames(Attribute Given) {
  auto Names = dyn_cast<ArrayAttr>(Given);
  return Names && llvm::all_of(Names, is<StringAttr>);
}

template <bool (*IsEntry)(Attribute)> static bool isDictionaryOf(Attribute Given) {
  auto Entries = dyn_cast<DictionaryAttr>(Given);
  return Entries && llvm::all_of(Entries, [](NamedAttribute Entry) { return IsEntry(Entry.getValue()); });
}

static bool isNumberOrNames(Attribute Given) { return isI64(Given) || isNames(Given); }

static ArrayRef<Declared> declaredAttributes() {
  constexpr auto *OnFunction = isA<FunctionOpInterface>;
  static const Declared All[] = {
      {MpcDialect::StepAttrHelper::getNameStr(), isA<func::FuncOp>, "functions", is<UnitAttr>, "a unit attribute"},
      {MpcDialect::SequenceAttrHelper::getNameStr(), isA<func::FuncOp>, "functions", is<UnitAttr>, "a unit attribute"},
      {MpcDialect::ScopeAttrHelper::getNameStr(), isAnything, "", is<ScopeAttr>, "a #mpc.scope"},
      {MpcDialect::PrecisionAttrHelper::getNameStr(), isAnything, "", is<PrecisionAttr>, "a #mpc.precision"},
      {MpcDialect::BackwardAttrHelper::getNameStr(), isAnything, "", is<UnitAttr>, "a unit attribute"},
      {MpcDialect::RecomputeAttrHelper::getNameStr(), isAnything, "", isI64, "an i64"},
      {MpcDialect::RecomputedAttrHelper::getNameStr(), isAnything, "", is<UnitAttr>, "a unit attribute"},
      {MpcDialect::RecomputeCandidatesAttrHelper::getNameStr(), OnFunction, "functions", isPair, "an array of two i64"},
      {MpcDialect::HeadChunksAttrHelper::getNameStr(), OnFunction, "functions", isPair, "an array of two i64"},
      {MpcDialect::ChainAttrHelper::getNameStr(), isAnything, "", is<UnitAttr>, "a unit attribute"},
      {MpcDialect::FlatGroupAttrHelper::getNameStr(), isA<OptimizerOpInterface>, "optimizers", isI64, "an i64"},
      {MpcDialect::FusionChoiceAttrHelper::getNameStr(), isA<FusionOp>, "regions", isDictionaryOf<isNumberOrNames>,
       "a dictionary of i64 and arrays of strings"},
      {MpcDialect::GradientsAttrHelper::getNameStr(), OnFunction, "functions", isDictionaryOf<isNames>,
       "a dictionary of arrays of strings"},
      {MpcDialect::AssignmentAttrHelper::getNameStr(), isA<ModuleOp>, "modules", isDictionaryOf<is<StringAttr>>,
       "a dictionary of strings"},
      {MpcDialect::TargetAttrHelper::getNameStr(), isA<ModuleOp>, "modules", is<TargetAttr>, "a #mpc.target"},
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
  if (!Known->StandsOn(Op))
    return Op->emitOpError() << "attribute '" << Name << "' stands on " << Known->Places << " alone";
  if (!Known->Accepts(Attribute.getValue()))
    return Op->emitOpError() << "attribute '" << Name << "' must be " << Known->Accepted << ", got "
                             << Attribute.getValue();
  if (Name == SequenceAttrHelper::getNameStr())
    return verifySequence(Op);
  return Name == StepAttrHelper::getNameStr() ? verifyStep(Op) : success();
}

LogicalResult ScopeAttr::verify(llvm::function_ref<InFlightDiagnostic()> EmitError, StringRef Path, bool Network,
                                Type Pin, StringRef Level, Type Low) {
  if (Pin && !Pin.isF32() && !isLow(Pin))
    return EmitError() << "scope '" << Path << "' pins " << Pin << "; choose f32, f16 or bf16";
  if (!llvm::is_contained({"", "O0", "O1", "O2", "O3", "auto"}, Level))
    return EmitError() << "scope '" << Path << "' has level '" << Level << "'; choose O0, O1, O2, O3 or auto";
  if (Low && !isLow(Low))
    return EmitError() << "scope '" << Path << "' has low type " << Low << "; choose f16 or bf16";
  return success();
}

} // namespace mpc
