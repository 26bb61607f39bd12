// What tests of process groups share: options of ranks that meet on a port of loopback, and what errors must say.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "runtime/distributed/rendezvous.h"
#include "tests/runtime/free_port.h"

namespace mpc::test {

inline constexpr runtime::Milliseconds kTestLimit{5000};

inline runtime::JoinOptions OptionsOf(int rank, int size, int port) {
  runtime::JoinOptions options;
  options.environment = {.rank = rank, .size = size, .local_rank = rank, .local_size = size, .port = port};
  options.time_limit = kTestLimit;
  options.leave_limit = kTestLimit;
  return options;
}

/// Expects that `status` has this code and that its message has all `parts`; whether it does.
inline bool ExpectSays(const absl::Status& status, absl::StatusCode code, const std::vector<std::string>& parts) {
  bool says = status.code() == code;
  for (const std::string& part : parts) says = says && absl::StrContains(status.message(), part);
  EXPECT_TRUE(says) << status << "\nexpected: " << testing::PrintToString(parts);
  return says;
}

}  // namespace mpc::test
