// Readers and writers of `mpc.state`, which says what arguments and results of a step are.
#pragma once

#include <optional>

#include "compiler/dialect/dialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mpc {

/// The attribute of arguments and results that the functions below read and write.
inline constexpr llvm::StringLiteral stateAttrName = "mpc.state";

/// The `mpc.state` of an argument or a result. Null: it has none, and is data without a name.
StateAttr argumentState(mlir::FunctionOpInterface function, unsigned index);
StateAttr resultState(mlir::FunctionOpInterface function, unsigned index);
/// Sets `mpc.state` of an argument or a result. \p state is not null.
void setArgumentState(mlir::FunctionOpInterface function, unsigned index, StateAttr state);
void setResultState(mlir::FunctionOpInterface function, unsigned index, StateAttr state);
/// The `mpc.state` of the function argument \p v; null for any other value.
StateAttr stateOf(mlir::Value v);

/// The role of an argument or a result; none where nothing is said of it.
std::optional<Role> argumentRole(mlir::FunctionOpInterface function, unsigned index);
std::optional<Role> resultRole(mlir::FunctionOpInterface function, unsigned index);
/// The name of an argument or a result; empty where it has none.
llvm::StringRef argumentName(mlir::FunctionOpInterface function, unsigned index);
llvm::StringRef resultName(mlir::FunctionOpInterface function, unsigned index);

/// The role of the function argument that \p v is; none for any other value.
std::optional<Role> roleOf(mlir::Value v);
/// The name of the function argument that \p v is; empty for any other value.
llvm::StringRef nameOf(mlir::Value v);

/// Whether a value of this role outlives the step. A value without a role is data.
inline bool isState(std::optional<Role> known) { return known && IsState(*known); }
/// Whether a value of this role comes from the caller of a step. An argument without a role does.
inline bool isInput(std::optional<Role> known) { return !known || *known == Role::kInput; }

/// State or data of this role and name. \p of names the state that it belongs to. \p form is the low type that an f32
/// parameter is stored in.
StateAttr makeState(mlir::MLIRContext *context, Role given, llvm::StringRef name, llvm::StringRef of = "",
                    mlir::Type form = {});

/// The attributes of a new argument or result that is \p state.
mlir::DictionaryAttr describedBy(StateAttr state);

} // namespace mpc
