// The parts that a Module owns, for the compiler's own files.
#pragma once

#include "compiler/module/graph_builder.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

namespace mpc::compiler {

struct Module::Impl {
  std::shared_ptr<mlir::MLIRContext> context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
};

/// A context with the dialects that traced graphs use; one thread, no signal handlers.
std::shared_ptr<mlir::MLIRContext> makeContext();

} // namespace mpc::compiler
