#include "passes/precision/precision_lists.h"

#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/operation_names.h"

using namespace mlir;

namespace mpc {

static bool isNamed(Operation *op, StringRef name) {
  return llvm::is_contained(operationsCalled(name), op->getName().stripDialect());
}

llvm::Expected<PrecisionLists> PrecisionLists::create(MLIRContext *context, ArrayRef<std::string> allow,
                                                      ArrayRef<std::string> deny, ArrayRef<std::string> infer,
                                                      ArrayRef<std::string> clear) {
  PrecisionLists lists;
  llvm::MapVector<StringRef, AmpClass> classes;
  const std::pair<AmpClass, ArrayRef<std::string>> given[] = {
      {AmpClass::Allow, allow}, {AmpClass::Deny, deny}, {AmpClass::Infer, infer}, {AmpClass::Clear, clear}};
  for (const auto &[ampClass, entries] : given)
    for (StringRef entry : entries) {
      auto [known, isNew] = classes.insert({entry, ampClass});
      if (!isNew && known->second != ampClass)
        return llvm::createStringError(llvm::inconvertibleErrorCode(), "'" + entry + "' is in two lists, " +
                                                                           ampClassName(known->second) + " and " +
                                                                           ampClassName(ampClass) + "; keep one");
    }
  for (const auto &[entry, ampClass] : classes)
    (operationsCalled(entry).empty() ? lists.paths : lists.operations).push_back({entry.str(), ampClass});
  return lists;
}

std::string PrecisionLists::Match::text() const { return "'" + entry + "' (" + ampClassName(ampClass) + ")"; }

std::optional<PrecisionLists::Match> PrecisionLists::lookup(Operation *op) const {
  std::optional<Match> found;
  StringRef path = pathOf(op);
  for (const auto &[cell, ampClass] : paths)
    if (liesInCell(path, cell) && (!found || found->entry.size() < cell.size()))
      found = {ampClass, cell};
  for (const auto &[name, ampClass] : operations)
    if (!found && isNamed(op, name))
      found = {ampClass, name};
  return found;
}

SmallVector<std::string> PrecisionLists::unmatchedPaths(ModuleOp module) const {
  SmallVector<std::string> unmatched;
  for (const auto &[cell, ampClass] : paths) {
    bool matches = module
                       .walk([&, &cell = cell](Operation *op) {
                         return liesInCell(pathOf(op), cell) ? WalkResult::interrupt() : WalkResult::advance();
                       })
                       .wasInterrupted();
    if (!matches)
      unmatched.push_back(cell);
  }
  return unmatched;
}

} // namespace mpc
