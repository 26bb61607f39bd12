#include "compiler/driver/analyze_ranges.h"

#include "compiler/driver/compiler.h"

namespace mpc::compiler {

absl::StatusOr<RangeTable> AnalyzeRanges(const Module &traced, const CompileOptions &options,
                                         const RangeAssumptions &assumptions) {
  Module module = traced.Clone();
  if (absl::Status status = RunPasses(module, options, "grad", nullptr, nullptr); !status.ok())
    return status;
  return TabulateRanges(module, options.function, assumptions);
}

} // namespace mpc::compiler
