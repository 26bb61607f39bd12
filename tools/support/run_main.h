// What every main function of a tool does around its work.
#pragma once

#include <string_view>

#include "tools/support/exit_code.h"

namespace mpc::tools {

/// Runs `main` and gives the tool's exit code. What does not fit into memory or into a container ends in an error by
/// name, where C++ would abort. Then the standard output is flushed: what could not be written there is an error too.
/// Both errors give `failure`, where `main` has not given a greater code.
int RunMain(std::string_view program, int (*main)(int argc, char** argv), int argc, char** argv,
            int failure = kFailure);

}  // namespace mpc::tools
