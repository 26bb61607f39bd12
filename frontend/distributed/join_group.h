// How a process finds the others: behind distributed::Init. Not part of the public API.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "frontend/distributed/distributed.h"
#include "frontend/distributed/loss_deadline.h"
#include "kernels/communicator.h"
#include "runtime/distributed/launch_environment.h"
#include "runtime/distributed/rendezvous.h"

namespace mpc::distributed::internal {

/// What Init keeps. Members are destroyed from the last one up.
struct JoinedGroup {
  runtime::LaunchEnvironment place;
  int threads = 1;                                 ///< threads of each rank
  std::shared_ptr<runtime::ProcessGroup> control;  ///< null where there is one process
  std::unique_ptr<LossDeadline> deadline;          ///< as above; cancelled before `control` ends
  std::shared_ptr<Communicator> communicator;      ///< as above; Models that train hold it too
  std::shared_ptr<Communicator> any_order;         ///< `communicator` in its own order, once it was asked for
};

/// The environment with what `options` say in place of it. `get` reads a variable. Errors (INVALID_ARGUMENT): options
/// that are out of range, or given without others that they need.
absl::StatusOr<runtime::LaunchEnvironment> PlaceOf(const Options& options,
                                                   const std::function<const char*(const char*)>& get);

/// Threads that a process without a group can compute with.
int ThreadsOfOneProcess();

/// Errors are those of Init.
absl::StatusOr<JoinedGroup> JoinGroup(const Options& options, const std::function<const char*(const char*)>& get);

}  // namespace mpc::distributed::internal
