// What a Program has beside its instructions: constants, and how state that follows other state is rebuilt.
#pragma once

#include "absl/status/status.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "runtime/program.h"
#include "llvm/ADT/StringMap.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mpc::compiler {

/// Adds \p Constants to \p Program, which has none so far; the offset at which each begins. What has one element
/// throughout and takes more than a line of 64 bytes becomes a fill. Constants of equal elements share one, since
/// nothing writes constants.
std::vector<std::size_t> placeConstants(llvm::ArrayRef<mlir::DenseElementsAttr> Constants, runtime::Program &Program);

/// Adds to \p Program how the derived state among its first \p Arguments bindings is rebuilt. It is called
/// "<source>.<type>": a cast of the source to that type. \p StateByName has the values of the bindings. Errors
/// (INVALID_ARGUMENT): a name that no source of its shape explains.
absl::Status addCastRefreshes(std::size_t Arguments, const llvm::StringMap<runtime::ValueId> &StateByName,
                              runtime::Program &Program);

} // namespace mpc::compiler
