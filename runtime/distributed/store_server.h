// The store of rank 0: a small server of keys and values that all ranks reach over TCP.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "runtime/distributed/socket.h"

namespace mpc::runtime {

struct StoreServerOptions {
  std::string listen_address = "127.0.0.1";       ///< others reach it only where this is said
  int port = 0;                                   ///< 0: any free one
  int most_connections = 4096;                    ///< more are closed at once
  std::size_t most_bytes = std::size_t{1} << 30;  ///< memory of keys, values, and messages that have begun to come
};

/// Keeps bytes under keys, in memory alone. No message names a file or a command, and none reaches memory outside of
/// the table. Whoever reaches the port may read and write the table, so the network must be one of trusted machines.
///
/// One thread serves all connections and never waits for one of them. A message of another form closes its connection
/// and is counted. What a connection has not finished stays bounded: see StoreServerOptions and store_message.h.
class StoreServer {
 public:
  /// Listens and starts the thread. Errors as of Listen: a port in use and others.
  static absl::StatusOr<std::unique_ptr<StoreServer>> Start(const StoreServerOptions& options);
  /// Closes all connections and ends the thread.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  int port() const { return port_; }
  int connections() const;
  /// Connections that were closed since a message had another form.
  std::int64_t malformed() const { return malformed_; }
  /// Connections that were closed at once since there were too many.
  std::int64_t refused_connections() const { return refused_connections_; }

  /// Returns when no connection is left, or `limit` has passed: whether none is left.
  bool WaitUntilUnused(Milliseconds limit);

 private:
  class Loop;
  StoreServer(Descriptor listener, const StoreServerOptions& options);
  void SetConnections(int count);

  const StoreServerOptions options_;
  const int port_;
  const Signal stop_;
  std::atomic<std::int64_t> malformed_{0};
  std::atomic<std::int64_t> refused_connections_{0};
  mutable std::mutex mutex_;
  std::condition_variable unused_;
  int connections_ = 0;  ///< guarded by mutex_
  std::thread thread_;
};

}  // namespace mpc::runtime
