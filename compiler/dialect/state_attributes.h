// What arguments and results of a step say of themselves: role, name, and how state is stored.
#pragma once

#include <optional>

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "runtime/role.h"
#include "llvm/ADT/StringRef.h"

namespace mpc {

/// On an f32 argument of role "parameter": the low type ("f16", "bf16") that its state entry is stored in. The function
/// reads the stored value, widened.
inline constexpr llvm::StringLiteral StorageAttrName = "mpc.storage";

/// The role of an argument or a result; none where it has none.
std::optional<Role> argumentRole(mlir::FunctionOpInterface Function, unsigned Index);
std::optional<Role> resultRole(mlir::FunctionOpInterface Function, unsigned Index);
/// The name of an argument or a result; empty where it has none.
llvm::StringRef argumentName(mlir::FunctionOpInterface Function, unsigned Index);
llvm::StringRef resultName(mlir::FunctionOpInterface Function, unsigned Index);

/// The role of the function argument that \p V is; none for any other value.
std::optional<Role> roleOf(mlir::Value V);
/// The name of the function argument that \p V is; empty for any other value.
llvm::StringRef nameOf(mlir::Value V);

/// Whether a value of this role outlives the step. What has no role is data.
inline bool isState(std::optional<Role> Known) { return Known && IsState(*Known); }
/// Whether a value of this role comes from the caller of a step. An argument without a role does.
inline bool isInput(std::optional<Role> Known) { return !Known || *Known == Role::kInput; }

/// The name of a role, as StringAttr and messages take it.
inline llvm::StringRef roleName(Role Known) { return {RoleName(Known).data(), RoleName(Known).size()}; }

/// The attributes of an argument or a result of this role and name.
mlir::DictionaryAttr roleAndName(mlir::MLIRContext *Context, Role Given, llvm::StringRef Name);

} // namespace mpc
