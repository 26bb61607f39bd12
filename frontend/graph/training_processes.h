// The processes that train together with this one. Not part of the public API: see mpc::distributed.
#pragma once

#include <memory>

#include "kernels/communicator.h"

namespace mpc::internal {

/// The processes that Models of this process train with; null: it trains alone, as it does at first.
std::shared_ptr<Communicator> TrainingProcesses();

/// Lets Models that are made or trained from now on train with `processes`; null: alone.
void SetTrainingProcesses(std::shared_ptr<Communicator> processes);

/// The number of processes that train together; 1: this one alone.
inline int NumTrainingProcesses(const Communicator* processes) { return processes == nullptr ? 1 : processes->size(); }

}  // namespace mpc::internal
