// Where compiling spent its time.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "compiler/driver/compiler.h"

namespace mpc::tools {

/// Seconds by phase over all Programs, in the order of first appearance; a pass is "passes/<name>".
std::vector<std::pair<std::string, double>> SecondsByPhase(const std::vector<const compiler::CompileResult*>& programs);

/// Sum over the phases (passes are inside theirs).
double TotalSeconds(const compiler::CompileResult& program);
double TotalSeconds(const std::vector<const compiler::CompileResult*>& programs);

/// The Programs, their phases and passes as a tree of seconds and shares of the total, with numbers of children in
/// brackets. Then the sums by phase follow, with their count. The line of code generation ends with its numbers of
/// regions and kernels, and how many of those were in the cache:
///
///     TotalTime = 0.0812, [2]
///     [train_step 32x1x32x32]: 0.0641 (78.94%), [5]
///         [trace]: 0.0021 (2.59%)
///     ...
///     Sums
///       3.45% :     0.002801s :      2: passes/mpc-amp
std::string FormatTimingTree(const std::vector<const compiler::CompileResult*>& programs);

}  // namespace mpc::tools
