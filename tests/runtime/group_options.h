// Options of process groups in tests: ranks of one machine that meet on a port of loopback.
#pragma once

#include <vector>

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

}  // namespace mpc::test
