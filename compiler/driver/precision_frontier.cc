#include "compiler/driver/precision_frontier.h"

#include "absl/strings/str_cat.h"
#include "compiler/module/module_impl.h"
#include "passes/precision/precision_assignment.h"
#include "passes/precision/slot_probes.h"

#include <cmath>

namespace mpc::compiler {
namespace {

absl::Status toStatus(llvm::Error error) { return absl::InvalidArgumentError(llvm::toString(std::move(error))); }

absl::StatusOr<PrecisionOptions> precisionOf(mlir::MLIRContext &context, const CompileOptions &given) {
  if (given.level != "auto")
    return absl::InvalidArgumentError(absl::StrCat(
        "a frontier of precision is for level auto, whose costs are seconds; this is level ", given.level));
  PrecisionOptions options;
  options.level = AmpLevel::Auto;
  llvm::Expected<mlir::FloatType> low = parseLowType(&context, given.dtype);
  if (!low)
    return toStatus(low.takeError());
  options.low = *low;
  llvm::Expected<PrecisionLists> lists =
      PrecisionLists::create(&context, given.allow, given.deny, given.infer, given.clear);
  if (!lists)
    return toStatus(lists.takeError());
  options.lists = std::move(*lists);
  if (llvm::Error refused = options.costs.give(given.rates.bytes_per_second, given.rates.low_flops,
                                               given.rates.f32_flops, given.rates.seconds_per_operation))
    return toStatus(std::move(refused));
  return options;
}

absl::StatusOr<AssignmentFrontier> frontierOf(const Module &traced, const CompileOptions &given,
                                              const FrontierErrors &errors) {
  Module copy = traced.Clone();
  absl::StatusOr<PrecisionOptions> options = precisionOf(*copy.impl().context, given);
  if (!options.ok())
    return options.status();
  const PrecisionAssignment assignment(copy.impl().module.get(), *options, &errors);
  if (!assignment.getFailure().empty())
    return absl::InvalidArgumentError(assignment.getFailure().str());
  return assignment.getFrontier();
}

SlotErrors squaresOf(const std::map<std::string, double> &errors) {
  SlotErrors squares;
  for (const auto &[slot, error] : errors)
    squares[slot] = error * error;
  return squares;
}

} // namespace

absl::StatusOr<std::vector<std::string>> OpenPrecisionSlots(const Module &traced, const CompileOptions &options) {
  absl::StatusOr<AssignmentFrontier> frontier = frontierOf(traced, options, {});
  if (!frontier.ok())
    return frontier.status();
  return std::move(frontier->open);
}

SlotProbes ProbePrecisionSlots(Module &traced, const std::vector<std::string> &open) {
  return probeSlots(traced.impl().module.get(), open);
}

absl::StatusOr<std::vector<PredictedPrecision>> PredictPrecisionFrontier(const Module &traced,
                                                                         const CompileOptions &options,
                                                                         const std::map<std::string, double> &weighed,
                                                                         const std::map<std::string, double> &other) {
  absl::StatusOr<AssignmentFrontier> frontier = frontierOf(traced, options, {squaresOf(weighed), squaresOf(other)});
  if (!frontier.ok())
    return frontier.status();
  std::vector<PredictedPrecision> corners;
  for (FrontierAssignment &corner : frontier->assignments)
    corners.push_back({std::move(corner.slots), corner.seconds, std::sqrt(corner.error), std::sqrt(corner.otherError)});
  return corners;
}

} // namespace mpc::compiler
