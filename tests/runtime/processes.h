// Tests that need several processes fork them.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <thread>
#include <vector>

namespace mpc::test {

/// Forks `count` children, of which each calls body(rank) and ends with what it returns. An expectation of gtest that
/// fails in a child is a failure as well. Waits for all children, for at most `limit`, and kills those that are left.
/// Success where every child has ended with 0, and those of `killed` by SIGKILL before the limit.
inline ::testing::AssertionResult RunProcesses(int count, const std::function<int(int rank)>& body,
                                               const std::vector<int>& killed = {},
                                               std::chrono::seconds limit = std::chrono::seconds(120)) {
  std::fflush(nullptr);  // a child would write what is buffered again
  const pid_t parent = ::getpid();
  std::vector<pid_t> children;
  for (int rank = 0; rank < count; ++rank) {
    const pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      if (::getppid() != parent) ::_exit(1);
      const int status = body(rank);
      std::fflush(nullptr);
      ::_exit(status != 0 ? status : ::testing::Test::HasFailure() ? 1 : 0);
    }
    children.push_back(child);
  }
  ::testing::AssertionResult result = ::testing::AssertionSuccess();
  const auto fail = [&result](int rank) -> ::testing::AssertionResult& {
    if (result) result = ::testing::AssertionFailure();
    return result << "\nprocess " << rank << ' ';
  };
  const auto end = std::chrono::steady_clock::now() + limit;
  for (int running = count; running > 0; std::this_thread::sleep_for(std::chrono::milliseconds(1))) {
    const bool late = std::chrono::steady_clock::now() >= end;
    for (int rank = 0; rank < count; ++rank) {
      pid_t& child = children[static_cast<std::size_t>(rank)];
      if (child == 0) continue;
      int status = 0;
      if (child > 0 && ::waitpid(child, &status, WNOHANG) == 0) {
        if (!late) continue;
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
        fail(rank) << "did not end within " << limit.count() << " s";
      } else if (child < 0) {
        fail(rank) << "could not be forked";
      } else {
        const bool to_be_killed = std::find(killed.begin(), killed.end(), rank) != killed.end();
        const bool was_killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
        if (to_be_killed && !was_killed) fail(rank) << "was not killed";
        if (!to_be_killed && WIFSIGNALED(status)) fail(rank) << "ended by signal " << WTERMSIG(status);
        if (!to_be_killed && WIFEXITED(status) && WEXITSTATUS(status) != 0) {
          fail(rank) << "ended with status " << WEXITSTATUS(status);
        }
      }
      child = 0;
      --running;
    }
  }
  return result;
}

}  // namespace mpc::test
