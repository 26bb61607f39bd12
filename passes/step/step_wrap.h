// The wrap of a training step: loss scales, finite checks, guarded updates, accumulation.
#pragma once

#include "compiler/dialect/state_attributes.h"
#include "passes/step/update_groups.h"

#include <optional>

namespace mpc {

struct WrapOptions {
  bool scaled = true;            ///< scale the losses and check their gradients
  bool skip = true;              ///< hold state where a gradient is not finite
  bool unscale = true;           ///< divide gradients by the scale; false where the optimizer does
  int64_t numLosses = 1;         ///< loss scalers; one is shared
  int64_t accumulationSteps = 1; ///< micro-steps before an optimizer acts
};

/// Wraps one training step whose requests all have the seed 1. See mpc-loss-scale in passes.td for the IR.
class StepWrap {
public:
  StepWrap(mlir::func::FuncOp function, const StepFlow &flow, const WrapOptions &options);

  /// Emits an error and fails where a request asks for a scaler that does not exist.
  llvm::LogicalResult run();

private:
  struct Scaler {
    std::string suffix; ///< "" where one scaler serves every loss
    llvm::SmallVector<unsigned> requests;
    llvm::SmallVector<mlir::Value> fields;
    mlir::Value firstBad; ///< the first bad position of its requests together
  };
  /// The requests that a state result is computed from; see StepFlow::behind.
  struct Origin {
    RequestSet requests;
    bool followsUpdate = false;
  };
  struct Accumulator {
    mlir::Value updated;
    std::string name;
  };

  llvm::LogicalResult assignScalers();
  void addScalerArguments();
  void addMicroStep();
  void checkRequest(unsigned request);
  void accumulateCheck(unsigned request, mlir::Operation *check);
  void rewriteGradients(unsigned request);
  void collectNorms();
  void checkNorms(unsigned request);
  mlir::Value isFinite(GlobalNormOp norm);
  mlir::Value unscale(unsigned request, mlir::Value gradient);
  mlir::Value accumulate(unsigned request, unsigned position);

  void collectOrigins();
  RequestSet deciding(mlir::Operation *update) const;
  UpdateKey keyOf(RequestSet set, bool followsUpdate) const;
  /// Null: always.
  mlir::Value predicateOf(const UpdateKey &key);
  /// The value that state keeps where it is not updated.
  mlir::Value fallback(mlir::Value old, const UpdateKey &key);
  void guard(const UpdateGroup &region);
  void moveFollowing(const UpdateGroup &region, mlir::Operation *guard);
  mlir::Operation *latestInput(const UpdateGroup &region, mlir::Value predicate);
  void selectOtherState();

  void appendResults();
  void appendScaler(Scaler &chosen);
  void appendRecords(const Scaler &chosen);
  void appendAccumulation();
  void appendResult(mlir::Value result, Role given, llvm::StringRef name);
  mlir::Value addArgument(mlir::Type type, Role given, llvm::StringRef name, llvm::StringRef of = "");
  void nameGradients(const std::string &record, llvm::ArrayRef<unsigned> requests);
  mlir::Value constant(int32_t number);
  bool accumulates() const { return options.accumulationSteps > 1; }
  bool holds() const { return options.scaled && options.skip; }
  bool guards() const { return holds() || accumulates(); }

  mlir::func::FuncOp function;
  const StepFlow &flow;
  WrapOptions options;
  mlir::OpBuilder builder;
  mlir::Location loc;
  mlir::func::ReturnOp terminator;
  llvm::SmallVector<Scaler> scalers;
  llvm::SmallVector<unsigned> scalerOf;                          ///< index of each request's scaler
  llvm::SmallVector<AllFiniteOp> checks;                         ///< the check of each request
  llvm::SmallVector<llvm::SmallVector<GlobalNormOp, 1>> normsOf; ///< norms that the check of each request takes in
  llvm::DenseMap<mlir::Operation *, mlir::Value> normFlags;
  llvm::SmallVector<mlir::Value> flags;    ///< whether each request is finite (so far, under accumulation)
  llvm::SmallVector<mlir::Value> firstBad; ///< the first bad position of each request (so far, under accumulation)
  std::unique_ptr<UpdateGroups> regions;
  llvm::SmallVector<Origin> origins; ///< the origin of each result
  llvm::SmallVector<std::pair<UpdateKey, mlir::Value>> predicates;
  llvm::SmallVector<mlir::NamedAttribute> gradientNames;

  mlir::Value microStep, isFirst, isLast;
  llvm::SmallVector<Accumulator> accumulators;
  llvm::DenseMap<mlir::Value, mlir::Value> backups;
};

/// Makes one flag of any or all of \p given behind the last of them, which operations compute. A single flag stays as
/// it is; without \p loc the new one has the location of the last.
mlir::Value reduceFlags(mlir::OpBuilder &builder, llvm::ArrayRef<mlir::Value> given, bool any,
                        std::optional<mlir::Location> loc = {});

} // namespace mpc
