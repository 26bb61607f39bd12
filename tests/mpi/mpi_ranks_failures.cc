// Groups of which one process does something else.
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "frontend/distributed/distributed.h"
#include "runtime/distributed/any_order_communicator.h"
#include "runtime/distributed/mpi/mpi_library.h"
#include "tests/mpi/mpi_ranks.h"

namespace mpc::distributed {
namespace {

constexpr std::chrono::seconds kShortLimit{2};

enum class Order { kTree, kAny };

std::unique_ptr<Communicator> Opened(std::chrono::milliseconds timeout, Order order = Order::kTree) {
  absl::StatusOr<std::unique_ptr<Communicator>> group = OpenMpiCommunicator({.timeout = timeout});
  ExpectOk(group.status(), "OpenMpiCommunicator");
  ExpectOk((*group)->Barrier(), "the first Barrier");
  if (order == Order::kAny) return std::make_unique<AnyOrderCommunicator>(*std::move(group));
  return *std::move(group);
}

absl::Status Reduce(Communicator& group, std::size_t elements) {
  std::vector<float> values(elements, 1.0f);
  const ReducedPart part = {values.data(), values.data(), elements};
  return group.AllReduce({&part, 1});
}

/// Says in the folder of the test that this rank has written all it has to write.
void HaveWritten(int rank) {
  const char* folder = std::getenv("MPC_TEST_FOLDER");
  Expect(folder != nullptr, "MPC_TEST_FOLDER names no folder");
  std::ofstream(std::filesystem::path(folder) / std::to_string(rank)).put('.');
}

/// mpirun kills the other rank when one exits, so each waits until both have written.
void ExitTogether(int rank) {
  HaveWritten(rank);
  const std::filesystem::path other = std::filesystem::path(std::getenv("MPC_TEST_FOLDER")) / std::to_string(1 - rank);
  for (int i = 0; i < 2000 && !std::filesystem::exists(other); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

/// Calls `differs` in rank 1. Rank 0 reduces and writes the error that it gets.
void Run(std::chrono::milliseconds timeout, const std::function<void(std::unique_ptr<Communicator> group)>& differs,
         Order order = Order::kTree) {
  std::unique_ptr<Communicator> group = Opened(timeout, order);
  const std::string rank = "rank " + std::to_string(group->rank());
  if (group->rank() == 1) {
    differs(std::move(group));
    Say(rank + " has ended");
    ExitTogether(1);
    return;
  }
  const absl::Status status = Reduce(*group, 100'000);
  Expect(!status.ok(), "no error");
  Expect(group->Barrier() == status && Reduce(*group, 1) == status, "the error does not stay");
  Say(rank + ": " + status.ToString());
  const int number = group->rank();
  group.reset();
  Say(rank + " has ended");
  if (number == 0) ExitTogether(0);
}

void FailInBroadcast(std::unique_ptr<Communicator> group) {
  Say("rank 1: " + group->Broadcast(nullptr, 8, 0).ToString());
}

void Stop(std::unique_ptr<Communicator> /*group*/) {
  HaveWritten(1);
  ::raise(SIGSTOP);
}

}  // namespace

void RankLeaves() {
  Run(std::chrono::seconds(60), [](std::unique_ptr<Communicator> group) { group.reset(); });
}

void RankOfInitFails() {
  ExpectOk(Init({.transport = Transport::kMpi}), "Init");
  const int rank = GetRank();
  const std::shared_ptr<Communicator> group = internal::GetCommunicator();
  ExpectOk(group->Barrier(), "the first Barrier");
  if (rank == 1) {
    internal::NotePlace(17, "train_step");
    internal::TellOthers(absl::DataLossError("the disk is full")).IgnoreError();
    Say("rank 1 has ended");
  } else {
    Say("rank 0: " + group->Barrier().ToString());
    Say("rank 0 has ended");
  }
  ExitTogether(rank);
}

void RankFails() { Run(std::chrono::seconds(60), FailInBroadcast); }
void RankStops() { Run(kShortLimit, Stop); }
void RankFailsInAnyOrder() { Run(std::chrono::seconds(60), FailInBroadcast, Order::kAny); }
void RankStopsInAnyOrder() { Run(kShortLimit, Stop, Order::kAny); }

void RankSendsLess() {
  Run(std::chrono::seconds(60),
      [](std::unique_ptr<Communicator> group) { Say("rank 1: " + Reduce(*group, 50'000).ToString()); });
}

void RankSendsMore() {
  Run(std::chrono::seconds(60),
      [](std::unique_ptr<Communicator> group) { Say("rank 1: " + Reduce(*group, 200'000).ToString()); });
}

void RankCallsInAnotherThread() {
  Run(kShortLimit, [](std::unique_ptr<Communicator> group) {
    std::thread([&] { Say("rank 1: " + Reduce(*group, 100'000).ToString()); }).join();
  });
}

void RankExits() {
  Run(std::chrono::seconds(60), [](std::unique_ptr<Communicator>) { ::_exit(3); });
}

void RankIsKilled() {
  Run(std::chrono::seconds(60), [](std::unique_ptr<Communicator>) { ::raise(SIGKILL); });
}

void RankNeverOpens() {
  const char* rank = std::getenv("OMPI_COMM_WORLD_RANK");
  if (rank != nullptr && std::string(rank) == "1") ::_exit(4);
  Opened(std::chrono::seconds(60));
}

}  // namespace mpc::distributed
