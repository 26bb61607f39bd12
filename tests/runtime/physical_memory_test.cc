#include "runtime/physical_memory.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <string>

#include "absl/status/statusor.h"

namespace mpc::runtime {
namespace {

std::string Short() { return "a hundred rows need more"; }

TEST(MakeWithinMemory, GivesWhatIsMade) {
  const auto make = [] { return absl::StatusOr<std::unique_ptr<int>>(std::make_unique<int>(7)); };
  const absl::StatusOr<std::unique_ptr<int>> made = MakeWithinMemory(PhysicalMemory(), make, Short);
  ASSERT_TRUE(made.ok()) << made.status();
  EXPECT_EQ(**made, 7);
}

TEST(MakeWithinMemory, KeepsErrorsOfMaking) {
  const absl::Status status = MakeWithinMemory(
      8, [] { return absl::NotFoundError("no rows"); }, Short);
  EXPECT_EQ(status, absl::NotFoundError("no rows"));
}

TEST(MakeWithinMemory, MakesNothingThatIsLargerThanMemory) {
  const auto make = []() -> absl::StatusOr<int> {
    ADD_FAILURE() << "this would use memory that there is not";
    return 0;
  };
  EXPECT_EQ(MakeWithinMemory(PhysicalMemory() + 1, make, Short).status(), absl::ResourceExhaustedError(Short()));
}

TEST(MakeWithinMemory, SaysThatTheSystemGivesNone) {
  const auto make = []() -> absl::Status { throw std::bad_alloc(); };
  EXPECT_EQ(MakeWithinMemory(8, make, Short), absl::ResourceExhaustedError(Short()));
}

}  // namespace
}  // namespace mpc::runtime
