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

bool isInsertedCast(Operation *Op) {
  auto Cast = dyn_cast_or_null<CastOp>(Op);
  return Cast && !Cast.getUser();
}

// Data movement that passes inserted: it decides nothing.
bool isInsertedMovement(Operation *Op) { return Op && has<Property::Movement>(Op) && !precisionOf(Op); }

Value behindMovement(Value V) {
  while (isInsertedMovement(V.getDefiningOp()))
    V = V.getDefiningOp()->getOperand(0);
  return V;
}

// The value that precision assignment saw, behind the casts and the movement that passes inserted.
Value asAssigned(Value V) {
  while (isInsertedCast(V.getDefiningOp()) || isInsertedMovement(V.getDefiningOp()))
    V = V.getDefiningOp()->getOperand(0);
  return V;
}

// The users of a value behind the operations that \p Skipped accepts.
void collectUsers(Value V, llvm::function_ref<bool(Operation *)> Skipped, Operations &Users) {
  for (Operation *User : V.getUsers()) {
    if (Skipped(User))
      collectUsers(User->getResult(0), Skipped, Users);
    else
      Users.insert(User);
  }
}

// Between what was given and what exists; a Cell may be meant by its last name alone.
unsigned distance(StringRef Given, StringRef Known) {
  return Known.ends_with(("/" + Given).str()) ? 0 : Given.edit_distance(Known);
}

// The type of the first floating result: what the operation's slot is in.
std::string slotType(Operation *Op) {
  for (Value Result : Op->getResults())
    if (isFloating(Result))
      return elementName(Result);
  return "";
}

class Explanation {
public:
  Explanation(const UnfusedFunction &Function) : Function(Function), Facts(Function.get()) {}

  absl::StatusOr<std::string> about(StringRef What) const {
    SmallVector<Operation *> Named = find(What);
    if (Named.empty())
      return unknown(What);
    std::string Text;
    for (Operation *Op : Named)
      absl::StrAppend(&Text, Text.empty() ? "" : "\n", explain(Op));
    return Text;
  }

private:
  //===-- Names --------------------------------------------------------------------------------------------------===//

  SmallVector<Operation *> find(StringRef What) const {
    SmallVector<Operation *> Found;
    StringRef Digits = What;
    Digits.consume_front("#");
    if (unsigned Ordinal = 0; !Digits.getAsInteger(10, Ordinal)) {
      if (Ordinal >= 1 && Ordinal <= Facts.operations().size())
        Found.push_back(Facts.operations()[Ordinal - 1]);
      return Found;
    }
    StringRef Name = What;
    Name.consume_front("mpc.");
    for (Operation *Op : Facts.operations()) {
      if (liesInCell(pathOf(Op), What) || mnemonicOf(Op) == Name)
        Found.push_back(Op);
    }
    return Found;
  }

  absl::Status unknown(StringRef What) const {
    std::set<std::string> Operations, Cells;
    for (Operation *Op : Facts.operations()) {
      Operations.insert(mnemonicOf(Op));
      if (StringRef Path = pathOf(Op); !Path.empty())
        Cells.insert(Path.str());
    }
    std::string Nearest;
    unsigned Distance = ~0u;
    for (const auto *Names : {&Operations, &Cells})
      for (const std::string &Name : *Names)
        if (unsigned This = distance(What, Name); This < Distance)
          std::tie(Nearest, Distance) = std::tie(Name, This);
    if (Nearest.empty())
      return absl::NotFoundError(absl::StrCat("no operation '", What.str(), "': the function computes nothing"));
    const bool IsName = !What.empty() && What.front() != '#';
    return absl::NotFoundError(absl::StrCat("no operation, ordinal or Cell '", What.str(), "'",
                                            IsName ? absl::StrCat("; nearest is '", Nearest, "'") : "",
                                            ". Operations #1 to #", Facts.operations().size(), ": ",
                                            llvm::join(Operations, ", "), ". Cells: ", llvm::join(Cells, ", ")));
  }

  // "#3 conv2d in lenet5/conv1".
  std::string name(Operation *Op) const {
    std::string Path = pathOf(Op).str();
    unsigned Ordinal = Facts.ordinal(Op);
    return absl::StrCat(Ordinal ? absl::StrCat("#", Ordinal, " ") : "", mnemonicOf(Op),
                        Path.empty() ? "" : absl::StrCat(" in ", Path));
  }

  //===-- Reasons ------------------------------------------------------------------------------------------------===//

  std::string explain(Operation *Op) const {
    std::string Reads = floatingTypes(Op->getOperands()), Writes = floatingTypes(Op->getResults());
    std::string Reason = Facts.reasonOf(Op);
    std::string Text = absl::StrCat(
        name(Op), Facts.isBackward(Op) ? " (backward)" : "", ": reads ", Reads.empty() ? "no floating type" : Reads,
        ", writes ", Writes.empty() ? "no floating type" : Writes,
        "\n  why: ", Reason.empty() ? "" : absl::StrCat(Reason, ": "), SayReason(Reason), "\n");
    if (Facts.followsForward(Op))
      absl::StrAppend(&Text, forwardOf(Op));
    if (IsPropagated(precisionOf(Op)))
      absl::StrAppend(&Text, wayToPin(Op));
    absl::StrAppend(&Text, castsBefore(Op), castsBehind(Op), regionOf(Op));
    return Text;
  }

  // "  computed in region 2 with #4 add in net/block, #5 relu in net/block", "  computed in region 3 of its own".
  std::string regionOf(Operation *Op) const {
    unsigned Region = Function.regionOf(Op);
    if (Region == 0)
      return "";
    SmallVector<std::string> Others;
    for (Operation &Other : *Op->getBlock())
      if (&Other != Op && Function.regionOf(&Other) == Region && !isa<ViewLikeOpInterface>(Other))
        Others.push_back(name(&Other));
    return absl::StrCat("  computed in region ", Region,
                        Others.empty() ? " of its own" : absl::StrCat(" with ", llvm::join(Others, ", ")), "\n");
  }

  // A gradient has the types of what it is the gradient of: the last operation before it in the same Cell whose name it
  // bears.
  std::string forwardOf(Operation *Gradient) const {
    Operation *Forward = nullptr;
    for (Operation *Op : Facts.operations()) {
      if (Facts.isBackward(Op) || pathOf(Op) != pathOf(Gradient))
        continue;
      if (StringRef(mnemonicOf(Gradient)).starts_with(mnemonicOf(Op)))
        Forward = Op;
    }
    if (!Forward)
      return "";
    std::string Reason = Facts.reasonOf(Forward);
    return absl::StrCat("    the forward operation is ", name(Forward), ", ", slotType(Forward),
                        Reason.empty() ? "" : absl::StrCat(": ", Reason), "\n");
  }

  // The shortest path to the nearest pin: an operation of the same type that a rule of its own pins, or an argument or
  // result. It goes against the flow of values for the infer rule, along and against it for the cut.
  std::string wayToPin(Operation *Start) const {
    bool BothWays = IsCut(precisionOf(Start));
    std::string Type = slotType(Start);
    llvm::DenseMap<Operation *, Operation *> From{{Start, nullptr}};
    std::deque<Operation *> Queue{Start};
    while (!Queue.empty()) {
      Operation *Op = Queue.front();
      Queue.pop_front();
      if (Op != Start && !IsPropagated(precisionOf(Op)))
        return way(From, Op);
      for (Value Operand : Op->getOperands())
        if (Operation *Producer = asAssigned(Operand).getDefiningOp())
          enqueue(Producer, Op, Type, From, Queue);
      if (!BothWays)
        continue;
      Operations Users;
      for (Value Result : Op->getResults())
        collectUsers(
            Result, [](Operation *Op) { return isInsertedCast(Op) || isInsertedMovement(Op); }, Users);
      for (Operation *User : Users)
        if (!Facts.isBackward(User))
          enqueue(User, Op, Type, From, Queue);
    }
    return absl::StrCat("    no pinned operation is near: inputs and outputs of the function are f32\n");
  }

  void enqueue(Operation *Next, Operation *Op, const std::string &Type, llvm::DenseMap<Operation *, Operation *> &From,
               std::deque<Operation *> &Queue) const {
    if (isa<AmpOpInterface>(Next) && slotType(Next) == Type && !Facts.reasonOf(Next).empty() &&
        From.try_emplace(Next, Op).second)
      Queue.push_back(Next);
  }

  std::string way(const llvm::DenseMap<Operation *, Operation *> &From, Operation *Pin) const {
    SmallVector<Operation *> Steps;
    for (Operation *Op = Pin; Op; Op = From.lookup(Op))
      Steps.push_back(Op);
    std::string Text;
    // The first step is the operation itself.
    for (Operation *Op : llvm::drop_begin(llvm::reverse(Steps))) {
      std::string Reason = Facts.reasonOf(Op);
      absl::StrAppend(&Text, "    from ", name(Op), ", ", slotType(Op), ": ", Reason,
                      Op == Pin ? absl::StrCat(": ", SayReason(Reason)) : "", "\n");
    }
    return Text;
  }

  //===-- Casts --------------------------------------------------------------------------------------------------===//

  // "cast f32 -> f16 (weight, 600 bytes)".
  std::string describe(CastOp Cast) const {
    CastRecord Record = Facts.recordOf(Cast);
    return absl::StrCat("cast ", Record.from, " -> ", Record.to, " (", CastKindName(Record.kind), ", ",
                        FormatCount(Record.bytes), " bytes)");
  }

  std::string sideOf(Value V) const {
    if (Operation *Producer = V.getDefiningOp()) {
      std::string Reason = Facts.reasonOf(Producer);
      return absl::StrCat(name(Producer), ", ", elementName(V), Reason.empty() ? "" : absl::StrCat(" (", Reason, ")"));
    }
    std::optional<Role> Own = roleOf(V);
    return absl::StrCat(Facts.describe(V), ", ", elementName(V), " (",
                        Own == Role::kParameter ? "parameters are stored in f32"
                        : isInput(Own)          ? "an input"
                                                : "state of the step",
                        ")");
  }

  std::string castsBefore(Operation *Op) const {
    std::string Text;
    llvm::SmallSetVector<Value, 4> Sources;
    for (Value Operand : Op->getOperands())
      Sources.insert(behindMovement(Operand));
    for (Value Source : Sources) {
      if (auto Cast = Source.getDefiningOp<CastOp>())
        absl::StrAppend(&Text, "  reads ", describe(Cast), " of ", sideOf(behindMovement(Cast.getX())), "\n");
      else if (roleOf(Source) == Role::kDerived)
        absl::StrAppend(&Text, "  reads ", Facts.describe(Source),
                        ", the low copy that the parameter's update keeps: no cast in a step\n");
    }
    return Text;
  }

  std::string castsBehind(Operation *Op) const {
    std::string Text;
    Operations Users;
    for (Value Result : Op->getResults())
      collectUsers(Result, isInsertedMovement, Users);
    for (Operation *User : Users)
      if (auto Cast = dyn_cast<CastOp>(User))
        absl::StrAppend(&Text, "  written through ", describe(Cast), " for ", readersOf(Cast), "\n");
    return Text;
  }

  std::string readersOf(CastOp Cast) const {
    Operations Readers;
    collectUsers(Cast.getY(), isInsertedMovement, Readers);
    return llvm::join(llvm::map_range(Readers,
                                      [&](Operation *Reader) {
                                        if (isa<func::ReturnOp>(Reader))
                                          return std::string("the function's result, ") + elementName(Cast.getY());
                                        std::string Reason = Facts.reasonOf(Reader);
                                        return name(Reader) + (Reason.empty() ? "" : " (" + Reason + ")");
                                      }),
                      "; ");
  }

  const UnfusedFunction &Function;
  FunctionFacts Facts;
};

} // namespace

absl::StatusOr<std::string> ExplainPrecision(const Module &Target, const std::string &Name, const std::string &What) {
  absl::StatusOr<UnfusedFunction> Function = UnfusedFunction::of(Target, Name);
  if (!Function.ok())
    return Function.status();
  return Explanation(*Function).about(What);
}

} // namespace mpc::compiler
