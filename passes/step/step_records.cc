// Records.
//
//   func.func @step(...) -> (...) {
//     ...
//     return %w2 : tensor<4xf32>
// becomes
//   func.func @step(...) -> (..., tensor<i1> {mpc.state = #mpc.state<record, "finite">},
//       tensor<i32> {mpc.state = #mpc.state<record, "first_bad">},
//       tensor<f32> {mpc.state = #mpc.state<record, "loss_scale">})
//       attributes {mpc.gradients = {first_bad = ["w"]}} {
//     ...
//     return %w2, %finite, %first_bad, %scale : ...
#include "passes/step/step_records.h"

#include "compiler/dialect/gradient_names.h"
#include "compiler/dialect/operation_attributes.h"

using namespace mlir;

namespace mpc {

void StepRecords::appendResults(const MicroSteps &microSteps) {
  edit.builder.setInsertionPoint(edit.returnOp);
  for (const Scaler &chosen : scalers.getScalers())
    appendRecords(chosen);
  if (Value number = microSteps.getNumber())
    edit.appendResult(number, Role::kRecord, "micro_step");
  if (!gradientNames.empty())
    dialectOf(edit.function)
        .getGradientsAttrHelper()
        .setAttr(edit.function, edit.builder.getDictionaryAttr(gradientNames));
}

void StepRecords::appendRecords(const Scaler &chosen) {
  SmallVector<Value> finite;
  for (unsigned request : chosen.requests)
    finite.push_back(checks.getFindings()[request].finite);
  Value all = reduceFlags(edit.builder, finite, /*any=*/false, edit.loc);
  edit.appendResult(all, Role::kRecord, "finite" + chosen.suffix);
  edit.appendResult(chosen.firstBad, Role::kRecord, "first_bad" + chosen.suffix);
  edit.appendResult(chosen.getScale(), Role::kRecord, "loss_scale" + chosen.suffix);
  // A single check names its gradient. Several losses under one scaler have a record each.
  if (chosen.requests.size() == 1)
    return nameGradients("first_bad" + chosen.suffix, chosen.requests);
  for (unsigned request : chosen.requests) {
    std::string record = "loss" + std::to_string(request) + ".first_bad";
    edit.appendResult(checks.getFindings()[request].firstBad, Role::kRecord, record);
    nameGradients(record, request);
  }
}

void StepRecords::nameGradients(const std::string &record, ArrayRef<unsigned> requests) {
  SmallVector<Attribute> names;
  for (unsigned request : requests) {
    for (unsigned position = 0; position < edit.getRequests()[request].gradients.size(); ++position)
      names.push_back(edit.builder.getStringAttr(edit.flow.gradientName(request, position)));
    names.append(norms.countOf(request), edit.builder.getStringAttr(StringRef(kNormOfGradients)));
  }
  gradientNames.push_back(edit.builder.getNamedAttr(record, edit.builder.getArrayAttr(names)));
}

} // namespace mpc
