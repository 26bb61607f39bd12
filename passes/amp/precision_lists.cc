#include "passes/amp/precision_lists.h"

using namespace mlir;

namespace mpc {

// Names that users know, for several mnemonics or a longer one.
static constexpr std::pair<StringLiteral, StringLiteral> Families[] = {
    {"conv", "conv2d"},
    {"conv_transpose", "conv_transpose2d"},
    {"dense", "matmul"},
    {"batch_norm", "batch_norm_train"},
    {"batch_norm", "batch_norm_infer"},
    {"max_pool", "max_pool2d"},
    {"avg_pool", "avg_pool2d"},
    {"sum", "reduce_sum"},
    {"mean", "reduce_mean"},
    {"max", "reduce_max"},
};

static bool isOperationName(MLIRContext *Context, StringRef Name) {
  return RegisteredOperationName::lookup(("mpc." + Name).str(), Context) ||
         llvm::any_of(Families, [&](const auto &Family) { return Family.first == Name; });
}

static bool isNamed(Operation *Op, StringRef Name) {
  StringRef Mnemonic = Op->getName().stripDialect();
  return Mnemonic == Name ||
         llvm::any_of(Families, [&](const auto &Family) { return Family.first == Name && Family.second == Mnemonic; });
}

static StringRef pathOf(Operation *Op) {
  auto Scope = Op->getAttrOfType<ScopeAttr>(ScopeAttrName);
  return Scope ? Scope.getPath() : StringRef();
}

static bool liesIn(StringRef Path, StringRef Cell) {
  return Path == Cell || (Path.starts_with(Cell) && Path[Cell.size()] == '/');
}

llvm::Expected<PrecisionLists> PrecisionLists::create(MLIRContext *Context, ArrayRef<std::string> Allow,
                                                      ArrayRef<std::string> Deny, ArrayRef<std::string> Infer,
                                                      ArrayRef<std::string> Clear) {
  PrecisionLists Lists;
  llvm::MapVector<StringRef, AmpClass> Classes;
  const std::pair<AmpClass, ArrayRef<std::string>> Given[] = {
      {AmpClass::Allow, Allow}, {AmpClass::Deny, Deny}, {AmpClass::Infer, Infer}, {AmpClass::Clear, Clear}};
  for (const auto &[Class, Entries] : Given)
    for (StringRef Entry : Entries) {
      auto [Known, New] = Classes.insert({Entry, Class});
      if (!New && Known->second != Class)
        return llvm::createStringError(llvm::inconvertibleErrorCode(), "'" + Entry + "' is in two lists, " +
                                                                           ampClassName(Known->second) + " and " +
                                                                           ampClassName(Class) + "; keep one");
    }
  for (const auto &[Entry, Class] : Classes)
    (isOperationName(Context, Entry) ? Lists.Operations : Lists.Paths).push_back({Entry.str(), Class});
  return Lists;
}

std::string PrecisionLists::Match::reason() const { return "list entry '" + Entry + "' (" + ampClassName(Class) + ")"; }

std::optional<PrecisionLists::Match> PrecisionLists::lookup(Operation *Op) const {
  std::optional<Match> Found;
  StringRef Path = pathOf(Op);
  for (const auto &[Cell, Class] : Paths)
    if (liesIn(Path, Cell) && (!Found || Found->Entry.size() < Cell.size()))
      Found = {Class, Cell};
  for (const auto &[Name, Class] : Operations)
    if (!Found && isNamed(Op, Name))
      Found = {Class, Name};
  return Found;
}

SmallVector<std::string> PrecisionLists::unmatchedPaths(ModuleOp Module) const {
  SmallVector<std::string> Unmatched;
  for (const auto &[Cell, Class] : Paths) {
    bool Matches = Module
                       .walk([&, &Cell = Cell](Operation *Op) {
                         return liesIn(pathOf(Op), Cell) ? WalkResult::interrupt() : WalkResult::advance();
                       })
                       .wasInterrupted();
    if (!Matches)
      Unmatched.push_back(Cell);
  }
  return Unmatched;
}

} // namespace mpc
