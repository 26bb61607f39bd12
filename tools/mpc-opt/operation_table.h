// What is known of each operation, as text: the classes, traits, interfaces and lists that passes ask.
#pragma once

#include <string>

namespace mpc::opt {

/// A line for each operation of the dialect, in the order of their names.
std::string OperationTable();

}  // namespace mpc::opt
