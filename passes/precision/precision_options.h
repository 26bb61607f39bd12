// The options of mixed precision, as passes read them.
#pragma once

#include "mlir/IR/BuiltinTypes.h"
#include "passes/precision/cost_model.h"
#include "passes/precision/precision_lists.h"
#include "llvm/Support/Error.h"

namespace mpc {

enum class AmpLevel {
  O0,   ///< f32 except where the user asked otherwise
  O1,   ///< matrix work low, and what lies between by the minimum cut
  O2,   ///< everything low but norms and losses
  O3,   ///< everything low but losses
  Auto, ///< as O1, where it pays by the cost model
};

/// The level that a user wrote; the error lists what is accepted.
llvm::Expected<AmpLevel> parseAmpLevel(llvm::StringRef text);

/// "O0", ..., "auto".
llvm::StringRef ampLevelName(AmpLevel level);

/// O1 and auto: what classes do not pin is solved.
inline bool isSolved(AmpLevel level) { return level == AmpLevel::O1 || level == AmpLevel::Auto; }

/// "f16" or "bf16" as a type. The word "auto" is for the caller, who knows a target.
llvm::Expected<mlir::FloatType> parseLowType(mlir::MLIRContext *context, llvm::StringRef text);

/// "true", "false", or empty for the level's default: norms stay f32 at O2 and not at O3. Numeric and capitalised
/// booleans are accepted. Errors: another word; a value at O1 or auto, which run norms in f32 already.
llvm::Expected<bool> parseKeepNormsF32(llvm::StringRef text, AmpLevel level);

struct PrecisionOptions {
  AmpLevel level = AmpLevel::O0;
  mlir::FloatType low;
  /// Norms compute in f32 and are folded: only their x and y may be stored low.
  bool keepNormsF32 = true;
  PrecisionLists lists;
  CostModel costs;
};

} // namespace mpc
