#include "runtime/distributed/socket.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace mpc::runtime {
namespace {

constexpr int kBacklog = 1024;
/// poll takes an int of milliseconds.
constexpr Milliseconds kLongestPoll{3600 * 1000};

using Addresses = std::unique_ptr<::addrinfo, decltype(&::freeaddrinfo)>;

std::string ErrorText(int error) { return std::generic_category().message(error); }

absl::StatusOr<Addresses> Resolve(const std::string& address, int port, int flags) {
  ::addrinfo wanted{};
  wanted.ai_family = AF_UNSPEC;
  wanted.ai_socktype = SOCK_STREAM;
  wanted.ai_flags = AI_NUMERICSERV | flags;
  ::addrinfo* found = nullptr;
  const int error = ::getaddrinfo(address.c_str(), std::to_string(port).c_str(), &wanted, &found);
  if (error == 0) return Addresses(found, &::freeaddrinfo);
  return absl::UnavailableError(absl::StrCat("the name \"", address, "\" is unknown here: ", ::gai_strerror(error)));
}

bool IsLoopbackAddress(const ::sockaddr& address) {
  if (address.sa_family == AF_INET) {
    ::sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof(v4));
    return ntohl(v4.sin_addr.s_addr) >> 24 == IN_LOOPBACKNET;
  }
  if (address.sa_family != AF_INET6) return false;
  ::sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof(v6));
  return IN6_IS_ADDR_LOOPBACK(&v6.sin6_addr);
}

Descriptor NewSocket(const ::addrinfo& address) {
  return Descriptor(::socket(address.ai_family, address.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

absl::Status ListenError(int error, const std::string& address, int port) {
  const std::string place = AddressText(address, port);
  if (error == EADDRINUSE) {
    return absl::FailedPreconditionError(absl::StrCat(
        "rank 0 cannot listen at ", place,
        ": the port is in use by another process; end that process, or give all ranks another MASTER_PORT"));
  }
  if (error == EADDRNOTAVAIL) {
    return absl::FailedPreconditionError(
        absl::StrCat("rank 0 cannot listen at ", place,
                     ": the address is none of this machine; MASTER_ADDR must name the machine of rank 0"));
  }
  if (error == EACCES) {
    return absl::PermissionDeniedError(
        absl::StrCat("rank 0 may not listen at ", place, "; give all ranks a MASTER_PORT from 1024 on"));
  }
  return absl::ErrnoToStatus(error, absl::StrCat("rank 0 cannot listen at ", place));
}

/// A port that nobody listens on may connect to itself where the system chose it as the local port.
bool IsConnectedToItself(const Descriptor& socket) {
  ::sockaddr_storage here{}, there{};
  ::socklen_t here_size = sizeof(here), there_size = sizeof(there);
  return ::getsockname(socket.get(), reinterpret_cast<::sockaddr*>(&here), &here_size) == 0 &&
         ::getpeername(socket.get(), reinterpret_cast<::sockaddr*>(&there), &there_size) == 0 &&
         here_size == there_size && std::memcmp(&here, &there, here_size) == 0;
}

/// 0, or the error of connecting.
int FinishConnecting(const Descriptor& socket) {
  int error = 0;
  ::socklen_t size = sizeof(error);
  if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) return errno;
  if (error == 0 && IsConnectedToItself(socket)) return ECONNREFUSED;
  return error;
}

}  // namespace

Deadline::Deadline(Milliseconds from_now) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point now = Clock::now();
  end_ = now + std::min(from_now, std::chrono::floor<Milliseconds>(Clock::time_point::max() - now));
}

Milliseconds Deadline::Left() const {
  const auto left = std::chrono::ceil<Milliseconds>(end_ - std::chrono::steady_clock::now());
  return std::max(left, Milliseconds(0));
}

std::string SecondsText(Milliseconds time) { return absl::StrCat(static_cast<double>(time.count()) / 1000, " s"); }

std::string AddressText(const std::string& address, int port) {
  const bool v6 = address.find(':') != std::string::npos;
  return v6 ? absl::StrCat("[", address, "]:", port) : absl::StrCat(address, ":", port);
}

Signal::Signal() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Signal::Raise() const {
  const std::uint64_t one = 1;
  while (::write(event_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
  }
}

Readiness WaitFor(int socket, short events, const Deadline& deadline, const Signal& signal) {
  for (;;) {
    const Milliseconds left = deadline.Left();
    ::pollfd polled[] = {{signal.descriptor(), POLLIN, 0}, {socket, events, 0}};
    const int ready = ::poll(polled, 2, static_cast<int>(std::min(left, kLongestPoll).count()));
    if (ready > 0) return polled[0].revents != 0 ? Readiness::kSignalled : Readiness::kReady;
    if (ready < 0 && errno != EINTR) return Readiness::kReady;
    if (left == Milliseconds(0)) return Readiness::kTimedOut;
  }
}

bool IsLoopback(const std::string& address) {
  const absl::StatusOr<Addresses> found = Resolve(address, 0, 0);
  return found.ok() && IsLoopbackAddress(*(*found)->ai_addr);
}

absl::StatusOr<Descriptor> Listen(const std::string& address, int port) {
  const absl::StatusOr<Addresses> found = Resolve(address, port, AI_PASSIVE);
  if (!found.ok()) {
    return absl::FailedPreconditionError(absl::StrCat("rank 0 cannot listen: ", found.status().message()));
  }
  int error = EADDRNOTAVAIL;
  // A name may have an address of a protocol that this machine does not have.
  for (const ::addrinfo* at = found->get(); at != nullptr && error != EADDRINUSE; at = at->ai_next) {
    Descriptor socket = NewSocket(*at);
    const int on = 1;
    if (socket.open() && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
        ::bind(socket.get(), at->ai_addr, at->ai_addrlen) == 0 && ::listen(socket.get(), kBacklog) == 0) {
      return socket;
    }
    error = errno;
  }
  return ListenError(error, address, port);
}

int BoundPort(const Descriptor& socket) {
  ::sockaddr_storage bound{};
  ::socklen_t size = sizeof(bound);
  if (::getsockname(socket.get(), reinterpret_cast<::sockaddr*>(&bound), &size) != 0) return 0;
  // The port is at one place in the addresses of both families.
  static_assert(offsetof(::sockaddr_in, sin_port) == offsetof(::sockaddr_in6, sin6_port));
  ::sockaddr_in v4{};
  std::memcpy(&v4, &bound, sizeof(v4));
  return ntohs(v4.sin_port);
}

absl::StatusOr<Descriptor> ConnectOnce(const std::string& address, int port, const Deadline& deadline,
                                       const Signal& signal) {
  const absl::StatusOr<Addresses> found = Resolve(address, port, 0);
  if (!found.ok()) return found.status();
  int error = ECONNREFUSED;
  for (const ::addrinfo* at = found->get(); at != nullptr; at = at->ai_next) {
    Descriptor socket = NewSocket(*at);
    if (!socket.open()) return absl::ErrnoToStatus(errno, "cannot make a socket");
    error = ::connect(socket.get(), at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
    if (error == EINPROGRESS || error == EINTR) {
      const Readiness readiness = WaitFor(socket.get(), POLLOUT, deadline, signal);
      if (readiness == Readiness::kTimedOut) return absl::DeadlineExceededError("nobody answers");
      if (readiness == Readiness::kSignalled) return absl::CancelledError("connecting was interrupted");
      error = 0;
    }
    if (error == 0) error = FinishConnecting(socket);
    if (error != 0) continue;
    SetStreamOptions(socket);
    return socket;
  }
  return absl::UnavailableError(ErrorText(error));
}

void SetStreamOptions(const Descriptor& socket) {
  const int on = 1;
  ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  ::setsockopt(socket.get(), SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
}

}  // namespace mpc::runtime
