// A port for tests whose processes must agree on one before any of them listens.
#pragma once

#include <gtest/gtest.h>

#include "runtime/distributed/socket.h"

namespace mpc::test {

/// A port of loopback that nobody listens on now.
inline int FreePort() {
  const absl::StatusOr<runtime::Descriptor> socket = runtime::Listen("127.0.0.1", 0);
  EXPECT_TRUE(socket.ok()) << socket.status();
  return socket.ok() ? runtime::BoundPort(*socket) : 0;
}

}  // namespace mpc::test
