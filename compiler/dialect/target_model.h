// The device that a module is compiled for, as passes ask about it.
#pragma once

#include "compiler/dialect/dialect.h"
#include "kernels/dtype.h"
#include "kernels/weight_packing.h"
#include "mlir/IR/DialectInterface.h"
#include "llvm/ADT/STLFunctionalExtras.h"

#include <functional>
#include <memory>
#include <optional>

namespace mpc {

/// Which operations become generated kernels though no other joins them.
enum class LoneFusions {
  None,                   ///< none: each operation has a kernel of its own
  ExpensiveElements,      ///< large ones that take many instructions an element and reduce nothing
  WithoutKernel,          ///< operations that the device has no kernel for
  WithoutKernelOrWorthIt, ///< those, and operations that generated code is expected to compute faster
};

/// What the kernel of an operation takes beside operands and results, for the kernel that rules choose. Where lowering
/// measures kernels, it may choose another.
struct KernelPlan {
  int64_t workspaceBytes = 0; ///< scratch while it runs, and while its weight is packed
  /// How the kernel wants its weight. An instruction in front of it packs the weight. None where the kernel reads the
  /// weight as it is stored.
  std::optional<WeightPacking> packing = {};

  /// The bytes of the packed weight; 0 without a packing.
  int64_t packedBytes() const { return packing ? static_cast<int64_t>(packing->packed.bytes()) : 0; }
};

/// A device as passes weigh it. While a model lives, functions that others call stay as they are.
/// compiler/target/targets.h implements it over runtime::Device. Where this build has no such device, nothing is known
/// of its kernels: none writes over an operand or takes a workspace.
///
/// It answers what passes ask, and nothing that none asks.
/// Whether a kernel may write a result over an operand. What it takes to know is found out once, for all pairs.
using Aliasing = std::function<bool(unsigned result, unsigned operand)>;

class TargetModel {
public:
  virtual ~TargetModel() = default;

  /// The bytes that could be moved in the time that one launch costs.
  virtual int64_t bytesPerLaunch() const = 0;
  virtual LoneFusions loneFusions() const = 0;
  /// Whether the libraries of the device apply gelu to a product in the form and with the error of mpc's own.
  virtual bool foldsGelu() const = 0;
  /// What the extents of a product of a low type have to be multiples of, so that the libraries take their fast
  /// kernels; 1: nothing.
  virtual int64_t lowProductMultiple() const = 0;
  /// Whether programs read the heads of attention where one product has left them.
  virtual bool packsAttention() const = 0;
  /// Whether relu behind a product is a launch that the device's own product saves. Where a result is larger than
  /// bytesPerLaunch, generated kernels save more.
  virtual bool foldsRelu() const = 0;
  /// Whether the kernel of a product of images wants them channels-last. Where it does not, it takes both formats
  /// alike.
  virtual bool prefersChannelsLast(mlir::Operation *op) const = 0;
  /// The low type that the device computes in natively; bf16 where it is not here.
  virtual DType nativeLowType() const = 0;
  /// Which results the kernel of \p op may write over which operands.
  virtual Aliasing aliasing(mlir::Operation *op) const = 0;
  /// The plan of an operation that is an instruction by itself. Empty where asking is too expensive, and for what is no
  /// instruction. That of `mpc.repeat` has what its function needs beside its arguments as workspace.
  virtual KernelPlan kernelPlan(mlir::Operation *op) const = 0;
  /// The bytes of the arena that lowering plans for the order that \p function has now. Flat buffers, copies of old
  /// state and workspaces of regions are left out. \p scratchOf gives the bytes that an operation takes only while it
  /// runs. Where the arena has more than \p most bytes, any number above it.
  virtual size_t arenaBytes(mlir::func::FuncOp function, llvm::function_ref<int64_t(mlir::Operation *)> scratchOf,
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
