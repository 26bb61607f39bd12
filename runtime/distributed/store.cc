#include "runtime/distributed/store.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace mpc::runtime {
namespace {

constexpr Milliseconds kFirstPause{10};
constexpr Milliseconds kLongestPause{1000};
constexpr std::size_t kMostBarrierNameBytes = 200;

absl::Status CheckSizes(const Message& request) {
  if (request.key.empty() && request.kind != MessageKind::kHello) {
    return absl::InvalidArgumentError("a key of the store is empty: 1 to 256 bytes are accepted");
  }
  if (request.key.size() > kMostKeyBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the key \"", request.key.substr(0, 32), "...\" has ",
                                                   request.key.size(), " bytes: 1 to ", kMostKeyBytes,
                                                   " are accepted"));
  }
  if (request.value.size() > kMostValueBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the value of \"", request.key, "\" has ", request.value.size(),
                                                   " bytes: at most ", kMostValueBytes, " are accepted"));
  }
  return absl::OkStatus();
}

}  // namespace

std::string Store::Place() const { return AddressText(options_.address, options_.port); }

absl::Status Store::Gone(const std::string& why) const {
  return absl::UnavailableError(absl::StrCat("the store of rank 0 at ", Place(), " is gone: ", why));
}

absl::StatusOr<std::unique_ptr<Store>> Store::Connect(const StoreOptions& options) {
  std::unique_ptr<Store> store(new Store(options));
  if (!store->interrupt_.open()) return absl::ResourceExhaustedError("there is no file descriptor left for the store");
  const Deadline deadline(options.connect_limit);
  Milliseconds pause = kFirstPause;
  absl::Status last;
  do {
    absl::StatusOr<Descriptor> socket = ConnectOnce(options.address, options.port, deadline, store->interrupt_);
    if (socket.ok()) {
      store->socket_ = *std::move(socket);
      last = store->Hello(std::max(deadline.Left(), Milliseconds(1)));
      if (last.ok()) return store;
      if (absl::IsFailedPrecondition(last)) return last;
    } else {
      last = socket.status();
    }
    WaitFor(-1, 0, Deadline(std::min(pause, deadline.Left())), store->interrupt_);
    pause = std::min(2 * pause, kLongestPause);
  } while (!deadline.Passed());
  return absl::DeadlineExceededError(absl::StrCat(
      "the store of rank 0 at ", store->Place(), " was not reached within ", SecondsText(options.connect_limit), ": ",
      last.message(), "; does rank 0 run there, and do all ranks have the same MASTER_ADDR and MASTER_PORT?"));
}

absl::Status Store::Hello(Milliseconds limit) {
  const absl::StatusOr<Message> reply = Exchange(Message{}, limit);
  return reply.status();
}

absl::StatusOr<Message> Store::Call(const Message& request, Milliseconds wait) {
  if (absl::Status status = CheckSizes(request); !status.ok()) return status;
  if (!failed_.ok()) return failed_;
  absl::StatusOr<Message> reply = Exchange(request, wait + options_.answer_limit);
  if (!reply.ok()) {
    failed_ = reply.status();
    return reply;
  }
  if (reply->code == ReplyCode::kTimedOut) {
    return absl::DeadlineExceededError(
        absl::StrCat("\"", request.key, "\" has no value in the store of rank 0 within ", SecondsText(wait)));
  }
  if (reply->code == ReplyCode::kNoCounter) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", request.key, "\" of the store is no counter to which ", request.number, " can be added"));
  }
  if (reply->code == ReplyCode::kFull) {
    return absl::ResourceExhaustedError(absl::StrCat("the store of rank 0 at ", Place(), " has no memory left for \"",
                                                     request.key, "\" of ", request.value.size(), " bytes"));
  }
  return reply;
}

absl::StatusOr<Message> Store::Exchange(const Message& request, Milliseconds limit) {
  const Deadline deadline(limit);
  if (absl::Status status = Send(EncodeMessage(request), deadline); !status.ok()) return status;
  return Receive(deadline, limit);
}

absl::Status Store::Send(std::string_view bytes, const Deadline& deadline) {
  in_order_ = false;
  while (!bytes.empty()) {
    const ::ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN && errno != EWOULDBLOCK) return Gone(std::generic_category().message(errno));
    const Readiness readiness = WaitFor(socket_.get(), POLLOUT, deadline, interrupt_);
    if (readiness == Readiness::kSignalled) return absl::CancelledError("the call of the store was interrupted");
    if (readiness == Readiness::kTimedOut) return Gone("it takes no bytes");
  }
  in_order_ = true;
  return absl::OkStatus();
}

absl::StatusOr<Message> Store::Receive(const Deadline& deadline, Milliseconds limit) {
  std::string input;
  const std::string origin = absl::StrCat("the store of rank 0 at ", Place());
  for (;;) {
    const Readiness readiness = WaitFor(socket_.get(), POLLIN, deadline, interrupt_);
    if (readiness == Readiness::kSignalled) return absl::CancelledError("the call of the store was interrupted");
    if (readiness == Readiness::kTimedOut) return Gone(absl::StrCat("it has not answered for ", SecondsText(limit)));
    char buffer[kReadBytes];
    const ::ssize_t received = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
    if (received < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) continue;
    if (received < 0) return Gone(std::generic_category().message(errno));
    if (received == 0) return Gone("it has closed the connection");
    input.append(buffer, static_cast<std::size_t>(received));
    if (const std::optional<int> version = OtherVersion(BytesOf(input))) {
      return absl::FailedPreconditionError(absl::StrCat(origin, " speaks version ", *version,
                                                        " and this process version ", kStoreVersion,
                                                        ": install the same mpc for all ranks"));
    }
    absl::StatusOr<std::optional<DecodedMessage>> decoded = DecodeMessage(BytesOf(input), origin);
    if (!decoded.ok() || (decoded->has_value() &&
                          ((*decoded)->message.kind != MessageKind::kReply || (*decoded)->bytes != input.size()))) {
      return absl::FailedPreconditionError(
          absl::StrCat("what listens at ", Place(), " is no store of mpc: give all ranks another MASTER_PORT"));
    }
    if (decoded->has_value()) return std::move((*decoded)->message);
  }
}

absl::Status Store::Set(const std::string& key, std::string_view value) {
  return Call({.kind = MessageKind::kSet, .key = key, .value = std::string(value)}).status();
}

absl::StatusOr<std::string> Store::Get(const std::string& key, Milliseconds wait) {
  wait = std::clamp(wait, Milliseconds(0), kLongestWait);
  absl::StatusOr<Message> reply = Call({.kind = MessageKind::kGet, .number = wait.count(), .key = key}, wait);
  if (!reply.ok()) return reply.status();
  return std::move(reply->value);
}

absl::StatusOr<std::int64_t> Store::Add(const std::string& key, std::int64_t number) {
  const absl::StatusOr<Message> reply = Call({.kind = MessageKind::kAdd, .number = number, .key = key});
  if (!reply.ok()) return reply.status();
  return reply->number;
}

absl::StatusOr<std::string> Store::Claim(const std::string& key, std::string_view value) {
  absl::StatusOr<Message> reply = Call({.kind = MessageKind::kClaim, .key = key, .value = std::string(value)});
  if (!reply.ok()) return reply.status();
  return std::move(reply->value);
}

absl::StatusOr<bool> Store::Remove(const std::string& key) {
  const absl::StatusOr<Message> reply = Call({.kind = MessageKind::kRemove, .key = key});
  if (!reply.ok()) return reply.status();
  return reply->number == 1;
}

absl::Status Store::Wait(absl::Span<const std::string> keys, Milliseconds wait) {
  const Deadline deadline(wait);
  for (const std::string& key : keys) {
    const absl::Status status = Get(key, deadline.Left()).status();
    if (absl::IsDeadlineExceeded(status)) {
      return absl::DeadlineExceededError(
          absl::StrCat("\"", key, "\" has no value in the store of rank 0 within ", SecondsText(wait)));
    }
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::Status Store::Barrier(const std::string& name, int size, Milliseconds wait) {
  if (name.size() > kMostBarrierNameBytes || size < 1) {
    return absl::InvalidArgumentError(absl::StrCat("a barrier with a name of ", name.size(), " bytes and size ", size,
                                                   ": at most ", kMostBarrierNameBytes, " bytes and at least 1"));
  }
  const std::string count_key = absl::StrCat("barrier/", name, "/count");
  const absl::StatusOr<std::int64_t> count = Add(count_key, 1);
  if (!count.ok()) return count.status();
  const std::int64_t round = (*count - 1) / size;
  const std::string open_key = absl::StrCat("barrier/", name, "/open/", round);
  if (*count % size == 0) {
    // Everybody has left the round before the last one.
    if (round > 0) {
      if (absl::Status status = Remove(absl::StrCat("barrier/", name, "/open/", round - 1)).status(); !status.ok()) {
        return status;
      }
    }
    return Set(open_key, "");
  }
  const absl::Status status = Get(open_key, wait).status();
  if (!absl::IsDeadlineExceeded(status)) return status;
  const absl::StatusOr<std::int64_t> come = Add(count_key, 0);
  if (!come.ok()) return come.status();
  return absl::DeadlineExceededError(absl::StrCat("barrier \"", name, "\": ", *come - round * size, " of ", size,
                                                  " have come within ", SecondsText(wait)));
}

absl::Status Store::SetWill(const std::string& key, std::string_view value) {
  return Call({.kind = MessageKind::kWill, .key = key, .value = std::string(value)}).status();
}

void Store::Goodbye() {
  if (!socket_.open()) return;
  const Deadline deadline(std::min(options_.answer_limit, Milliseconds(1000)));
  const Signal never;
  // A message that was sent in part would make this one a part of it.
  if (in_order_) {
    const std::string bytes = EncodeMessage({.kind = MessageKind::kGoodbye});
    [[maybe_unused]] const ::ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    // Bytes that are not read when a socket closes would take back what was sent: read until the store closes.
    char buffer[kReadBytes];
    while (WaitFor(socket_.get(), POLLIN, deadline, never) == Readiness::kReady) {
      const ::ssize_t received = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
      if (received == 0 || (received < 0 && errno != EINTR && errno != EAGAIN)) break;
    }
  }
  socket_.Close();
  failed_ = absl::UnavailableError("goodbye was said to the store");
}

}  // namespace mpc::runtime
