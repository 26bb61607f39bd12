#include "compiler/precision_table.h"

#include "compiler/dialect/dialect.h"
#include "compiler/module_impl.h"
#include "llvm/ADT/StringExtras.h"

#include <algorithm>
#include <tuple>

using namespace mlir;

namespace mpc::compiler {

namespace {

std::string typeName(Type Type) {
  std::string Text;
  llvm::raw_string_ostream(Text) << Type;
  return Text;
}

bool isFloating(Type Type) { return isa<FloatType>(getElementTypeOrSelf(Type)); }

std::int64_t byteSize(Type Type) {
  auto Tensor = dyn_cast<RankedTensorType>(Type);
  if (!Tensor || !Tensor.hasStaticShape() || !Tensor.getElementType().isIntOrFloat())
    return 0;
  return Tensor.getNumElements() * ((Tensor.getElementTypeBitWidth() + 7) / 8);
}

// "f16 f32": each floating type once, in the order of its first value.
std::string floatingTypes(TypeRange Types) {
  SmallVector<std::string> Names;
  for (Type Type : Types)
    if (std::string Name = typeName(getElementTypeOrSelf(Type)); isFloating(Type) && !llvm::is_contained(Names, Name))
      Names.push_back(Name);
  return llvm::join(Names, " ");
}

std::string pathOf(Operation *Op) {
  auto Scope = Op->getAttrOfType<ScopeAttr>(ScopeAttrName);
  return Scope ? Scope.getPath().str() : "";
}

// Walks one function in program order and remembers which values belong to the backward graph.
class Tabulation {
public:
  explicit Tabulation(func::FuncOp Function) : Function(Function) { Table.function = Function.getSymName().str(); }

  PrecisionTable run() {
    addArguments();
    // Other blocks are unreachable: nothing branches. There, definitions may form cycles.
    for (Operation &Op : Function.getBody().front())
      Op.walk<WalkOrder::PreOrder>([&](Operation *Nested) { visit(Nested); });
    llvm::stable_sort(Table.casts, [](const CastGroup &A, const CastGroup &B) {
      return std::tie(A.kind, A.from, A.to) < std::tie(B.kind, B.from, B.to);
    });
    return std::move(Table);
  }

private:
  void addArguments() {
    for (BlockArgument Argument : Function.getArguments()) {
      std::string Role = argumentAttr(Argument, RoleAttrName);
      ArgumentGroup &Group = argumentGroup(Role.empty() ? "input" : Role);
      auto Tensor = dyn_cast<RankedTensorType>(Argument.getType());
      ++Group.count;
      Group.elements += Tensor && Tensor.hasStaticShape() ? Tensor.getNumElements() : 0;
      Group.bytes += byteSize(Argument.getType());
    }
  }

  ArgumentGroup &argumentGroup(const std::string &Role) {
    for (ArgumentGroup &Group : Table.arguments)
      if (Group.role == Role)
        return Group;
    Table.arguments.push_back({Role, 0, 0, 0});
    return Table.arguments.back();
  }

  std::string argumentAttr(BlockArgument Argument, StringRef Name) {
    if (Argument.getOwner() != &Function.getBody().front())
      return "";
    auto Attr = Function.getArgAttrOfType<StringAttr>(Argument.getArgNumber(), Name);
    return Attr ? Attr.getValue().str() : "";
  }

  void visit(Operation *Op) {
    bool Backward =
        isGradientOp(Op) || llvm::any_of(Op->getOperands(), [&](Value V) { return Cotangents.contains(V); });
    if (Backward && !Op->hasTrait<StateUpdate>())
      Cotangents.insert(Op->result_begin(), Op->result_end());
    if (auto Cast = dyn_cast<CastOp>(Op))
      return addCast(Cast);
    bool Computes = isa<AmpOpInterface>(Op) && !isa<ConstantOp, ReshapeOp, TransposeOp, BroadcastToOp>(Op);
    bool ReadsOrWrites =
        llvm::any_of(Op->getOperandTypes(), isFloating) || llvm::any_of(Op->getResultTypes(), isFloating);
    if (Computes && ReadsOrWrites)
      Table.rows.push_back({Op->getName().stripDialect().str(), pathOf(Op), floatingTypes(Op->getOperandTypes()),
                            floatingTypes(Op->getResultTypes()), computeType(Op), reason(Op, Backward)});
  }

  // Only autodiff writes these, and their results are cotangents.
  static bool isGradientOp(Operation *Op) {
    return Op->getName().getStringRef().starts_with("mpc.") && Op->getName().getStringRef().contains("_grad") &&
           !isa<ValueAndGradOp>(Op);
  }

  static std::string computeType(Operation *Op) {
    bool Double = llvm::any_of(Op->getOperandTypes(), [](Type T) { return getElementTypeOrSelf(T).isF64(); });
    return Double ? "f64" : "f32";
  }

  static std::string reason(Operation *Op, bool Backward) {
    if (auto Reason = Op->getAttrOfType<StringAttr>(AmpReasonAttrName))
      return Reason.getValue().str();
    if (Op->hasTrait<StateUpdate>() || isa<UnscaleOp, AllFiniteOp, UpdateLossScaleOp>(Op))
      return "update";
    return Backward ? "backward" : "";
  }

  void addCast(CastOp Cast) {
    Value Source = sourceOf(Cast.getX());
    CastGroup &Group = castGroup(kindOf(Cast, Source), typeName(getElementTypeOrSelf(Cast.getX().getType())),
                                 typeName(getElementTypeOrSelf(Cast.getY().getType())));
    ++Group.count;
    Group.bytes += byteSize(Cast.getX().getType()) + byteSize(Cast.getY().getType());
    Group.where.push_back(describe(Source));
  }

  CastGroup &castGroup(CastKind Kind, const std::string &From, const std::string &To) {
    for (CastGroup &Group : Table.casts)
      if (Group.kind == Kind && Group.from == From && Group.to == To)
        return Group;
    Table.casts.push_back({Kind, From, To, 0, 0, {}});
    return Table.casts.back();
  }

  // What data movement moves.
  static Value sourceOf(Value V) {
    while (isa_and_nonnull<ReshapeOp, TransposeOp, BroadcastToOp>(V.getDefiningOp()))
      V = V.getDefiningOp()->getOperand(0);
    return V;
  }

  CastKind kindOf(CastOp Cast, Value Source) {
    Type From = getElementTypeOrSelf(Cast.getX().getType()), To = getElementTypeOrSelf(Cast.getY().getType());
    if (Cast.getUser())
      return CastKind::kUser;
    if (!isa<FloatType>(From) || !isa<FloatType>(To))
      return CastKind::kOther;
    if (From.getIntOrFloatBitWidth() < To.getIntOrFloatBitWidth())
      return CastKind::kWidening;
    if (Cotangents.contains(Source))
      return CastKind::kGradient;
    auto Argument = dyn_cast<BlockArgument>(Source);
    if (!Argument)
      return CastKind::kActivation;
    std::string Role = argumentAttr(Argument, RoleAttrName);
    return Role.empty() || Role == "input" ? CastKind::kInput : CastKind::kWeight;
  }

  std::string describe(Value Source) {
    if (auto Argument = dyn_cast<BlockArgument>(Source)) {
      std::string Name = argumentAttr(Argument, NameAttrName);
      return Name.empty() ? "argument " + std::to_string(Argument.getArgNumber()) : Name;
    }
    std::string Path = pathOf(Source.getDefiningOp());
    return Source.getDefiningOp()->getName().stripDialect().str() + (Path.empty() ? "" : " in " + Path);
  }

  func::FuncOp Function;
  PrecisionTable Table;
  llvm::DenseSet<Value> Cotangents;
};

} // namespace

const char *CastKindName(CastKind Kind) {
  switch (Kind) {
  case CastKind::kWeight:
    return "weight";
  case CastKind::kInput:
    return "input";
  case CastKind::kActivation:
    return "activation";
  case CastKind::kGradient:
    return "gradient";
  case CastKind::kWidening:
    return "widening";
  case CastKind::kUser:
    return "user";
  case CastKind::kOther:
    return "other";
  }
  return "unknown";
}

absl::StatusOr<PrecisionTable> TabulatePrecision(const Module &Target, const std::string &Name) {
  ModuleOp Root = Target.impl().module.get();
  auto Function = Root.lookupSymbol<func::FuncOp>(Name);
  if (!Function || Function.isExternal())
    return absl::NotFoundError(absl::StrCat("the module has no function @", Name, " with a body"));
  return Tabulation(Function).run();
}

std::vector<std::string> FunctionNames(const Module &Target) {
  ModuleOp Root = Target.impl().module.get();
  std::vector<std::string> Names;
  for (auto Function : Root.getOps<func::FuncOp>())
    if (!Function.isExternal())
      Names.push_back(Function.getSymName().str());
  return Names;
}

} // namespace mpc::compiler
