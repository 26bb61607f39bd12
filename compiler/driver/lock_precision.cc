#include "compiler/driver/lock_precision.h"

#include "compiler/driver/compiler.h"
#include "compiler/module/module_impl.h"
#include "compiler/report/precision_table.h"
#include "passes/precision/stored_assignment.h"

#include <utility>

namespace mpc::compiler {

/// The options of which precision follows, whatever a step is compiled with beside them.
static CompileOptions ofPrecisionAlone(CompileOptions options) {
  options.fusion = false;
  options.head_chunks = 1;
  options.pad_classes = false;
  options.conv_statistics = false;
  options.recompute = 0;
  options.memory_budget = 0;
  options.processes = 1;
  return options;
}

/// Runs the passes on \p traced in place.
static absl::StatusOr<PrecisionTable> tabulate(Module &traced, const CompileOptions &options) {
  if (absl::Status status = RunPasses(traced, options, "final", nullptr, nullptr); !status.ok())
    return status;
  return TabulatePrecision(traced, options.function);
}

static LockSubject subjectOf(const std::string &network, const CompileOptions &options, const PrecisionTable &table) {
  LockSubject subject{
      network,           options.function, options.device, options.level, options.level == "O0" ? "-" : options.dtype,
      options.loss_scale};
  for (const ArgumentGroup &group : table.arguments)
    if (group.role == Role::kParameter) {
      subject.parameters = group.count;
      subject.elements = group.elements;
    }
  return subject;
}

absl::StatusOr<PrecisionLock> LockPrecision(const std::string &network, TracedBatch first, TracedBatch second,
                                            CompileOptions options) {
  options = ofPrecisionAlone(std::move(options));
  const absl::StatusOr<PrecisionTable> few = tabulate(first.traced, options);
  if (!few.ok())
    return few.status();
  options.assignment = readAssignment(first.traced.impl().module.get());
  const absl::StatusOr<PrecisionTable> more = tabulate(second.traced, options);
  if (!more.ok())
    return more.status();
  absl::StatusOr<std::vector<LockedOperation>> operations =
      LockOperations({&*few, first.samples}, {&*more, second.samples});
  if (!operations.ok())
    return operations.status();
  return PrecisionLock{subjectOf(network, options, *few), *std::move(operations)};
}

} // namespace mpc::compiler
