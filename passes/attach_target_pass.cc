// Says which device a module is compiled for.
//
//   module {...}
// becomes, with name=cuda arch=sm_90,
//   module attributes {mpc.target = #mpc.target<"cuda", arch = "sm_90">} {...}
#include "compiler/dialect/operation_attributes.h"
#include "compiler/dialect/target_model.h"
#include "passes/passes.h"

using namespace mlir;

namespace mpc {

#define GEN_PASS_DEF_ATTACHTARGETPASS
#include "passes/passes.h.inc"

namespace {

class AttachTargetPass : public impl::AttachTargetPassBase<AttachTargetPass> {
public:
  using AttachTargetPassBase::AttachTargetPassBase;

  void runOnOperation() override {
    ModuleOp root = getOperation();
    auto emitError = [&] { return root.emitError(); };
    auto target = TargetAttr::getChecked(emitError, &getContext(), StringRef(name.getValue()),
                                         StringRef(arch.getValue()), /*tf32=*/false, /*winograd=*/false);
    if (!target)
      return signalPassFailure();
    dialectOf(root).getTargetAttrHelper().setAttr(root, target);
    if (failed(targetModelOf(root)))
      signalPassFailure();
  }
};

} // namespace

} // namespace mpc
