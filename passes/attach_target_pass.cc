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
    ModuleOp Root = getOperation();
    auto EmitError = [&] { return Root.emitError(); };
    StringRef Name(name.getValue()), Arch(arch.getValue());
    auto Target = TargetAttr::getChecked(EmitError, &getContext(), Name, Arch, /*tf32=*/false, /*winograd=*/false);
    if (!Target)
      return signalPassFailure();
    dialectOf(Root).getTargetAttrHelper().setAttr(Root, Target);
    if (failed(targetModelOf(Root)))
      signalPassFailure();
  }
};

} // namespace

} // namespace mpc
