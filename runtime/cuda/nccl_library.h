// The table of NCCL calls over libnccl.so.2, which is opened when it is first asked for. A program that trains alone
// needs no NCCL.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "runtime/cuda/nccl_api.h"

namespace mpc::runtime {

/// The library that MPC_NCCL_LIBRARY names; where it is not set, libnccl.so.2 of the loader's folders or of the
/// build's. Errors (UNAVAILABLE): the build had no nccl.h, or the library cannot be opened, with the loader's reason.
/// So are a library that lacks a function, one older than 2.14, and one of another major version than the header.
absl::StatusOr<NcclApi*> OpenNccl();

/// The first of `files` that the loader can open. Errors: those of OpenNccl.
absl::StatusOr<std::unique_ptr<NcclApi>> OpenNcclLibrary(const std::vector<std::string>& files);

}  // namespace mpc::runtime
