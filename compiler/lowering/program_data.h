// Adds to a Program its constants, and how state that follows other state is rebuilt.
#pragma once

#include "mlir/IR/BuiltinAttributes.h"
#include "runtime/program.h"
#include "llvm/ADT/StringMap.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mpc::compiler {

/// Adds \p constants to \p program, which has none so far, and returns the offset of each. A constant with one value in
/// all elements that takes more than a line of 64 bytes becomes a fill. Constants of equal elements share one, since
/// nothing writes constants.
std::vector<std::size_t> placeConstants(llvm::ArrayRef<mlir::DenseElementsAttr> constants, runtime::Program &program);

/// Adds to \p program how the derived state among its first bindings is rebuilt: by a cast of its owner to its type.
/// \p owners names what each of these bindings belongs to, \p stateByName has the values of the bindings.
void addCastRefreshes(llvm::ArrayRef<llvm::StringRef> owners, const llvm::StringMap<runtime::ValueId> &stateByName,
                      runtime::Program &program);

} // namespace mpc::compiler
