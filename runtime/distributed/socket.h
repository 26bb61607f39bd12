// TCP sockets with limits of time: what the store and its clients stand on.
#pragma once

#include <chrono>
#include <string>

#include "absl/status/statusor.h"
#include "runtime/descriptor.h"

namespace mpc::runtime {

using Milliseconds = std::chrono::milliseconds;

/// A point in time until which something may take.
class Deadline {
 public:
  /// What would end behind the clock's last point in time never ends.
  explicit Deadline(Milliseconds from_now);
  /// What is left, at least 0, rounded up.
  Milliseconds Left() const;
  bool Passed() const { return Left() == Milliseconds(0); }

 private:
  std::chrono::steady_clock::time_point end_;
};

/// "2.5 s".
std::string SecondsText(Milliseconds time);
/// "host:29500", "[::1]:29500".
std::string AddressText(const std::string& address, int port);

/// An event that one thread signals and another one waits for with poll. It stays signalled.
class Signal {
 public:
  Signal();
  void Raise() const;
  int descriptor() const { return event_.get(); }
  /// False where the process has no descriptor left: the signal is then never seen.
  bool open() const { return event_.open(); }

 private:
  Descriptor event_;
};

/// How waiting for a socket ended.
enum class Readiness { kReady, kTimedOut, kSignalled };

/// Waits until `socket` is ready for `events` of poll, or has failed, which the next call on it shows. `signal` ends
/// the waiting too and counts first.
Readiness WaitFor(int socket, short events, const Deadline& deadline, const Signal& signal);

/// Whether this machine knows `address` as its own loopback. False where the name is unknown.
bool IsLoopback(const std::string& address);

/// A socket that listens, without blocking, at `address` and `port`; 0 is any free one. Errors: the name is unknown or
/// not of this machine, the port is in use (FAILED_PRECONDITION); the port may not be used (PERMISSION_DENIED).
absl::StatusOr<Descriptor> Listen(const std::string& address, int port);
/// The port that a socket is bound to.
int BoundPort(const Descriptor& socket);

/// Tries once to connect. Errors: what the system says (UNAVAILABLE), no answer (DEADLINE_EXCEEDED), `signal`
/// (CANCELLED). The socket does not block.
absl::StatusOr<Descriptor> ConnectOnce(const std::string& address, int port, const Deadline& deadline,
                                       const Signal& signal);

/// Sends without delay for small messages; a machine that is gone is found.
void SetStreamOptions(const Descriptor& socket);

}  // namespace mpc::runtime
