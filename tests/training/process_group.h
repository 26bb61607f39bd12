// Tests in several processes that train together.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "mpc/distributed.h"
#include "tests/runtime/processes.h"
#include "tests/training/training_support.h"

namespace mpc::testing {

inline std::string TestName() {
  const ::testing::TestInfo& info = *::testing::UnitTest::GetInstance()->current_test_info();
  std::string name = absl::StrCat(info.test_suite_name(), ".", info.name());
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

/// A file of the test that runs, in every process of it.
inline std::string FilePath(const std::string& name) {
  return (std::filesystem::temp_directory_path() / absl::StrCat(TestName(), ".", name)).string();
}

/// Writes a state for another process, and reads it and removes the file.
inline void Write(const std::string& path, const Snapshot& snapshot) {
  std::ofstream file(path, std::ios::binary);
  for (const auto& [name, bytes] : snapshot) {
    file << name << '\n' << bytes.size() << '\n';
    file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
}

inline Snapshot Read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file.good()) << path;
  Snapshot snapshot;
  std::string name, size;
  while (std::getline(file, name) && std::getline(file, size)) {
    std::vector<std::uint8_t>& bytes = snapshot[name];
    bytes.resize(std::stoul(size));
    file.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }
  std::filesystem::remove(path);
  return snapshot;
}

/// A port of this machine that nothing listens on.
inline int FreePort() {
  const int descriptor = ::socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  EXPECT_EQ(::bind(descriptor, reinterpret_cast<sockaddr*>(&address), length), 0);
  EXPECT_EQ(::getsockname(descriptor, reinterpret_cast<sockaddr*>(&address), &length), 0);
  ::close(descriptor);
  return ntohs(address.sin_port);
}

/// Makes this process rank `rank` of `size`, which one thread computes. It trains with the others as `options` say.
inline absl::Status Join(int rank, int size, int port, AutoParallelOptions options = {},
                         std::chrono::milliseconds timeout = distributed::Options().timeout) {
  if (absl::Status status = SetContext({.num_threads = 1}); !status.ok()) return status;
  SetSeed(7);
  options.parallel_mode = ParallelMode::kDataParallel;
  if (absl::Status status = SetAutoParallelContext(options); !status.ok()) return status;
  distributed::Options place;
  place.rank = rank;
  place.size = size;
  place.address = absl::StrCat("127.0.0.1:", port);
  place.timeout = timeout;
  return distributed::Init(place);
}

/// Runs `body` in `size` processes that have joined.
inline ::testing::AssertionResult RunGroup(int size, const std::function<void(int rank)>& body,
                                           const std::vector<int>& killed = {},
                                           const AutoParallelOptions& options = {}) {
  const int port = FreePort();
  return test::RunProcesses(
      size,
      [&](int rank) {
        MPC_EXPECT_OK(Join(rank, size, port, options));
        if (!::testing::Test::HasFailure()) body(rank);
        distributed::Finalize();
        return 0;
      },
      killed);
}

}  // namespace mpc::testing
