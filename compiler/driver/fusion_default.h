// Whether steps are compiled with fused regions where nobody says.
#pragma once

#include <string_view>

namespace mpc {

/// On the CPU. Generated kernels for a GPU are tested in emulation and by the assembler, and have not run on one yet:
/// there `fusion` has to be asked for.
constexpr bool FusesByDefault(std::string_view device) { return device == "cpu"; }

} // namespace mpc
