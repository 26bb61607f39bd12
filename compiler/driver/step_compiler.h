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
  /// \p traced, \p device and \p options outlive it. \p device is that of the options.
  StepCompiler(const Module &traced, const runtime::Device &device, const CompileOptions &options)
      : traced(traced), device(device), code(device, options) {}

  /// Compiles everything but machine code. The Program says how the code is called and what memory it takes. \p options
  /// differ from those of other plans in `head_chunks`, `recompute` and `plan` alone. Errors: those of Compile, a
  /// budget's aside.
  absl::StatusOr<CompileResult> plan(const CompileOptions &options);
  /// Gives a result of plan() its machine code. Errors: those of code generation.
  absl::Status generate(CompileResult &planned);

private:
  /// The step at Stage::Fused.
  struct FusedStep {
    std::int64_t head_chunks;
    Module module;
    std::vector<PhaseTime> phases;
    std::vector<std::string> remarks;
  };

  absl::Status fuse(const CompileOptions &options);

  const Module &traced;
  const runtime::Device &device;
  StepCode code;
  std::optional<FusedStep> fused; ///< the last one
  unsigned plans = 0;
};

} // namespace mpc::compiler
