#include "runtime/distributed/store_server.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/distributed/store_message.h"

namespace mpc::runtime {
namespace {

/// What a key costs beside its bytes.
constexpr std::size_t kEntryBytes = 128;

/// A value that the table and replies under way share. Its bytes count as used until both are gone.
class Value {
 public:
  Value(std::string bytes, std::size_t* used) : bytes_(std::move(bytes)), used_(used) { *used_ += bytes_.size(); }
  ~Value() { *used_ -= bytes_.size(); }
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  const std::string& bytes() const { return bytes_; }

 private:
  std::string bytes_;
  std::size_t* used_;
};
using ValuePointer = std::shared_ptr<const Value>;

struct Reply {
  std::string header;
  ValuePointer value;  ///< null: none
  std::size_t sent = 0;
};

struct Wait {
  std::string key;
  Deadline deadline;
};

struct Will {
  std::string key;
  ValuePointer value;
};

struct Connection {
  explicit Connection(Descriptor opened) : socket(std::move(opened)) {}
  Descriptor socket;
  std::string input;  ///< bytes of messages that are not handled
  std::optional<Reply> reply;
  std::optional<Wait> wait;
  std::optional<Will> will;
  std::size_t discards = 0;  ///< bytes of a message that there is no memory for
  bool closes = false;       ///< once the reply is sent
  bool closed = false;
};

std::string EncodeCounter(std::int64_t value) {
  std::string bytes(sizeof(value), '\0');
  std::memcpy(bytes.data(), &value, sizeof(value));
  return bytes;
}

/// nullopt: `bytes` is no counter, or the sum is out of range.
std::optional<std::int64_t> AddToCounter(const std::string& bytes, std::int64_t number) {
  std::int64_t value = 0;
  if (bytes.size() != sizeof(value)) return std::nullopt;
  std::memcpy(&value, bytes.data(), sizeof(value));
  if (__builtin_add_overflow(value, number, &value)) return std::nullopt;
  return value;
}

}  // namespace

/// What the thread has: the table, and the connections. No other thread sees it.
class StoreServer::Loop {
 public:
  Loop(StoreServer& server, Descriptor listener)
      : server_(server), listener_(std::move(listener)), spare_(OpenSpare()) {}

  void Run() {
    std::vector<::pollfd> polled;
    for (;;) {
      FillPolled(polled);
      const int ready = ::poll(polled.data(), polled.size(), PollLimit());
      if (ready < 0 && errno != EINTR) return;
      if (ready > 0 && polled[0].revents != 0) return;
      if (ready > 0) ServeReady(polled);
      EndWaits();
      RemoveClosed();
    }
  }

 private:
  static Descriptor OpenSpare() { return Descriptor(::open("/dev/null", O_RDONLY | O_CLOEXEC)); }

  void FillPolled(std::vector<::pollfd>& polled) const {
    polled = {{server_.stop_.descriptor(), POLLIN, 0}, {listener_.get(), POLLIN, 0}};
    for (const auto& connection : connections_) {
      const short events = connection->reply.has_value() ? POLLOUT : POLLIN;
      polled.push_back({connection->socket.get(), events, 0});
    }
  }

  /// Until the first wait ends; -1: no connection waits.
  int PollLimit() const {
    std::optional<Milliseconds> first;
    for (const auto& connection : connections_) {
      if (!connection->wait.has_value()) continue;
      const Milliseconds left = connection->wait->deadline.Left();
      first = first.has_value() ? std::min(*first, left) : left;
    }
    if (!first.has_value()) return -1;
    return static_cast<int>(std::min<std::int64_t>(first->count(), std::numeric_limits<int>::max()));
  }

  void ServeReady(const std::vector<::pollfd>& polled) {
    for (std::size_t i = 2; i < polled.size(); ++i) {
      Connection& connection = *connections_[i - 2];
      if (polled[i].revents == 0 || connection.closed) continue;
      if (connection.reply.has_value()) {
        Send(connection);
      } else {
        Receive(connection);
      }
      while (HandleInput(connection)) {
      }
    }
    if (polled[1].revents != 0) Accept();
  }

  void Accept() {
    for (;;) {
      Descriptor accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (!accepted.open()) {
        if (errno == EINTR || errno == ECONNABORTED) continue;
        if (errno == EMFILE || errno == ENFILE) RefuseWithoutDescriptors();
        return;
      }
      if (static_cast<int>(connections_.size()) >= server_.options_.most_connections) {
        ++server_.refused_connections_;
        continue;
      }
      SetStreamOptions(accepted);
      connections_.push_back(std::make_unique<Connection>(std::move(accepted)));
      server_.SetConnections(static_cast<int>(connections_.size()));
    }
  }

  /// The process has no descriptor left. The spare one takes the connection, so that it does not stay ready for ever.
  void RefuseWithoutDescriptors() {
    spare_.Close();
    const Descriptor accepted(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
    if (accepted.open()) ++server_.refused_connections_;
    spare_ = OpenSpare();
  }

  void Receive(Connection& connection) {
    char buffer[kReadBytes];
    const ::ssize_t received = ::recv(connection.socket.get(), buffer, sizeof(buffer), 0);
    if (received < 0 && (errno == EINTR || errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (received <= 0) {
      connection.closed = true;
      return;
    }
    const std::size_t before = connection.input.capacity();
    connection.input.append(buffer, static_cast<std::size_t>(received));
    used_ += connection.input.capacity() - before;
  }

  /// Handles the first message that has come: whether there was one. Each reply is sent before the next message counts.
  bool HandleInput(Connection& connection) {
    if (connection.closed || connection.reply.has_value() || connection.input.empty()) return false;
    if (connection.discards > 0) return Discard(connection);
    const auto announced = AnnouncedBytes(BytesOf(connection.input), "client");
    if (!announced.ok()) return Refuse(connection);
    if (!announced->has_value()) return false;
    if (used_ + **announced > server_.options_.most_bytes) {
      connection.discards = **announced;
      return Discard(connection);
    }
    absl::StatusOr<std::optional<DecodedMessage>> decoded = DecodeMessage(BytesOf(connection.input), "client");
    if (!decoded.ok()) return Refuse(connection);
    if (!decoded->has_value()) return false;
    DropInput(connection, (*decoded)->bytes);
    Handle(connection, (*decoded)->message);
    return true;
  }

  /// Passes over a message that there is no memory for, and says so at its end: whether it has ended.
  bool Discard(Connection& connection) {
    const std::size_t bytes = std::min(connection.discards, connection.input.size());
    DropInput(connection, bytes);
    connection.discards -= bytes;
    if (connection.discards > 0) return false;
    if (!connection.wait.has_value()) Answer(connection, ReplyCode::kFull, 0, nullptr);
    return true;
  }

  void DropInput(Connection& connection, std::size_t bytes) {
    used_ -= connection.input.capacity();
    connection.input = connection.input.substr(bytes);
    connection.input.shrink_to_fit();
    used_ += connection.input.capacity();
  }

  /// Another version is told ours, so that it can say so. Anything else hears nothing.
  bool Refuse(Connection& connection) {
    ++server_.malformed_;
    if (!OtherVersion(BytesOf(connection.input)).has_value() || connection.wait.has_value()) {
      connection.closed = true;
      return false;
    }
    connection.closes = true;
    Answer(connection, ReplyCode::kOtherVersion, kStoreVersion, nullptr);
    return false;
  }

  void Handle(Connection& connection, Message& message) {
    if (message.kind == MessageKind::kGoodbye) {
      connection.will.reset();
      connection.closed = true;
      return;
    }
    if (connection.wait.has_value()) {
      Refuse(connection);
      return;
    }
    switch (message.kind) {
      case MessageKind::kHello:
        return Answer(connection, ReplyCode::kDone, kStoreVersion, nullptr);
      case MessageKind::kSet:
        Put(message.key, MakeValue(message.value));
        return Answer(connection, ReplyCode::kDone, 0, nullptr);
      case MessageKind::kGet:
        return Get(connection, message);
      case MessageKind::kAdd:
        return Add(connection, message);
      case MessageKind::kClaim:
        return Answer(connection, ReplyCode::kDone, 0, Claim(message.key, MakeValue(message.value)));
      case MessageKind::kRemove:
        return Answer(connection, ReplyCode::kDone, Remove(message.key), nullptr);
      case MessageKind::kWill:
        connection.will.reset();
        if (!message.value.empty()) connection.will = Will{message.key, MakeValue(message.value)};
        return Answer(connection, ReplyCode::kDone, 0, nullptr);
      case MessageKind::kGoodbye:
      case MessageKind::kReply:
        Refuse(connection);
        return;
    }
  }

  void Get(Connection& connection, const Message& message) {
    const auto found = table_.find(message.key);
    if (found != table_.end()) return Answer(connection, ReplyCode::kDone, 0, found->second);
    connection.wait = Wait{message.key, Deadline(Milliseconds(message.number))};
  }

  void Add(Connection& connection, const Message& message) {
    const auto found = table_.find(message.key);
    const std::optional<std::int64_t> sum =
        AddToCounter(found == table_.end() ? EncodeCounter(0) : found->second->bytes(), message.number);
    if (!sum.has_value()) return Answer(connection, ReplyCode::kNoCounter, 0, nullptr);
    std::string bytes = EncodeCounter(*sum);
    Put(message.key, MakeValue(bytes));
    Answer(connection, ReplyCode::kDone, *sum, nullptr);
  }

  /// Gives the key its value, and the value to those who wait for it.
  ValuePointer Put(const std::string& key, const ValuePointer& value) {
    const bool inserted = table_.insert_or_assign(key, value).second;
    if (inserted) used_ += key.size() + kEntryBytes;
    for (const auto& connection : connections_) {
      if (connection->closed || !connection->wait.has_value() || connection->wait->key != key) continue;
      connection->wait.reset();
      Answer(*connection, ReplyCode::kDone, 0, value);
    }
    return value;
  }

  ValuePointer Claim(const std::string& key, const ValuePointer& value) {
    const auto found = table_.find(key);
    return found != table_.end() ? found->second : Put(key, value);
  }

  /// Takes the bytes.
  ValuePointer MakeValue(std::string& bytes) { return std::make_shared<const Value>(std::move(bytes), &used_); }

  std::int64_t Remove(const std::string& key) {
    if (table_.erase(key) == 0) return 0;
    used_ -= key.size() + kEntryBytes;
    return 1;
  }

  void Answer(Connection& connection, ReplyCode code, std::int64_t number, ValuePointer value) {
    const std::size_t value_bytes = value != nullptr ? value->bytes().size() : 0;
    connection.reply = Reply{EncodeReplyHeader(code, number, value_bytes), std::move(value)};
    Send(connection);
  }

  void Send(Connection& connection) {
    while (connection.reply.has_value()) {
      Reply& reply = *connection.reply;
      const std::size_t header = reply.header.size();
      const std::string_view body = reply.value != nullptr ? std::string_view(reply.value->bytes()) : "";
      if (reply.sent == header + body.size()) {
        connection.reply.reset();
        connection.closed = connection.closed || connection.closes;
        return;
      }
      const std::string_view rest =
          reply.sent < header ? std::string_view(reply.header).substr(reply.sent) : body.substr(reply.sent - header);
      const ::ssize_t sent = ::send(connection.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
      if (sent >= 0) {
        reply.sent += static_cast<std::size_t>(sent);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        return;
      } else if (errno != EINTR) {
        connection.closed = true;
        return;
      }
    }
  }

  void EndWaits() {
    for (const auto& connection : connections_) {
      if (connection->closed || !connection->wait.has_value() || !connection->wait->deadline.Passed()) continue;
      connection->wait.reset();
      Answer(*connection, ReplyCode::kTimedOut, 0, nullptr);
    }
  }

  /// Wills are done first. They may answer those who wait, and find more of them closed.
  void RemoveClosed() {
    for (bool found = true; found;) {
      found = false;
      for (const auto& connection : connections_) {
        if (!connection->closed || !connection->will.has_value()) continue;
        const Will will = *std::exchange(connection->will, std::nullopt);
        Claim(will.key, will.value);
        found = true;
      }
    }
    const std::size_t erased = std::erase_if(connections_, [this](const std::unique_ptr<Connection>& connection) {
      if (connection->closed) used_ -= connection->input.capacity() - std::string().capacity();
      return connection->closed;
    });
    if (erased > 0) server_.SetConnections(static_cast<int>(connections_.size()));
  }

  StoreServer& server_;
  Descriptor listener_;
  Descriptor spare_;
  std::size_t used_ = 0;  ///< outlives the values that count in it
  std::unordered_map<std::string, ValuePointer> table_;
  std::vector<std::unique_ptr<Connection>> connections_;
};

absl::StatusOr<std::unique_ptr<StoreServer>> StoreServer::Start(const StoreServerOptions& options) {
  absl::StatusOr<Descriptor> listener = Listen(options.listen_address, options.port);
  if (!listener.ok()) return listener.status();
  Signal stop;
  if (!stop.open()) return absl::ResourceExhaustedError("rank 0 has no file descriptor left for its store");
  return std::unique_ptr<StoreServer>(new StoreServer(*std::move(listener), std::move(stop), options));
}

StoreServer::StoreServer(Descriptor listener, Signal stop, const StoreServerOptions& options)
    : options_(options),
      port_(BoundPort(listener)),
      stop_(std::move(stop)),
      thread_([this, loop = std::make_unique<Loop>(*this, std::move(listener))]() mutable {
        loop->Run();
        loop.reset();
      }) {}

StoreServer::~StoreServer() {
  stop_.Raise();
  thread_.join();
}

int StoreServer::connections() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return connections_;
}

void StoreServer::SetConnections(int count) {
  const std::lock_guard<std::mutex> lock(mutex_);
  connections_ = count;
  if (count == 0) unused_.notify_all();
}

bool StoreServer::WaitUntilUnused(Milliseconds limit) {
  std::unique_lock<std::mutex> lock(mutex_);
  return unused_.wait_for(lock, limit, [this] { return connections_ == 0; });
}

}  // namespace mpc::runtime
