// The precision of each slot of a network.
#pragma once

#include <map>
#include <string>

namespace mpc::compiler {

/// The precision of each slot of the networks, by name: "lenet5/conv1#conv2d.0" -> "f16"; see
/// passes/precision/stored_assignment.h. Solved at O1 and auto, reused by every Program of a Model, kept in
/// checkpoints.
using PrecisionMap = std::map<std::string, std::string>;

} // namespace mpc::compiler
