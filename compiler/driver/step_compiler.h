// Compiles one step, once or under several options.
#pragma once

#include "absl/status/statusor.h"
#include "compiler/driver/compiler.h"
#include "compiler/driver/generated_code.h"
#include "runtime/executable.h"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mpc::compiler {

/// Keeps from one plan to the next what options do not change: the step as fusion leaves it, and the code of regions.
class StepCompiler {
public:
  /// \p Traced, \p Device and \p Options outlive it. \p Device is that of the options.
  StepCompiler(const Module &Traced, const runtime::Device &Device, const CompileOptions &Options)
      : Traced(Traced), Device(Device), Code(Device, Options) {}

  /// Compiles everything but machine code. The Program says how the code is called and what memory it takes. \p Options
  /// differ from those of other plans in `head_chunks`, `recompute` and `plan` alone. Errors: those of Compile, a
  /// budget's aside.
  absl::StatusOr<CompileResult> plan(const CompileOptions &Options);
  /// Gives a result of plan() its machine code. Errors: those of code generation.
  absl::Status generate(CompileResult &Planned);
  /// How many plans were made.
  unsigned numPlans() const { return Plans; }

private:
  /// The step at Stage::Fused.
  struct FusedStep {
    std::int64_t head_chunks;
    Module module;
    std::vector<PhaseTime> phases;
    std::vector<std::string> remarks;
  };

  absl::Status fuse(const CompileOptions &Options);

  const Module &Traced;
  const runtime::Device &Device;
  StepCode Code;
  std::optional<FusedStep> Fused; ///< the last one
  unsigned Plans = 0;
};

} // namespace mpc::compiler
