// What a whole group computes.
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "frontend/distributed/distributed.h"
#include "frontend/distributed/exchange.h"
#include "runtime/distributed/mpi/mpi_library.h"
#include "tests/mpi/mpi_ranks.h"
#include "tests/runtime/collective_checks.h"

namespace mpc::distributed {
namespace {

std::unique_ptr<Communicator> Opened(const MpiOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<Communicator>> group = OpenMpiCommunicator(options);
  ExpectOk(group.status(), "OpenMpiCommunicator");
  return *std::move(group);
}

void ExpectNoFailure() { Expect(!testing::Test::HasFailure(), "results differ"); }

}  // namespace

void Results() {
  const std::unique_ptr<Communicator> group = Opened();
  Expect(group->transport() == "mpi", "the transport's name");
  if (std::has_single_bit(static_cast<unsigned>(group->size()))) {
    test::CheckCollectives(*group, std::size_t{1} << 16);
    test::CheckAllReduceBits(*group, 1, {3'000'000, 5});  // several chunks
  } else {
    for (const std::size_t bytes : {1, 13, 4096, 1'000'003}) test::CheckCopies(*group, 2, bytes);
  }
  for (int i = 0; i < 100; ++i) ExpectOk(group->Barrier(), "Barrier");
  ExpectNoFailure();
  Say("rank " + std::to_string(group->rank()) + " of " + std::to_string(group->size()) + " has all results");
}

void LongMessages() {
  const std::unique_ptr<Communicator> group = Opened();
  test::CheckCopies(*group, 3, (std::size_t{70} << 20) + 13);
  ExpectNoFailure();
  Say("rank " + std::to_string(group->rank()) + " has long messages");
}

void Opening() {
  {
    const std::unique_ptr<Communicator> first = Opened({.size = 2});
    {
      const std::unique_ptr<Communicator> second = Opened();
      ExpectOk(second->Barrier(), "Barrier of a second group");
    }
    ExpectOk(first->Barrier(), "Barrier after the second group");
  }
  Say("again: " + OpenMpiCommunicator().status().ToString());
}

void InitOverMpi() {
  ExpectOk(Init({.transport = Transport::kMpi}), "Init");
  const std::shared_ptr<Communicator> group = internal::GetCommunicator();
  const absl::StatusOr<std::vector<std::string>> ranks = GatherBytes(*group, std::to_string(GetRank()));
  ExpectOk(ranks.status(), "GatherBytes");
  Say("rank " + std::to_string(GetRank()) + " of " + std::to_string(GetRankSize()) + ", local rank " +
      std::to_string(GetLocalRank()) + ", over " + std::string(group->transport()) + ": " + ranks->at(0) + " " +
      ranks->at(1));
  Finalize();
}

}  // namespace mpc::distributed
