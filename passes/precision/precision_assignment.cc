#include "passes/precision/precision_assignment.h"

#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "passes/precision/lost_numbers.h"
#include "passes/precision/precision_graph.h"

using namespace mlir;

namespace mpc {

static bool isUserCast(Operation *op) {
  auto cast = dyn_cast_or_null<CastOp>(op);
  return cast && cast.getUser();
}

static AmpClass classOf(Operation *op) { return cast<AmpOpInterface>(op).getAmpClass(); }

// Whether an earlier run has decided a function that was differentiated behind it. What has no decision there updates
// state, or is what later passes made of decided operations.
static bool isDifferentiatedAndDecided(Operation *function) {
  bool hasBackward = false, hasDecided = false;
  function->walk([&](Operation *op) {
    hasBackward |= isMarkedBackward(op);
    hasDecided |= bool(precisionOf(op));
  });
  return hasBackward && hasDecided;
}

PrecisionAssignment::PrecisionAssignment(ModuleOp module, const PrecisionOptions &options, const FrontierErrors *errors)
    : options(options), f32(Float32Type::get(module.getContext())), regions(module), names(module),
      stored(readAssignment(module)) {
  for (Operation &op : *module.getBody())
    if (!isDifferentiatedAndDecided(&op))
      op.walk([&](Operation *nested) { decide(nested); });
  if (!open.empty()) {
    takeStored();
    applyInferRule(decisions, open);
    if (errors) {
      llvm::Expected<AssignmentFrontier> found = findFrontier(module, decisions, open, options.costs, names, *errors);
      if (!found) {
        failure = llvm::toString(found.takeError());
        return;
      }
      frontier = std::move(*found);
    }
    llvm::Expected<std::int64_t> solved = solveByCut(module, decisions, open, options.costs);
    if (!solved) {
      failure = llvm::toString(solved.takeError());
      return;
    }
    cutCost = *solved;
    closeOpen();
  }
  // Users decide whether a norm's y is low, so norms are folded once every other operation is decided. The type that a
  // norm reads depends on nothing: x comes as it is stored.
  for (Operation *norm : keptNorms)
    foldNorm(norm, decisions[norm]);
  record();
}

const OpPrecision *PrecisionAssignment::lookup(Operation *op) const {
  auto it = decisions.find(op);
  return it == decisions.end() ? nullptr : &it->second;
}

PrecisionAssignment::LevelChoice PrecisionAssignment::levelOf(Operation *op) const {
  ScopeAttr scope = scopeOf(op);
  if (!scope || scope.getLevel().empty())
    return {options.level, options.low, options.keepNormsF32};
  // The verifier of the scope has accepted the word.
  AmpLevel level = llvm::cantFail(parseAmpLevel(scope.getLevel()));
  return {level, scope.getLow() ? cast<FloatType>(scope.getLow()) : options.low, level != AmpLevel::O3};
}

void PrecisionAssignment::remark(Operation *op, const Twine &text) {
  ScopeAttr scope = scopeOf(op);
  StringRef path = scope ? scope.getPath() : StringRef();
  if (remarkedPaths.insert(StringAttr::get(op->getContext(), path)).second)
    remarks.push_back({op, ((path.empty() ? "" : "'" + path + "': ") + text).str()});
}

bool PrecisionAssignment::followsUserWidening(Operation *op) const {
  return llvm::any_of(op->getOperands(), [&](Value operand) {
    Operation *producer = operand.getDefiningOp();
    if (!producer || !isAssignable(operand))
      return false;
    return followsUserCast.contains(producer) || (isUserCast(producer) && elementOf(operand).isF32());
  });
}

// A norm that reads x as it is stored, computes in f32, and writes y as its users take it.
void PrecisionAssignment::keepNorm(Operation *op, OpPrecision &precision) {
  assignTypes(op, f32, precision);
  precision.operands[0] = Type();
  keptNorms.push_back(op);
}

void PrecisionAssignment::decide(Operation *op) {
  auto amp = dyn_cast<AmpOpInterface>(op);
  // A gradient has the types of what it is the gradient of.
  if (!amp || precisionOf(op) || isMarkedBackward(op))
    return;
  OpPrecision precision;
  precision.compute = llvm::any_of(op->getOperands(), [](Value v) { return elementOf(v).isF64(); })
                          ? Type(Float64Type::get(op->getContext()))
                          : f32;
  if (isUserCast(op)) {
    precision.operands.push_back(Type());
    precision.results.push_back(elementOf(op->getResult(0)));
    precision.decideBy(PrecisionRule::UserCast);
    precision.isUsers = true;
    decisions[op] = std::move(precision);
    return;
  }
  AmpClass ampClass = amp.getAmpClass();
  if (ampClass == AmpClass::Exempt)
    return;
  LevelChoice choice = levelOf(op);
  auto pinF32 = [&](PrecisionRule rule) {
    assignTypes(op, f32, precision);
    precision.decideBy(rule);
  };
  if (regions.isDifferentiatedBy(op)) {
    pinF32(PrecisionRule::DifferentiatedBy);
  } else if (applyPin(op, precision)) {
    // Decided by ToFloat.
  } else if (ampClass == AmpClass::Loss) {
    pinF32(PrecisionRule::Loss);
  } else if (!regions.isInNetwork(op)) {
    return;
  } else if (regions.isLabel(op)) {
    pinF32(PrecisionRule::Label);
  } else if (regions.givesDifferentiatedValue(op)) {
    pinF32(PrecisionRule::DifferentiatedValue);
  } else if (decideByList(op, choice, precision)) {
    // Decided by an entry of the lists.
  } else if (regions.isDifferentiated(op)) {
    pinF32(PrecisionRule::DifferentiatedValue);
  } else if (ampClass != AmpClass::Allow && choice.level != AmpLevel::O0 && followsUserWidening(op)) {
    pinF32(PrecisionRule::UserCast);
    precision.isUsers = true;
    followsUserCast.insert(op);
  } else {
    decideByLevel(op, choice, precision);
  }
  // An open operation waits for the cut.
  if (precision.rule)
    decisions[op] = std::move(precision);
}

// ToFloat. Returns false where there is none or the operation does not obey it.
bool PrecisionAssignment::applyPin(Operation *op, OpPrecision &precision) {
  ScopeAttr scope = scopeOf(op);
  Type pin = scope ? scope.getPin() : Type();
  if (!pin)
    return false;
  AmpClass ampClass = classOf(op);
  if (isLow(pin) && (ampClass == AmpClass::Loss || regions.givesDifferentiatedValue(op))) {
    remark(op, "ToFloat(" + typeText(pin) + ") is ignored: a loss is f32 at every level");
    return false;
  }
  assignTypes(op, pin, precision);
  precision.decideBy(PrecisionRule::ToFloat, typeText(pin));
  precision.isUsers = true;
  LevelChoice choice = levelOf(op);
  bool follows =
      regions.isInNetwork(op) && ampClass != AmpClass::Loss && !regions.isLabel(op) && !regions.isDifferentiated(op);
  Type ofLevel = f32;
  if (follows && isSolved(choice.level))
    ofLevel = ampClass == AmpClass::Allow                                ? choice.low
              : ampClass == AmpClass::Deny || ampClass == AmpClass::Norm ? f32
                                                                         : pin;
  else if (follows && choice.level != AmpLevel::O0 && !(ampClass == AmpClass::Norm && choice.keepNormsF32))
    ofLevel = choice.low;
  if (ofLevel != pin)
    remark(op,
           "ToFloat(" + typeText(pin) + ") beats level " + ampLevelName(choice.level) + " (" + typeText(ofLevel) + ")");
  return true;
}

// O0 takes no lists; O2 and O3 pin every operation, so that only Allow and Deny change something there.
bool PrecisionAssignment::decideByList(Operation *op, const LevelChoice &choice, OpPrecision &precision) {
  std::optional<PrecisionLists::Match> entry = options.lists.lookup(op);
  if (!entry || choice.level == AmpLevel::O0)
    return false;
  switch (entry->ampClass) {
  case AmpClass::Allow:
    assignTypes(op, choice.low, precision);
    break;
  case AmpClass::Deny:
    if (classOf(op) == AmpClass::Norm)
      keepNorm(op, precision);
    else
      assignTypes(op, f32, precision);
    break;
  default:
    if (!isSolved(choice.level))
      return false;
    decideByClass(op, choice, entry->ampClass, "list entry " + entry->text(), precision);
    return true;
  }
  precision.decideBy(PrecisionRule::ListEntry, entry->text());
  precision.isUsers = true;
  return true;
}

void PrecisionAssignment::decideByLevel(Operation *op, const LevelChoice &choice, OpPrecision &precision) {
  AmpClass ampClass = classOf(op);
  if (isSolved(choice.level))
    return decideByClass(op, choice, ampClass, "", precision);
  if (choice.level == AmpLevel::O0) {
    // The types that tracing gave: f32, or low where a user's cast made every operand low.
    llvm::append_range(precision.operands, llvm::map_range(op->getOperands(), elementOf));
    llvm::append_range(precision.results, llvm::map_range(op->getResults(), elementOf));
    precision.decideBy(PrecisionRule::Level, ampLevelName(choice.level).str());
  } else if (ampClass == AmpClass::Norm && choice.keepNormsF32) {
    keepNorm(op, precision);
    precision.decideBy(PrecisionRule::NormKeptF32);
  } else {
    assignTypes(op, choice.low, precision);
    precision.decideBy(PrecisionRule::Level, ampLevelName(choice.level).str());
  }
}

// O1 and auto. Leaves the rule empty where the operation stays open. \p entry is that of the user's lists, if any.
void PrecisionAssignment::decideByClass(Operation *op, const LevelChoice &choice, AmpClass ampClass, std::string entry,
                                        OpPrecision &precision) {
  auto decideByClass = [&](const std::string &why = "") {
    precision.decideBy(PrecisionRule::Class, ampClassName(ampClass) + (entry.empty() ? "" : ", " + entry) + why);
    precision.isUsers = !entry.empty();
  };
  if (!takesPrecision(op)) {
    assignTypes(op, f32, precision);
    decideByClass();
  } else if (ampClass == AmpClass::Allow && choice.level == AmpLevel::O1) {
    assignTypes(op, choice.low, precision);
    decideByClass();
  } else if (ampClass == AmpClass::Norm && !has<Property::BatchNorm>(op)) {
    keepNorm(op, precision);
    decideByClass();
  } else if (ampClass == AmpClass::Deny) {
    assignTypes(op, f32, precision);
    decideByClass();
  } else {
    // x and y of a batch norm are those of an Infer operation; its parameters stay f32.
    if (ampClass == AmpClass::Norm)
      ampClass = AmpClass::Infer;
    bool readsNumbers = ampClass != AmpClass::Allow && classOf(op) != AmpClass::Norm;
    if (std::optional<double> lost = readsNumbers ? lostNumber(op, choice.low) : std::nullopt) {
      assignTypes(op, f32, precision);
      return decideByClass(", " + constantText(*lost) + " is beyond " + typeText(choice.low));
    }
    open[op] = {ampClass, choice.level, choice.low, std::move(entry)};
  }
}

void PrecisionAssignment::takeStored() {
  for (auto &[op, slot] : open) {
    auto known = stored.find(names.slotOf(op));
    if (known == stored.end())
      continue;
    slot.decideBy(PrecisionRule::StoredAssignment, known->second != "f32");
  }
}

// Turns what the infer rule and the cut chose into types.
void PrecisionAssignment::closeOpen() {
  for (auto &[op, slot] : open) {
    OpPrecision &precision = decisions[op];
    precision.compute = f32;
    precision.decideBy(slot.rule, slot.entry);
    precision.isUsers = !slot.entry.empty();
    assignTypes(op, *slot.isLow ? Type(slot.low) : f32, precision);
    if (classOf(op) == AmpClass::Norm)
      precision.operands[0] = Type();
    // The graph that decided a stored assignment has made its remarks already.
    if (slot.ampClass != AmpClass::Allow || *slot.isLow || slot.rule == PrecisionRule::StoredAssignment)
      continue;
    double saved = options.costs.secondsSavedByLow(op) * 1e6;
    std::string text;
    llvm::raw_string_ostream(text) << llvm::format("%.3g us", std::abs(saved));
    remark(op, saved > 0 ? op->getName().stripDialect() + " stays f32: " + typeText(slot.low) + " would save " + text +
                               ", less than its casts cost"
                         : op->getName().stripDialect() + " stays f32: it takes " + text + " longer in " +
                               typeText(slot.low) + " on this device");
  }
  open.clear();
}

// The type that a value has after the pass.
Type PrecisionAssignment::storedType(Value v) const {
  const OpPrecision *producer = v.getDefiningOp() ? lookup(v.getDefiningOp()) : nullptr;
  return producer ? producer->results[cast<OpResult>(v).getResultNumber()] : elementOf(v);
}

// Whether the user takes the value low without a loss of its own: low users, and users that take what is stored.
bool PrecisionAssignment::readsLow(OpOperand &use, Type low) const {
  const OpPrecision *user = lookup(use.getOwner());
  if (!user)
    return false;
  if (auto cast = dyn_cast<CastOp>(use.getOwner()))
    return elementOf(cast.getY()) == low;
  Type wanted = user->operands[use.getOperandNumber()];
  return !wanted || wanted == low;
}

void PrecisionAssignment::foldNorm(Operation *op, OpPrecision &precision) {
  Value y = op->getResult(0);
  Type low = levelOf(op).low;
  if (!y.use_empty() && llvm::all_of(y.getUses(), [&](OpOperand &use) { return readsLow(use, low); }))
    precision.results[0] = low;
  if (isLow(storedType(op->getOperand(0))) || isLow(precision.results[0]))
    precision.isFolded = true;
}

void PrecisionAssignment::record() {
  for (const auto &[op, precision] : decisions) {
    std::string name = names.lookup(op);
    if (name.empty() || !regions.isInNetwork(op) || !isSolved(levelOf(op).level) || !takesPrecision(op))
      continue;
    if (classOf(op) == AmpClass::Norm) {
      stored[name + ".x"] = typeText(storedType(op->getOperand(0)));
      stored[name + ".y"] = typeText(precision.results[0]);
      continue;
    }
    ArrayRef<unsigned> stayF32 = cast<AmpOpInterface>(op).getF32Results();
    for (OpResult result : op->getResults())
      if (isAssignable(result) && !llvm::is_contained(stayF32, result.getResultNumber())) {
        stored[name] = typeText(precision.results[result.getResultNumber()]);
        break;
      }
  }
}

} // namespace mpc
