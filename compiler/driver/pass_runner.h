// Runs passes over a module. It times them and returns their diagnostics as a status.
#pragma once

#include "absl/status/status.h"
#include "compiler/driver/compiler.h"
#include "passes/pipelines.h"

#include <string>
#include <vector>

namespace mpc::compiler {

/// Adds \p seconds to the phase \p name at \p depth, which comes last where it is new.
void addPhase(std::vector<PhaseTime> &phases, const std::string &name, int depth, double seconds);

/// Runs the passes of a step on \p target up to \p until. Errors: INVALID_ARGUMENT with the passes' diagnostics and
/// notes.
absl::Status runPasses(Module &target, const CompileOptions &options, Stage until, std::vector<PhaseTime> *phases,
                       std::vector<std::string> *remarks);
/// The same from Stage::Fused to Stage::Scheduled.
absl::Status runPlanning(Module &target, const CompileOptions &options, std::vector<PhaseTime> *phases,
                         std::vector<std::string> *remarks);

} // namespace mpc::compiler
