// Reports what the scale tracking found. The IR stays as it is.
//
//   %g = mpc.backward %loss wrt(%w) seed(%scale) : ...
//   %w2, %v2 = mpc.momentum %w, %v, %g, %rate : ...
// is an error with a note at mpc.backward.
//   error: 'mpc.momentum': an optimizer updates by a gradient while it is scaled by 'scaler.scale'
//   note: a gradient scaled by 'scaler.scale' comes from here ('mpc.backward')
#include "compiler/dialect/vjp_support.h"
#include "passes/passes.h"
#include "passes/step/scale_tracking.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_VERIFYLOSSSCALEPASS
#include "passes/passes.h.inc"

// The first names in full: a network has hundreds.
static std::string ofParameters(ArrayRef<std::string> names) {
  constexpr size_t most = 3;
  if (names.empty())
    return "";
  std::string text = names.size() == 1 ? "; it is the gradient of " : "; they are the gradients of ";
  llvm::raw_string_ostream out(text);
  llvm::interleaveComma(names.take_front(most), out, [&](const std::string &name) { out << "'" << name << "'"; });
  if (names.size() > most)
    out << " and " << names.size() - most << " more";
  return text;
}

namespace {

class VerifyLossScalePass : public impl::VerifyLossScalePassBase<VerifyLossScalePass> {
public:
  void runOnOperation() override {
    bool hasFailed = false;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (!function.isExternal())
        hasFailed |= failed(verify(function));
    if (hasFailed)
      signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  static LogicalResult verify(func::FuncOp function) {
    ScaleTracking tracking(function);
    for (const ScaleTracking::Misuse &found : tracking.getMisuses()) {
      InFlightDiagnostic error = found.op->emitError() << describeWithCell(found.op) << ": " << found.message
                                                       << ofParameters(found.parameters);
      for (auto &[op, text] : found.notes)
        error.attachNote(op->getLoc()) << text << " (" << describeWithCell(op) << ")";
    }
    return success(tracking.getMisuses().empty());
  }
};

} // namespace

} // namespace mpc
