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
static std::string ofParameters(ArrayRef<std::string> Names) {
  constexpr size_t Most = 3;
  if (Names.empty())
    return "";
  std::string Text = Names.size() == 1 ? "; it is the gradient of " : "; they are the gradients of ";
  llvm::raw_string_ostream Out(Text);
  llvm::interleaveComma(Names.take_front(Most), Out, [&](const std::string &Name) { Out << "'" << Name << "'"; });
  if (Names.size() > Most)
    Out << " and " << Names.size() - Most << " more";
  return Text;
}

namespace {

class VerifyLossScalePass : public impl::VerifyLossScalePassBase<VerifyLossScalePass> {
public:
  void runOnOperation() override {
    bool Failed = false;
    for (auto Function : getOperation().getOps<func::FuncOp>())
      if (!Function.isExternal())
        Failed |= failed(verify(Function));
    if (Failed)
      signalPassFailure();
    markAllAnalysesPreserved();
  }

private:
  static LogicalResult verify(func::FuncOp Function) {
    ScaleTracking Tracking(Function);
    for (const ScaleTracking::Misuse &Found : Tracking.misuses()) {
      InFlightDiagnostic Error = Found.Op->emitError() << describeWithCell(Found.Op) << ": " << Found.Message
                                                       << ofParameters(Found.Parameters);
      for (auto &[Op, Text] : Found.Notes)
        Error.attachNote(Op->getLoc()) << Text << " (" << describeWithCell(Op) << ")";
    }
    return success(Tracking.misuses().empty());
  }
};

} // namespace

} // namespace mpc
