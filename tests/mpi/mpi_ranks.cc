// mpi_ranks SCENARIO: one process of a group. tests/mpi/mpi_test.py starts it with mpirun and says what must come of
// it.
#include "tests/mpi/mpi_ranks.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

namespace mpc::distributed {

void Expect(bool holds, std::string_view what) {
  if (holds) return;
  std::cerr << "mpi_ranks: " << what << std::endl;
  ::_exit(1);
}

void ExpectOk(const absl::Status& status, std::string_view what) {
  Expect(status.ok(), std::string(what) + ": " + status.ToString());
}

void Say(std::string_view line) { std::cout << std::string(line) + "\n" << std::flush; }

}  // namespace mpc::distributed

int main(int count, char** arguments) {
  using namespace mpc::distributed;
  const std::map<std::string, void (*)()> scenarios = {
      {"results", Results},
      {"any-order", SumsInAnyOrder},
      {"long-messages", LongMessages},
      {"opening", Opening},
      {"init", InitOverMpi},
      {"init-fails", RankOfInitFails},
      {"leaves", RankLeaves},
      {"fails", RankFails},
      {"stops", RankStops},
      {"fails-in-any-order", RankFailsInAnyOrder},
      {"stops-in-any-order", RankStopsInAnyOrder},
      {"sends-less", RankSendsLess},
      {"sends-more", RankSendsMore},
      {"another-thread", RankCallsInAnotherThread},
      {"exits", RankExits},
      {"is-killed", RankIsKilled},
      {"never-opens", RankNeverOpens},
  };
  const auto scenario = scenarios.find(count == 2 ? arguments[1] : "");
  testing::InitGoogleTest();
  if (scenario == scenarios.end()) {
    std::cerr << "usage: mpi_ranks SCENARIO\n";
    return 2;
  }
  scenario->second();
  return 0;
}
