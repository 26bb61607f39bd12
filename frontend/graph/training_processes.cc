#include "frontend/graph/training_processes.h"

#include <mutex>
#include <utility>

namespace mpc::internal {
namespace {

struct Shared {
  std::mutex mutex;
  std::shared_ptr<Communicator> processes;
};

Shared& TheProcesses() {
  static auto* const shared = new Shared;
  return *shared;
}

}  // namespace

std::shared_ptr<Communicator> TrainingProcesses() {
  Shared& shared = TheProcesses();
  const std::lock_guard lock(shared.mutex);
  return shared.processes;
}

void SetTrainingProcesses(std::shared_ptr<Communicator> processes) {
  Shared& shared = TheProcesses();
  const std::lock_guard lock(shared.mutex);
  shared.processes = std::move(processes);
}

}  // namespace mpc::internal
