// The wrap of a training step: loss scales, finite checks, guarded updates, accumulation.
#pragma once

#include "compiler/dialect/state_attributes.h"
#include "passes/step/update_regions.h"

#include <optional>

namespace mpc {

struct WrapOptions {
  bool Scaled = true;            ///< scale the losses and check their gradients
  bool Skip = true;              ///< hold state where a gradient is not finite
  bool Unscale = true;           ///< divide gradients by the scale; false where the optimizer does
  int64_t NumLosses = 1;         ///< loss scalers; one is shared
  int64_t AccumulationSteps = 1; ///< micro-steps before an optimizer acts
};

/// Wraps one training step whose requests all have the seed 1. See mpc-loss-scale in passes.td for the IR.
class StepWrap {
public:
  StepWrap(mlir::func::FuncOp Function, const StepFlow &Flow, const WrapOptions &Options);

  /// Emits an error and fails where a request asks for a scaler that does not exist.
  llvm::LogicalResult run();

private:
  struct Scaler {
    std::string Suffix; ///< "" where one scaler serves every loss
    llvm::SmallVector<unsigned> Requests;
    llvm::SmallVector<mlir::Value> Fields;
    mlir::Value FirstBad; ///< the first bad position of its requests together
  };
  /// The requests that a state result is computed from; see StepFlow::behind.
  struct Origin {
    RequestSet Requests;
    bool FollowsUpdate = false;
  };
  struct Accumulator {
    mlir::Value New;
    std::string Name;
  };

  llvm::LogicalResult assignScalers();
  void addScalerArguments();
  void addMicroStep();
  void checkRequest(unsigned Request);
  void accumulateCheck(unsigned Request, mlir::Operation *Check);
  void rewriteGradients(unsigned Request);
  void collectNorms();
  void checkNorms(unsigned Request);
  mlir::Value isFinite(GlobalNormOp Norm);
  mlir::Value unscale(unsigned Request, mlir::Value Gradient);
  mlir::Value accumulate(unsigned Request, unsigned Position);

  void collectOrigins();
  RequestSet deciding(mlir::Operation *Update) const;
  UpdateKey keyOf(RequestSet Set, bool FollowsUpdate) const;
  /// Null: always.
  mlir::Value predicate(const UpdateKey &Key);
  /// The value that state keeps where it is not updated.
  mlir::Value fallback(mlir::Value Old, const UpdateKey &Key);
  void guard(const UpdateRegion &Region);
  void moveFollowing(const UpdateRegion &Region, mlir::Operation *Guard);
  mlir::Operation *latestInput(const UpdateRegion &Region, mlir::Value Predicate);
  void selectOtherState();

  void appendResults();
  void appendScaler(Scaler &Chosen);
  void appendRecords(const Scaler &Chosen);
  void appendAccumulation();
  void appendResult(mlir::Value Result, Role Given, llvm::StringRef Name);
  mlir::Value addArgument(mlir::Type Type, Role Given, llvm::StringRef Name, llvm::StringRef Of = "");
  void nameGradients(const std::string &Record, llvm::ArrayRef<unsigned> Requests);
  mlir::Value constant(int32_t Number);
  bool accumulates() const { return Options.AccumulationSteps > 1; }
  bool holds() const { return Options.Scaled && Options.Skip; }
  bool guards() const { return holds() || accumulates(); }

  mlir::func::FuncOp Function;
  const StepFlow &Flow;
  WrapOptions Options;
  mlir::OpBuilder Builder;
  mlir::Location Loc;
  mlir::func::ReturnOp Return;
  llvm::SmallVector<Scaler> Scalers;
  llvm::SmallVector<unsigned> ScalerOf;                          ///< index of each request's scaler
  llvm::SmallVector<AllFiniteOp> Checks;                         ///< the check of each request
  llvm::SmallVector<llvm::SmallVector<GlobalNormOp, 1>> NormsOf; ///< norms that the check of each request takes in
  llvm::DenseMap<mlir::Operation *, mlir::Value> NormFlags;
  llvm::SmallVector<mlir::Value> Flags;    ///< whether each request is finite (so far, under accumulation)
  llvm::SmallVector<mlir::Value> FirstBad; ///< the first bad position of each request (so far, under accumulation)
  std::unique_ptr<UpdateRegions> Regions;
  llvm::SmallVector<Origin> Origins; ///< the origin of each result
  llvm::SmallVector<std::pair<UpdateKey, mlir::Value>> Predicates;
  llvm::SmallVector<mlir::NamedAttribute> GradientNames;

  mlir::Value MicroStep, IsFirst, IsLast;
  llvm::SmallVector<Accumulator> Accumulators;
  llvm::DenseMap<mlir::Value, mlir::Value> Backups;
};

/// Makes one flag of any or all of \p Given behind the last of them, which operations compute. A single flag stays as
/// it is; without \p Loc the new one has the location of the last.
mlir::Value reduceFlags(mlir::OpBuilder &Builder, llvm::ArrayRef<mlir::Value> Given, bool Any,
                        std::optional<mlir::Location> Loc = {});

} // namespace mpc
