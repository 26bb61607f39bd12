// The files of this folder as texts.
#pragma once

namespace mpc::compiler {

extern const char kPageHtml[];
extern const char kPageCss[];
extern const char kPageScript[]; ///< the scripts, in the order of CMakeLists.txt

} // namespace mpc::compiler
