// What this process tells the others of what it does, and what it hears of them. Not part of the public API.
#pragma once

#include <string_view>

#include "absl/status/status.h"

namespace mpc::distributed::internal {

// Without Init and where there is one process these do nothing.

/// Says what this process does at the step that NotePlace has named.
void NoteActivity(std::string_view what);

/// The error of a wait that has taken too long, with what the other ranks did when they last told. It also names the
/// option that allows more time. Any other status stays as it is.
absl::Status ExplainWait(const absl::Status& status);

}  // namespace mpc::distributed::internal
