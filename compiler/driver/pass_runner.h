// Runs passes over a module. It times them and returns their diagnostics as a status.
#pragma once

#include "absl/status/status.h"
#include "compiler/driver/compiler.h"
#include "passes/pipelines.h"

#include <string>
#include <vector>

namespace mpc::compiler {

/// Adds \p Seconds to the phase \p Name at \p Depth, which comes last where it is new.
void addPhase(std::vector<PhaseTime> &Phases, const std::string &Name, int Depth, double Seconds);

/// Runs the passes of a step on \p Target up to \p Until. Errors: INVALID_ARGUMENT with the passes' diagnostics and
/// notes.
absl::Status runPasses(Module &Target, const CompileOptions &Options, Stage Until, std::vector<PhaseTime> *Phases,
                       std::vector<std::string> *Remarks);
/// The same from Stage::Fused to Stage::Scheduled.
absl::Status runPlanning(Module &Target, const CompileOptions &Options, std::vector<PhaseTime> *Phases,
                         std::vector<std::string> *Remarks);

} // namespace mpc::compiler
