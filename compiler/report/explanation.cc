#include "compiler/report/explanation.h"

#include "absl/strings/str_cat.h"
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/state_attributes.h"
#include "compiler/report/function_facts.h"
#include "compiler/report/precision_reason.h"
#include "compiler/report/text_table.h"
#include "compiler/report/unfused_function.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringExtras.h"

#include <deque>
#include <set>

using namespace mlir;

namespace mpc::compiler {

namespace {

using Operations = llvm::SmallSetVector<Operation *, 8>;

bool isInsertedCast(Operation *op) {
  auto cast = dyn_cast_or_null<CastOp>(op);
  return cast && !cast.getUser();
}

// Data movement that passes inserted: it decides nothing.
bool isInsertedMovement(Operation *op) { return op && has<Property::Movement>(op) && !precisionOf(op); }

Value behindMovement(Value v) {
  while (isInsertedMovement(v.getDefiningOp()))
    v = v.getDefiningOp()->getOperand(0);
  return v;
}

// The value that precision assignment saw, behind the casts and the movement that passes inserted.
Value asAssigned(Value v) {
  while (isInsertedCast(v.getDefiningOp()) || isInsertedMovement(v.getDefiningOp()))
    v = v.getDefiningOp()->getOperand(0);
  return v;
}

// The users of a value behind the operations that \p skipped accepts.
void collectUsers(Value v, llvm::function_ref<bool(Operation *)> skipped, Operations &users) {
  for (Operation *user : v.getUsers()) {
    if (skipped(user))
      collectUsers(user->getResult(0), skipped, users);
    else
      users.insert(user);
  }
}

// Between what was given and what exists; a Cell may be meant by its last name alone.
unsigned distance(StringRef given, StringRef known) {
  return known.ends_with(("/" + given).str()) ? 0 : given.edit_distance(known);
}

// The type of the first floating result: what the operation's slot is in.
std::string slotType(Operation *op) {
  for (Value result : op->getResults())
    if (isFloating(result))
      return elementName(result);
  return "";
}

class Explanation {
public:
  Explanation(const UnfusedFunction &function) : function(function), facts(function.get()) {}

  absl::StatusOr<std::string> about(StringRef what) const {
    SmallVector<Operation *> named = find(what);
    if (named.empty())
      return unknown(what);
    std::string text;
    for (Operation *op : named)
      absl::StrAppend(&text, text.empty() ? "" : "\n", explain(op));
    return text;
  }

  std::vector<std::string> aboutEach() const {
    std::vector<std::string> texts;
    for (Operation *op : facts.getOperations())
      texts.push_back(explain(op));
    return texts;
  }

private:
  //===-- Names --------------------------------------------------------------------------------------------------===//

  SmallVector<Operation *> find(StringRef what) const {
    SmallVector<Operation *> found;
    StringRef digits = what;
    digits.consume_front("#");
    if (unsigned ordinal = 0; !digits.getAsInteger(10, ordinal)) {
      if (ordinal >= 1 && ordinal <= facts.getOperations().size())
        found.push_back(facts.getOperations()[ordinal - 1]);
      return found;
    }
    StringRef name = what;
    name.consume_front("mpc.");
    for (Operation *op : facts.getOperations()) {
      if (liesInCell(pathOf(op), what) || mnemonicOf(op) == name || isInLoop(op, what))
        found.push_back(op);
    }
    return found;
  }

  // Whether \p what is "@body", the loop around \p op.
  bool isInLoop(Operation *op, StringRef what) const {
    std::string loop = function.loopOf(op);
    return !loop.empty() && what.consume_front("@") && what == loop;
  }

  absl::Status unknown(StringRef what) const {
    std::set<std::string> operations, cells;
    for (Operation *op : facts.getOperations()) {
      operations.insert(mnemonicOf(op));
      if (StringRef path = pathOf(op); !path.empty())
        cells.insert(path.str());
    }
    std::string nearest;
    unsigned fewest = ~0u;
    for (const auto *names : {&operations, &cells})
      for (const std::string &name : *names)
        if (unsigned edits = distance(what, name); edits < fewest)
          std::tie(nearest, fewest) = std::tie(name, edits);
    if (nearest.empty())
      return absl::NotFoundError(absl::StrCat("no operation '", what.str(), "': the function computes nothing"));
    const bool isName = !what.empty() && what.front() != '#';
    return absl::NotFoundError(absl::StrCat("no operation, ordinal or Cell '", what.str(), "'",
                                            isName ? absl::StrCat("; nearest is '", nearest, "'") : "",
                                            ". Operations #1 to #", facts.getOperations().size(), ": ",
                                            llvm::join(operations, ", "), ". Cells: ", llvm::join(cells, ", ")));
  }

  // "#3 conv2d in lenet5/conv1", "#4 matmul in rnn/cell of @body".
  std::string name(Operation *op) const {
    std::string path = pathOf(op).str(), loop = function.loopOf(op);
    unsigned ordinal = facts.ordinal(op);
    return absl::StrCat(ordinal ? absl::StrCat("#", ordinal, " ") : "", mnemonicOf(op),
                        path.empty() ? "" : absl::StrCat(" in ", path),
                        loop.empty() ? "" : absl::StrCat(" of @", loop));
  }

  //===-- Reasons ------------------------------------------------------------------------------------------------===//

  std::string explain(Operation *op) const {
    std::string reads = floatingTypes(op->getOperands()), writes = floatingTypes(op->getResults());
    std::string reason = facts.reasonOf(op);
    std::string text = absl::StrCat(
        name(op), facts.isBackward(op) ? " (backward)" : "", ": reads ", reads.empty() ? "no floating type" : reads,
        ", writes ", writes.empty() ? "no floating type" : writes,
        "\n  why: ", reason.empty() ? "" : absl::StrCat(reason, ": "), SayReason(reason), "\n");
    if (facts.followsForward(op))
      absl::StrAppend(&text, forwardOf(op));
    if (IsPropagated(precisionOf(op)))
      absl::StrAppend(&text, wayToPin(op));
    absl::StrAppend(&text, castsBefore(op), castsBehind(op), paddingOf(op), regionOf(op), loopOf(op));
    return text;
  }

  // "  runs 5 times: mpc.repeat calls @body".
  std::string loopOf(Operation *op) const {
    std::string loop = function.loopOf(op);
    if (loop.empty())
      return "";
    int64_t runs = function.runsOf(op);
    return absl::StrCat("  runs ", runs == 1 ? "once" : absl::StrCat(FormatCount(runs), " times"),
                        ": mpc.repeat calls @", loop, "\n");
  }

  // "  computed on 50,264 classes, 7 more than there are: mpc-pad-classes adds them, which the loss leaves out".
  std::string paddingOf(Operation *op) const {
    DenseI64ArrayAttr padded = dialectOf(op).getPaddedAttrHelper().getAttr(op);
    if (!padded)
      return "";
    return absl::StrCat("  computed on ", FormatCount(padded[1]), " classes, ", FormatCount(padded[1] - padded[0]),
                        " more than there are: mpc-pad-classes adds them, which the loss leaves out\n");
  }

  // "  computed in region 2 with #4 add in net/block, #5 relu in net/block", "  computed in region 3 of its own".
  std::string regionOf(Operation *op) const {
    unsigned region = function.regionOf(op);
    if (region == 0)
      return "";
    SmallVector<std::string> others;
    for (Operation &other : *op->getBlock())
      if (&other != op && function.regionOf(&other) == region && function.loopOf(&other) == function.loopOf(op) &&
          !isa<ViewLikeOpInterface>(other))
        others.push_back(name(&other));
    return absl::StrCat("  computed in region ", region,
                        others.empty() ? " of its own" : absl::StrCat(" with ", llvm::join(others, ", ")), "\n");
  }

  // A gradient has the types of what it is the gradient of: the last operation before it in the same Cell whose name it
  // bears.
  std::string forwardOf(Operation *gradient) const {
    Operation *forward = nullptr;
    for (Operation *op : facts.getOperations()) {
      if (facts.isBackward(op) || pathOf(op) != pathOf(gradient))
        continue;
      if (StringRef(mnemonicOf(gradient)).starts_with(mnemonicOf(op)))
        forward = op;
    }
    if (!forward)
      return "";
    std::string reason = facts.reasonOf(forward);
    return absl::StrCat("    the forward operation is ", name(forward), ", ", slotType(forward),
                        reason.empty() ? "" : absl::StrCat(": ", reason), "\n");
  }

  // The shortest path to the nearest pin: an operation of the same type that a rule of its own pins, or an argument or
  // result. It goes against the flow of values for the infer rule, along and against it for the cut.
  std::string wayToPin(Operation *start) const {
    bool bothWays = IsCut(precisionOf(start));
    std::string type = slotType(start);
    llvm::DenseMap<Operation *, Operation *> from{{start, nullptr}};
    std::deque<Operation *> queue{start};
    while (!queue.empty()) {
      Operation *op = queue.front();
      queue.pop_front();
      if (op != start && !IsPropagated(precisionOf(op)))
        return way(from, op);
      for (Value operand : op->getOperands())
        if (Operation *producer = asAssigned(operand).getDefiningOp())
          enqueue(producer, op, type, from, queue);
      if (!bothWays)
        continue;
      Operations users;
      for (Value result : op->getResults())
        collectUsers(
            result, [](Operation *op) { return isInsertedCast(op) || isInsertedMovement(op); }, users);
      for (Operation *user : users)
        if (!facts.isBackward(user))
          enqueue(user, op, type, from, queue);
    }
    return absl::StrCat("    no pinned operation is near: inputs and outputs of the function are f32\n");
  }

  void enqueue(Operation *next, Operation *op, const std::string &type, llvm::DenseMap<Operation *, Operation *> &from,
               std::deque<Operation *> &queue) const {
    if (isa<AmpOpInterface>(next) && slotType(next) == type && !facts.reasonOf(next).empty() &&
        from.try_emplace(next, op).second)
      queue.push_back(next);
  }

  std::string way(const llvm::DenseMap<Operation *, Operation *> &from, Operation *pin) const {
    SmallVector<Operation *> steps;
    for (Operation *op = pin; op; op = from.lookup(op))
      steps.push_back(op);
    std::string text;
    // The first step is the operation itself.
    for (Operation *op : llvm::drop_begin(llvm::reverse(steps))) {
      std::string reason = facts.reasonOf(op);
      absl::StrAppend(&text, "    from ", name(op), ", ", slotType(op), ": ", reason,
                      op == pin ? absl::StrCat(": ", SayReason(reason)) : "", "\n");
    }
    return text;
  }

  //===-- Casts --------------------------------------------------------------------------------------------------===//

  // "cast f32 -> f16 (weight, 600 bytes)".
  std::string describe(CastOp cast) const {
    CastRecord record = facts.recordOf(cast);
    return absl::StrCat("cast ", record.from, " -> ", record.to, " (", CastKindName(record.kind), ", ",
                        FormatCount(record.bytes), " bytes)");
  }

  std::string sideOf(Value v) const {
    if (Operation *producer = v.getDefiningOp()) {
      std::string reason = facts.reasonOf(producer);
      return absl::StrCat(name(producer), ", ", elementName(v), reason.empty() ? "" : absl::StrCat(" (", reason, ")"));
    }
    std::optional<Role> own = roleOf(v);
    return absl::StrCat(facts.describe(v), ", ", elementName(v), " (",
                        own == Role::kParameter ? "parameters are stored in f32"
                        : isInput(own)          ? "an input"
                                                : "state of the step",
                        ")");
  }

  std::string castsBefore(Operation *op) const {
    std::string text;
    llvm::SmallSetVector<Value, 4> sources;
    for (Value operand : op->getOperands())
      sources.insert(behindMovement(operand));
    for (Value source : sources) {
      if (auto cast = source.getDefiningOp<CastOp>())
        absl::StrAppend(&text, "  reads ", describe(cast), " of ", sideOf(behindMovement(cast.getX())), "\n");
      else if (roleOf(source) == Role::kDerived)
        absl::StrAppend(&text, "  reads ", facts.describe(source),
                        ", the low copy that the parameter's update keeps: no cast in a step\n");
    }
    return text;
  }

  std::string castsBehind(Operation *op) const {
    std::string text;
    Operations users;
    for (Value result : op->getResults())
      collectUsers(result, isInsertedMovement, users);
    for (Operation *user : users)
      if (auto cast = dyn_cast<CastOp>(user))
        absl::StrAppend(&text, "  written through ", describe(cast), " for ", readersOf(cast), "\n");
    return text;
  }

  std::string readersOf(CastOp cast) const {
    Operations readers;
    collectUsers(cast.getY(), isInsertedMovement, readers);
    return llvm::join(llvm::map_range(readers,
                                      [&](Operation *reader) {
                                        if (isa<func::ReturnOp>(reader))
                                          return std::string("the function's result, ") + elementName(cast.getY());
                                        std::string reason = facts.reasonOf(reader);
                                        return name(reader) + (reason.empty() ? "" : " (" + reason + ")");
                                      }),
                      "; ");
  }

  const UnfusedFunction &function;
  FunctionFacts facts;
};

} // namespace

absl::StatusOr<std::string> ExplainPrecision(const Module &target, const std::string &name, const std::string &what) {
  absl::StatusOr<UnfusedFunction> function = UnfusedFunction::create(target, name);
  if (!function.ok())
    return function.status();
  return Explanation(*function).about(what);
}

absl::StatusOr<std::vector<std::string>> ExplainEach(const Module &target, const std::string &name) {
  absl::StatusOr<UnfusedFunction> function = UnfusedFunction::create(target, name);
  if (!function.ok())
    return function.status();
  return Explanation(*function).aboutEach();
}

} // namespace mpc::compiler
