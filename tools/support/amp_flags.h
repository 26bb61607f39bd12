// The flags of amp::Options, the same for every tool.
#pragma once

#include <vector>

#include "frontend/graph/amp_options.h"
#include "tools/support/option_flag.h"

namespace mpc::tools {

using AmpFlag = OptionFlag<amp::Options>;

/// One for each option that amp::VisitOptions lists, which amp::ResolveOptions checks against each other. Lists are
/// words between commas, and a flag that is repeated adds to its list.
const std::vector<AmpFlag>& AmpFlags();

/// Errors (INVALID_ARGUMENT): a limit of the loss scale that `precision`, resolved from `options`, does not read: its
/// scale is not dynamic.
absl::Status CheckScaleLimits(const amp::Options& options, const amp::Precision& precision);

}  // namespace mpc::tools
