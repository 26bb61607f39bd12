#include "passes/precision/precision_lists.h"

#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/operation_names.h"

using namespace mlir;

namespace mpc {

static bool isNamed(Operation *Op, StringRef Name) {
  return llvm::is_contained(operationsCalled(Name), Op->getName().stripDialect());
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
    (operationsCalled(Entry).empty() ? Lists.Paths : Lists.Operations).push_back({Entry.str(), Class});
  return Lists;
}

std::string PrecisionLists::Match::text() const { return "'" + Entry + "' (" + ampClassName(Class) + ")"; }

std::optional<PrecisionLists::Match> PrecisionLists::lookup(Operation *Op) const {
  std::optional<Match> Found;
  StringRef Path = pathOf(Op);
  for (const auto &[Cell, Class] : Paths)
    if (liesInCell(Path, Cell) && (!Found || Found->Entry.size() < Cell.size()))
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
                         return liesInCell(pathOf(Op), Cell) ? WalkResult::interrupt() : WalkResult::advance();
                       })
                       .wasInterrupted();
    if (!Matches)
      Unmatched.push_back(Cell);
  }
  return Unmatched;
}

} // namespace mpc
