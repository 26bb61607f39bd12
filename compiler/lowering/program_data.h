// Adds to a Program its constants, and how state that follows other state is rebuilt.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "runtime/program.h"
#include "llvm/ADT/StringMap.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mpc::compiler {

/// Adds \p Constants to \p Program, which has none so far, and returns the offset of each. A constant with one value in
/// all elements that takes more than a line of 64 bytes becomes a fill. Constants of equal elements share one, since
/// nothing writes constants.
std::vector<std::size_t> placeConstants(llvm::ArrayRef<mlir::DenseElementsAttr> Constants, runtime::Program &Program);

/// Adds to \p Program how the derived state among its first bindings is rebuilt: by a cast of its owner to its type.
/// \p Owners names what each of these bindings belongs to, \p StateByName has the values of the bindings.
void addCastRefreshes(llvm::ArrayRef<llvm::StringRef> Owners, const llvm::StringMap<runtime::ValueId> &StateByName,
                      runtime::Program &Program);

} // namespace mpc::compiler
