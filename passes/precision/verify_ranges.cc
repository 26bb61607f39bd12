// Warns of tensors that overflow in every step. The IR stays as it is.
//
//   %a = mpc.add_scalar %sigmoid {value = 1.0 : f32} : ...
//   %b = mpc.mul_scalar %a {value = 1.0e5 : f32} : ...
//   %y = mpc.cast %b : ... -> tensor<4xf16>
// gets a warning with a note for each operation before it.
//   warning: mpc.cast overflows f16 in every step: one element is at least 9.999e+04 in size
//   note: mpc.mul_scalar has values in [9.999e+04, 2.000e+05]
#include "compiler/dialect/dialect.h"
#include "compiler/dialect/operation_attributes.h"
#include "compiler/ranges/range_analysis.h"
#include "passes/function_body.h"
#include "passes/passes.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_VERIFYRANGESPASS
#include "passes/passes.h.inc"

namespace {

/// How many operations a warning names.
constexpr size_t kChainLength = 6;

void warn(const ranges::RangeAnalysis &analysis, const ranges::LowTensor &tensor) {
  Operation *op = tensor.value.getDefiningOp();
  Type element = cast<RankedTensorType>(tensor.value.getType()).getElementType();
  InFlightDiagnostic warning = op->emitWarning();
  warning << nameWithPath(op) << " overflows " << (element.isF16() ? "f16" : "bf16")
          << " in every step: one element is at least " << llvm::formatv("{0:e3}", tensor.exact.peak).str()
          << " in size";
  const std::vector<Operation *> chain = analysis.chainOf(tensor.value, kChainLength);
  for (Operation *link : llvm::reverse(chain)) {
    if (link == op)
      continue;
    const ranges::Range &range = analysis.rangeOf(link->getResult(0));
    warning.attachNote(link->getLoc()) << nameWithPath(link) << " has values in ["
                                       << llvm::formatv("{0:e3}, {1:e3}", range.low, range.high).str() << "]";
  }
}

class VerifyRangesPass : public impl::VerifyRangesPassBase<VerifyRangesPass> {
public:
  using VerifyRangesPassBase::VerifyRangesPassBase;

  void runOnOperation() override {
    markAllAnalysesPreserved();
    func::FuncOp function = getOperation();
    bool asks = false;
    function.walk([&](Operation *op) { asks |= has<Property::GradientRequest>(op); });
    if (asks || !onlyBlock(function))
      return;
    ranges::Assumptions assumptions;
    assumptions.lossScale = ranges::Range::between(1, 0x1p126);
    ranges::RangeAnalysis analysis(function, assumptions);
    for (const ranges::LowTensor &tensor : analysis.lowTensors())
      if (tensor.overflow == ranges::Verdict::Will)
        warn(analysis, tensor);
  }
};

} // namespace

} // namespace mpc
