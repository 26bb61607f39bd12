// A Program as text.
#pragma once

#include <string>

#include "runtime/program.h"

namespace mpc::opt {

/// State, inputs, constants, temporaries with their arena offsets, instructions with operands, attributes, workspace
/// and Cell path, state copies with their reasons, outputs, choices. `%n` is the index of a Value.
std::string ListProgram(const runtime::Program& program);

}  // namespace mpc::opt
