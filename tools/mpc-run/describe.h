// What a package holds, in words.
#pragma once

#include <string>

#include "runtime/program_file.h"

namespace mpc::tools {

/// "choice KEY: VALUE", a line each.
std::string DescribeChoices(const runtime::Program& program, const std::string& indent);

/// Metadata, then each Program with its inputs, outputs, kernels, code and peak, then the state with how it begins.
/// Needs no device.
std::string DescribePackage(const std::string& path, const runtime::Package& package);

}  // namespace mpc::tools
