// The device that a module is compiled for, as passes ask about it.
#pragma once

#include "compiler/dialect/dialect.h"
#include "kernels/dtype.h"
#include "mlir/IR/DialectInterface.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <memory>

namespace mpc {

/// Which operations become generated kernels though no other joins them.
enum class LoneFusions {
  None,                   ///< none: each operation has a kernel of its own
  WithoutKernel,          ///< operations that the device has no kernel for
  WithoutKernelOrWorthIt, ///< those, and operations that generated code is expected to compute faster
};

/// A device as passes weigh it. While a model lives, functions that others call stay as they are.
/// compiler/target/targets.h implements it over runtime::Device. Where this build has no such device, nothing is known
/// of its kernels: none writes over an operand or takes a workspace.
///
/// It answers what passes ask, and nothing that none asks. Packings of weights are part of the plan of an instruction.
/// A kernel has a packing only once rules or a measurement have chosen it, which happens in lowering. An answer by
/// operation would plan each one twice, and could differ from the kernel that is then chosen.
class TargetModel {
public:
  virtual ~TargetModel() = default;

  /// The bytes that could be moved in the time that one launch costs.
  virtual int64_t bytesPerLaunch() const = 0;
  virtual LoneFusions loneFusions() const = 0;
  /// Whether the libraries of the device apply gelu to a product in the form and with the error of mpc's own.
  virtual bool foldsGelu() const = 0;
  /// The low type that the device computes in natively; bf16 where it is not here.
  virtual DType nativeLowType() const = 0;
  /// Whether the kernel of \p op may write result \p result over operand \p operand.
  virtual bool mayAlias(mlir::Operation *op, unsigned result, unsigned operand) const = 0;
  /// The bytes of scratch of an operation that is an instruction by itself, for the kernel that rules choose. 0 where
  /// asking is too expensive, and for what is no instruction.
  virtual int64_t workspaceBytes(mlir::Operation *op) const = 0;
  /// The bytes of the arena that lowering plans for the order that \p function has now. Flat buffers, copies of old
  /// state and workspaces of regions are left out. Where they are more than \p most, any number above it.
  virtual size_t arenaBytes(mlir::func::FuncOp function, llvm::function_ref<int64_t(mlir::Operation *)> workspaceOf,
                            size_t most) const = 0;
};

/// The targets that a context knows: whoever compiles registers them with the dialect.
class TargetModels : public mlir::DialectInterface::Base<TargetModels> {
public:
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(TargetModels)

  explicit TargetModels(mlir::Dialect *of) : Base(of) {}
  /// The model of \p target. Errors: a name or an architecture that is unknown, with those that are known.
  virtual llvm::Expected<std::unique_ptr<TargetModel>> resolve(TargetAttr target) const = 0;
};

/// The target of the module around \p op, the CPU where it says nothing.
TargetAttr targetOf(mlir::Operation *op);
/// Its model. Errors, emitted on \p op: those of TargetModels; a context without targets.
llvm::FailureOr<std::unique_ptr<TargetModel>> targetModelOf(mlir::Operation *op);

} // namespace mpc
