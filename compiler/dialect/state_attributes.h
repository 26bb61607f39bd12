// Readers and writers of `mpc.state`, which says what arguments and results of a step are.
#pragma once

#include <optional>

#include "compiler/dialect/dialect.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mpc {

/// The attribute of arguments and results that the functions below read and write.
inline constexpr llvm::StringLiteral StateAttrName = "mpc.state";

/// The `mpc.state` of an argument or a result. Null: it has none, and is data without a name.
StateAttr argumentState(mlir::FunctionOpInterface Function, unsigned Index);
StateAttr resultState(mlir::FunctionOpInterface Function, unsigned Index);
void setArgumentState(mlir::FunctionOpInterface Function, unsigned Index, StateAttr State);
void setResultState(mlir::FunctionOpInterface Function, unsigned Index, StateAttr State);
/// The `mpc.state` of the function argument \p V; null for any other value.
StateAttr stateOf(mlir::Value V);

/// The role of an argument or a result; none where nothing is said of it.
std::optional<Role> argumentRole(mlir::FunctionOpInterface Function, unsigned Index);
std::optional<Role> resultRole(mlir::FunctionOpInterface Function, unsigned Index);
/// The name of an argument or a result; empty where it has none.
llvm::StringRef argumentName(mlir::FunctionOpInterface Function, unsigned Index);
llvm::StringRef resultName(mlir::FunctionOpInterface Function, unsigned Index);

/// The role of the function argument that \p V is; none for any other value.
std::optional<Role> roleOf(mlir::Value V);
/// The name of the function argument that \p V is; empty for any other value.
llvm::StringRef nameOf(mlir::Value V);

/// Whether a value of this role outlives the step. A value without a role is data.
inline bool isState(std::optional<Role> Known) { return Known && IsState(*Known); }
/// Whether a value of this role comes from the caller of a step. An argument without a role does.
inline bool isInput(std::optional<Role> Known) { return !Known || *Known == Role::kInput; }

/// State or data of this role and name. \p Of names the state that it belongs to. \p Form is the low type that an f32
/// parameter is stored in.
StateAttr makeState(mlir::MLIRContext *Context, Role Given, llvm::StringRef Name, llvm::StringRef Of = "",
                    mlir::Type Form = {});

/// The attributes of a new argument or result that is \p State.
mlir::DictionaryAttr describedBy(StateAttr State);

} // namespace mpc
