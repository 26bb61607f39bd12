// What tests let run beside each other.
#pragma once

#include <functional>
#include <thread>
#include <vector>

namespace mpc::test {

/// Calls body(0) .. body(count - 1), each on a thread of its own, and waits for all.
inline void OnThreads(int count, const std::function<void(int thread)>& body) {
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back(body, i);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace mpc::test
