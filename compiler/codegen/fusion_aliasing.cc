#include "compiler/codegen/fusion_aliasing.h"

#include "compiler/codegen/fusion_outputs.h"

using namespace mlir;

namespace mpc::codegen {

FusionAliasing::FusionAliasing(FusionOp fusion, const FusionPlan &plan) {
  Block &body = fusion.getBody().front();
  for (BlockArgument argument : body.getArguments())
    inputs.push_back({argument.getType(), plan.extent(argument), std::nullopt, std::nullopt});
  auto inputOf = [&](Value v) -> Input * {
    auto argument = dyn_cast<BlockArgument>(v);
    return argument && argument.getOwner() == &body ? &inputs[argument.getArgNumber()] : nullptr;
  };
  FusionOutputs stored(fusion, plan);
  for (const FusionOutputs::Output &o : stored.all())
    outputs.push_back({o.value.getType(), o.extent, o.when, std::nullopt});
  for (unsigned sweep = 0; sweep < plan.numSweeps(); ++sweep) {
    for (unsigned phase = 0; phase < plan.numPhases(sweep); ++phase)
      for (Value read : stored.inputsRead({sweep, phase}))
        if (Input *input = inputOf(read)) {
          input->lastPhase = {sweep, phase};
          input->lastSweep = sweep;
        }
    for (Value read : stored.inputsCombined(sweep))
      if (Input *input = inputOf(read))
        input->lastSweep = sweep;
    for (auto [output, o] : llvm::zip_equal(outputs, stored.all()))
      if (!output.combined && stored.isCombined(o, sweep))
        output.combined = sweep;
  }
}

bool FusionAliasing::mayAlias(unsigned output, unsigned input) const {
  const Output &o = outputs[output];
  const Input &i = inputs[input];
  if (i.type != o.type || i.extent != o.extent || o.extent == Extent::Single)
    return false;
  // One block of the combination reads and writes each column.
  if (o.extent == Extent::PerColumn)
    return o.combined && (!i.lastSweep || *i.lastSweep <= *o.combined);
  return !i.lastPhase || !(o.when < *i.lastPhase);
}

} // namespace mpc::codegen
