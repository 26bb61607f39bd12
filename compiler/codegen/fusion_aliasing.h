// Which outputs of a region may be written over which of its inputs.
#pragma once

#include "compiler/dialect/fusion_plan.h"

#include <optional>

namespace mpc::codegen {

/// What a region says of writing an output over an input. It is made once for a region, and each answer takes the same
/// short time. It keeps no reference to the region or to the plan.
class FusionAliasing {
public:
  FusionAliasing(FusionOp fusion, const FusionPlan &plan);

  /// Whether the code may write output \p output over input \p input. Both must have the same extent, and nothing may
  /// read an input element after the output element is stored in its place.
  bool mayAlias(unsigned output, unsigned input) const;

private:
  struct Input {
    mlir::Type type;
    Extent extent;
    std::optional<Availability> lastPhase; ///< the last phase that reads it
    std::optional<unsigned> lastSweep;     ///< the last sweep that reads it, in a phase or where it is combined
  };
  struct Output {
    mlir::Type type;
    Extent extent;
    Availability when;
    std::optional<unsigned> combined; ///< the first sweep behind which it is stored, for an output of columns
  };

  llvm::SmallVector<Input> inputs;
  llvm::SmallVector<Output> outputs;
};

} // namespace mpc::codegen
