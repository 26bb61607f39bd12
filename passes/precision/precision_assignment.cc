#include "passes/precision/precision_assignment.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "passes/precision/slot_graph.h"

using namespace mlir;

namespace mpc {

static bool isUserCast(Operation *Op) {
  auto Cast = dyn_cast_or_null<CastOp>(Op);
  return Cast && Cast.getUser();
}

static AmpClass classOf(Operation *Op) { return cast<AmpOpInterface>(Op).getAmpClass(); }

PrecisionAssignment::PrecisionAssignment(ModuleOp Module, const PrecisionOptions &Options)
    : Options(Options), F32(Float32Type::get(Module.getContext())), Regions(Module), Names(Module),
      Stored(readAssignment(Module)) {
  Module.walk([&](Operation *Op) { decide(Op); });
  if (!Open.empty()) {
    takeStored();
    applyInferRule(Decisions, Open);
    llvm::Expected<std::int64_t> Solved = solveByCut(Module, Decisions, Open, Options.Costs);
    if (!Solved) {
      Failure = llvm::toString(Solved.takeError());
      return;
    }
    CutCost = *Solved;
    closeOpen();
  }
  // Users decide whether a norm's y is low, so norms are folded once every other operation is decided. The type that a
  // norm reads depends on nothing: x comes as it is stored.
  for (Operation *Norm : KeptNorms)
    foldNorm(Norm, Decisions[Norm]);
  record();
}

const OpPrecision *PrecisionAssignment::lookup(Operation *Op) const {
  auto It = Decisions.find(Op);
  return It == Decisions.end() ? nullptr : &It->second;
}

PrecisionAssignment::LevelChoice PrecisionAssignment::levelOf(Operation *Op) const {
  ScopeAttr Scope = scopeOf(Op);
  if (!Scope || Scope.getLevel().empty())
    return {Options.Level, Options.Low, Options.KeepNormsF32};
  // The verifier of the scope has accepted the word.
  AmpLevel Level = llvm::cantFail(parseAmpLevel(Scope.getLevel()));
  return {Level, Scope.getLow() ? cast<FloatType>(Scope.getLow()) : Options.Low, Level != AmpLevel::O3};
}

void PrecisionAssignment::remark(Operation *Op, const Twine &Text) {
  ScopeAttr Scope = scopeOf(Op);
  StringRef Path = Scope ? Scope.getPath() : StringRef();
  if (RemarkedPaths.insert(StringAttr::get(Op->getContext(), Path)).second)
    Remarks.push_back({Op, ((Path.empty() ? "" : "'" + Path + "': ") + Text).str()});
}

bool PrecisionAssignment::followsUserWidening(Operation *Op) const {
  return llvm::any_of(Op->getOperands(), [&](Value Operand) {
    Operation *Producer = Operand.getDefiningOp();
    if (!Producer || !isAssignable(Operand))
      return false;
    return FollowsUserCast.contains(Producer) || (isUserCast(Producer) && elementOf(Operand).isF32());
  });
}

// A norm that reads x as it is stored, computes in f32, and writes y as its users take it.
void PrecisionAssignment::keepNorm(Operation *Op, OpPrecision &Precision) {
  assignTypes(Op, F32, Precision);
  Precision.Operands[0] = Type();
  KeptNorms.push_back(Op);
}

void PrecisionAssignment::decide(Operation *Op) {
  auto Amp = dyn_cast<AmpOpInterface>(Op);
  if (!Amp || precisionOf(Op))
    return;
  OpPrecision Precision;
  Precision.Compute = llvm::any_of(Op->getOperands(), [](Value V) { return elementOf(V).isF64(); })
                          ? Type(Float64Type::get(Op->getContext()))
                          : F32;
  if (isUserCast(Op)) {
    Precision.Operands.push_back(Type());
    Precision.Results.push_back(elementOf(Op->getResult(0)));
    Precision.decideBy(PrecisionRule::UserCast);
    Precision.IsUsers = true;
    Decisions[Op] = std::move(Precision);
    return;
  }
  AmpClass Class = Amp.getAmpClass();
  if (Class == AmpClass::Exempt)
    return;
  LevelChoice Choice = levelOf(Op);
  auto PinF32 = [&](PrecisionRule Rule) {
    assignTypes(Op, F32, Precision);
    Precision.decideBy(Rule);
  };
  if (Regions.isDifferentiatedBy(Op)) {
    PinF32(PrecisionRule::DifferentiatedBy);
  } else if (applyPin(Op, Precision)) {
    // Decided by ToFloat.
  } else if (Class == AmpClass::Loss) {
    PinF32(PrecisionRule::Loss);
  } else if (!Regions.isInNetwork(Op)) {
    return;
  } else if (Regions.isLabel(Op)) {
    PinF32(PrecisionRule::Label);
  } else if (Regions.givesDifferentiatedValue(Op)) {
    PinF32(PrecisionRule::DifferentiatedValue);
  } else if (decideByList(Op, Choice, Precision)) {
    // Decided by an entry of the lists.
  } else if (Regions.isDifferentiated(Op)) {
    PinF32(PrecisionRule::DifferentiatedValue);
  } else if (Class != AmpClass::Allow && Choice.Level != AmpLevel::O0 && followsUserWidening(Op)) {
    PinF32(PrecisionRule::UserCast);
    Precision.IsUsers = true;
    FollowsUserCast.insert(Op);
  } else {
    decideByLevel(Op, Choice, Precision);
  }
  // An open operation waits for the cut.
  if (Precision.Rule)
    Decisions[Op] = std::move(Precision);
}

// ToFloat. Returns false where there is none or the operation does not obey it.
bool PrecisionAssignment::applyPin(Operation *Op, OpPrecision &Precision) {
  ScopeAttr Scope = scopeOf(Op);
  Type Pin = Scope ? Scope.getPin() : Type();
  if (!Pin)
    return false;
  AmpClass Class = classOf(Op);
  if (isLow(Pin) && (Class == AmpClass::Loss || Regions.givesDifferentiatedValue(Op))) {
    remark(Op, "ToFloat(" + typeText(Pin) + ") is ignored: a loss is f32 at every level");
    return false;
  }
  assignTypes(Op, Pin, Precision);
  Precision.decideBy(PrecisionRule::ToFloat, typeText(Pin));
  Precision.IsUsers = true;
  LevelChoice Choice = levelOf(Op);
  bool Follows =
      Regions.isInNetwork(Op) && Class != AmpClass::Loss && !Regions.isLabel(Op) && !Regions.isDifferentiated(Op);
  Type OfLevel = F32;
  if (Follows && isSolved(Choice.Level))
    OfLevel = Class == AmpClass::Allow ? Choice.Low : Class == AmpClass::Deny || Class == AmpClass::Norm ? F32 : Pin;
  else if (Follows && Choice.Level != AmpLevel::O0 && !(Class == AmpClass::Norm && Choice.KeepNormsF32))
    OfLevel = Choice.Low;
  if (OfLevel != Pin)
    remark(Op,
           "ToFloat(" + typeText(Pin) + ") beats level " + ampLevelName(Choice.Level) + " (" + typeText(OfLevel) + ")");
  return true;
}

// O0 takes no lists; O2 and O3 pin every operation, so that only Allow and Deny change something there.
bool PrecisionAssignment::decideByList(Operation *Op, const LevelChoice &Choice, OpPrecision &Precision) {
  std::optional<PrecisionLists::Match> Entry = Options.Lists.lookup(Op);
  if (!Entry || Choice.Level == AmpLevel::O0)
    return false;
  switch (Entry->Class) {
  case AmpClass::Allow:
    assignTypes(Op, Choice.Low, Precision);
    break;
  case AmpClass::Deny:
    if (classOf(Op) == AmpClass::Norm)
      keepNorm(Op, Precision);
    else
      assignTypes(Op, F32, Precision);
    break;
  default:
    if (!isSolved(Choice.Level))
      return false;
    decideByClass(Op, Choice, Entry->Class, "list entry " + Entry->text(), Precision);
    return true;
  }
  Precision.decideBy(PrecisionRule::ListEntry, Entry->text());
  Precision.IsUsers = true;
  return true;
}

void PrecisionAssignment::decideByLevel(Operation *Op, const LevelChoice &Choice, OpPrecision &Precision) {
  AmpClass Class = classOf(Op);
  if (isSolved(Choice.Level))
    return decideByClass(Op, Choice, Class, "", Precision);
  if (Choice.Level == AmpLevel::O0) {
    // The types that tracing gave: f32, or low where a user's cast made every operand low.
    llvm::append_range(Precision.Operands, llvm::map_range(Op->getOperands(), elementOf));
    llvm::append_range(Precision.Results, llvm::map_range(Op->getResults(), elementOf));
    Precision.decideBy(PrecisionRule::Level, ampLevelName(Choice.Level).str());
  } else if (Class == AmpClass::Norm && Choice.KeepNormsF32) {
    keepNorm(Op, Precision);
    Precision.decideBy(PrecisionRule::NormKeptF32);
  } else {
    assignTypes(Op, Choice.Low, Precision);
    Precision.decideBy(PrecisionRule::Level, ampLevelName(Choice.Level).str());
  }
}

// O1 and auto. Leaves the rule empty where the operation stays open. \p Entry is that of the user's lists, if any.
void PrecisionAssignment::decideByClass(Operation *Op, const LevelChoice &Choice, AmpClass Class, std::string Entry,
                                        OpPrecision &Precision) {
  auto DecideByClass = [&] {
    Precision.decideBy(PrecisionRule::Class, ampClassName(Class) + (Entry.empty() ? "" : ", " + Entry));
    Precision.IsUsers = !Entry.empty();
  };
  if (!hasSlot(Op)) {
    assignTypes(Op, F32, Precision);
    DecideByClass();
  } else if (Class == AmpClass::Allow && Choice.Level == AmpLevel::O1) {
    assignTypes(Op, Choice.Low, Precision);
    DecideByClass();
  } else if (Class == AmpClass::Norm && !has<Property::BatchNorm>(Op)) {
    keepNorm(Op, Precision);
    DecideByClass();
  } else if (Class == AmpClass::Deny) {
    assignTypes(Op, F32, Precision);
    DecideByClass();
  } else {
    // x and y of a batch norm are those of an Infer operation; its parameters stay f32.
    if (Class == AmpClass::Norm)
      Class = AmpClass::Infer;
    Open[Op] = {Class, Choice.Level, Choice.Low, std::move(Entry)};
  }
}

void PrecisionAssignment::takeStored() {
  for (auto &[Op, Slot] : Open) {
    std::string Name = Names.lookup(Op) + (classOf(Op) == AmpClass::Norm ? ".y" : "");
    auto Known = Stored.find(Name);
    if (Known == Stored.end())
      continue;
    Slot.decideBy(PrecisionRule::StoredAssignment, Known->second != "f32");
  }
}

// Turns what the infer rule and the cut chose into types.
void PrecisionAssignment::closeOpen() {
  for (auto &[Op, Slot] : Open) {
    OpPrecision &Precision = Decisions[Op];
    Precision.Compute = F32;
    Precision.decideBy(Slot.Rule, Slot.Entry);
    Precision.IsUsers = !Slot.Entry.empty();
    assignTypes(Op, *Slot.IsLow ? Type(Slot.Low) : F32, Precision);
    if (classOf(Op) == AmpClass::Norm)
      Precision.Operands[0] = Type();
    // The graph that decided a stored assignment has made its remarks already.
    if (Slot.Class != AmpClass::Allow || *Slot.IsLow || Slot.Rule == PrecisionRule::StoredAssignment)
      continue;
    double Saved = Options.Costs.secondsSavedByLow(Op) * 1e6;
    std::string Text;
    llvm::raw_string_ostream(Text) << llvm::format("%.3g us", std::abs(Saved));
    remark(Op, Saved > 0 ? Op->getName().stripDialect() + " stays f32: " + typeText(Slot.Low) + " would save " + Text +
                               ", less than its casts cost"
                         : Op->getName().stripDialect() + " stays f32: it takes " + Text + " longer in " +
                               typeText(Slot.Low) + " on this device");
  }
  Open.clear();
}

// The type that a value has after the pass.
Type PrecisionAssignment::storedType(Value V) const {
  const OpPrecision *Producer = V.getDefiningOp() ? lookup(V.getDefiningOp()) : nullptr;
  return Producer ? Producer->Results[cast<OpResult>(V).getResultNumber()] : elementOf(V);
}

// Whether the user takes the value low without a loss of its own: low users, and users that take what is stored.
bool PrecisionAssignment::readsLow(OpOperand &Use, Type Low) const {
  const OpPrecision *User = lookup(Use.getOwner());
  if (!User)
    return false;
  if (auto Cast = dyn_cast<CastOp>(Use.getOwner()))
    return elementOf(Cast.getY()) == Low;
  Type Wanted = User->Operands[Use.getOperandNumber()];
  return !Wanted || Wanted == Low;
}

void PrecisionAssignment::foldNorm(Operation *Op, OpPrecision &Precision) {
  Value Y = Op->getResult(0);
  Type Low = levelOf(Op).Low;
  if (!Y.use_empty() && llvm::all_of(Y.getUses(), [&](OpOperand &Use) { return readsLow(Use, Low); }))
    Precision.Results[0] = Low;
  if (isLow(storedType(Op->getOperand(0))) || isLow(Precision.Results[0]))
    Precision.IsFolded = true;
}

void PrecisionAssignment::record() {
  for (const auto &[Op, Precision] : Decisions) {
    std::string Name = Names.lookup(Op);
    if (Name.empty() || !Regions.isInNetwork(Op) || !isSolved(levelOf(Op).Level) || !hasSlot(Op))
      continue;
    if (classOf(Op) == AmpClass::Norm) {
      Stored[Name + ".x"] = typeText(storedType(Op->getOperand(0)));
      Stored[Name + ".y"] = typeText(Precision.Results[0]);
      continue;
    }
    ArrayRef<unsigned> StayF32 = cast<AmpOpInterface>(Op).getF32Results();
    for (OpResult Result : Op->getResults())
      if (isAssignable(Result) && !llvm::is_contained(StayF32, Result.getResultNumber())) {
        Stored[Name] = typeText(Precision.Results[Result.getResultNumber()]);
        break;
      }
  }
}

} // namespace mpc
