// Tests in processes that have joined a group.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "absl/strings/str_cat.h"
#include "frontend/distributed/exchange.h"
#include "mpc/mpc.h"
#include "tests/runtime/free_port.h"
#include "tests/runtime/processes.h"

namespace mpc::testing {

/// Makes this process rank `rank` of `size`, which one thread computes.
inline absl::Status JoinGroup(int rank, int size, int port) {
  if (absl::Status status = SetContext({.num_threads = 1}); !status.ok()) return status;
  SetSeed(7);
  return distributed::Init({.rank = rank, .size = size, .address = absl::StrCat("127.0.0.1:", port)});
}

/// Runs `body` in `size` processes that have joined. The test itself must not have computed anything before.
inline ::testing::AssertionResult RunInGroup(int size, const std::function<void(int rank)>& body) {
  const int port = test::FreePort();
  return test::RunProcesses(size, [&](int rank) {
    const absl::Status status = JoinGroup(rank, size, port);
    EXPECT_TRUE(status.ok()) << status;
    if (status.ok()) body(rank);
    distributed::Finalize();
    return 0;
  });
}

/// Fails where the bytes of `tensor` are not those of rank 0. All processes call it.
inline void ExpectEqualInAllRanks(const Tensor& tensor, const std::string& what) {
  const auto& group = distributed::internal::GetCommunicator();
  ASSERT_NE(group, nullptr);
  const auto all =
      distributed::GatherBytes(*group, {reinterpret_cast<const char*>(tensor.bytes().data()), tensor.bytes().size()});
  ASSERT_TRUE(all.ok()) << all.status();
  for (std::size_t rank = 1; rank < all->size(); ++rank) {
    EXPECT_TRUE((*all)[rank] == all->front()) << what << " of rank " << rank << " differs from that of rank 0";
  }
}

/// As above, of every Parameter of `cell`.
inline void ExpectEqualParameters(nn::Cell& cell) {
  for (const auto& [name, parameter] : cell.ParametersAndNames()) {
    const absl::StatusOr<Tensor> value = parameter.Value();
    ASSERT_TRUE(value.ok()) << value.status();
    ExpectEqualInAllRanks(*value, name);
  }
}

}  // namespace mpc::testing
