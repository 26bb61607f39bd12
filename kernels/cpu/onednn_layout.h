// Names of oneDNN's layouts, as its own messages write them: "AcdB16b64a2b". Letters stand for dimensions, outermost
// first, a capital one for a dimension that is blocked; then come the blocks, outermost first.
#pragma once

#include <dnnl.hpp>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace mpc::cpu {

/// Empty for layouts that a name and extents do not determine (gaps, Winograd's transformed weights), and for those
/// that the library has no tag for.
std::string LayoutName(const dnnl::memory::desc& layout);

/// The layout called `name` of a tensor of `extents`, each dimension padded to whole blocks. Errors (INVALID_ARGUMENT):
/// what is no name, or names other dimensions.
absl::StatusOr<dnnl::memory::desc> NamedLayout(const dnnl::memory::dims& extents, dnnl::memory::data_type type,
                                               std::string_view name);

}  // namespace mpc::cpu
