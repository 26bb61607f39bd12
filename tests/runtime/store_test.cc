#include "runtime/distributed/store.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "runtime/distributed/store_message.h"
#include "runtime/distributed/store_server.h"
#include "tests/runtime/free_port.h"
#include "tests/runtime/on_threads.h"

namespace mpc::runtime {
namespace {

using test::FreePort;
using test::OnThreads;

constexpr Milliseconds kShort{50};
constexpr Milliseconds kLong{5000};

std::unique_ptr<StoreServer> StartServer(const StoreServerOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<StoreServer>> server = StoreServer::Start(options);
  EXPECT_TRUE(server.ok()) << server.status();
  return *std::move(server);
}

std::unique_ptr<Store> ConnectTo(int port, Milliseconds answer_limit = kLong) {
  absl::StatusOr<std::unique_ptr<Store>> store =
      Store::Connect({.port = port, .connect_limit = kLong, .answer_limit = answer_limit});
  EXPECT_TRUE(store.ok()) << store.status();
  return *std::move(store);
}

/// A connection that says what it likes.
class RawClient {
 public:
  explicit RawClient(int port) {
    const Signal never;
    absl::StatusOr<Descriptor> socket = ConnectOnce("127.0.0.1", port, Deadline(kLong), never);
    EXPECT_TRUE(socket.ok()) << socket.status();
    if (socket.ok()) socket_ = *std::move(socket);
  }
  void Say(const std::string& bytes) const {
    EXPECT_EQ(::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL), static_cast<::ssize_t>(bytes.size()));
  }
  /// All that comes until the other side closes.
  std::string HearUntilClosed() const {
    const Signal never;
    std::string heard;
    char buffer[256];
    while (WaitFor(socket_.get(), POLLIN, Deadline(kLong), never) == Readiness::kReady) {
      const ::ssize_t received = ::recv(socket_.get(), buffer, sizeof(buffer), 0);
      if (received <= 0) return heard;
      heard.append(buffer, static_cast<std::size_t>(received));
    }
    ADD_FAILURE() << "the connection stays open";
    return heard;
  }

 private:
  Descriptor socket_;
};

std::size_t ThreadsOfThisProcess() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ++count;
  return count;
}

/// 127.0.0.2 is this machine, too. Who listens at every address answers there.
TEST(StoreServer, ListensAtLoopbackUnlessToldOtherwise) {
  const Signal never;
  const auto own = StartServer(), open = StartServer({.listen_address = "0.0.0.0"});
  EXPECT_TRUE(ConnectOnce("127.0.0.1", own->port(), Deadline(kLong), never).ok());
  EXPECT_FALSE(ConnectOnce("127.0.0.2", own->port(), Deadline(kLong), never).ok());
  EXPECT_TRUE(ConnectOnce("127.0.0.2", open->port(), Deadline(kLong), never).ok());
}

TEST(Store, KeepsBytesUnderKeys) {
  const std::unique_ptr<StoreServer> server = StartServer();
  const std::unique_ptr<Store> one = ConnectTo(server->port()), other = ConnectTo(server->port());
  const std::string bytes("\0MPCS\xff", 6);
  ASSERT_TRUE(one->Set("key", bytes).ok());
  EXPECT_EQ(*other->Get("key", kLong), bytes);
  ASSERT_TRUE(other->Set("key", "").ok());
  EXPECT_EQ(*one->Get("key", kLong), "");
  EXPECT_TRUE(*one->Remove("key"));
  EXPECT_FALSE(*one->Remove("key"));
  EXPECT_EQ(*one->Claim("key", "first"), "first");
  EXPECT_EQ(*other->Claim("key", "second"), "first");
  EXPECT_EQ(*other->Get("key", kLong), "first");
}

TEST(Store, GetWaitsForTheValue) {
  const std::unique_ptr<StoreServer> server = StartServer();
  const std::unique_ptr<Store> setter = ConnectTo(server->port());
  std::thread waiter([&] {
    const std::unique_ptr<Store> store = ConnectTo(server->port());
    EXPECT_EQ(*store->Get("late", kLong), "here");
    const std::vector<std::string> keys = {"late", "later"};
    EXPECT_TRUE(store->Wait(keys, kLong).ok());
  });
  std::this_thread::sleep_for(kShort);
  ASSERT_TRUE(setter->Set("late", "here").ok());
  std::this_thread::sleep_for(kShort);
  ASSERT_TRUE(setter->Set("later", "").ok());
  waiter.join();
}

TEST(Store, AWaitThatEndsNamesKeyAndSeconds) {
  const std::unique_ptr<StoreServer> server = StartServer();
  const std::unique_ptr<Store> store = ConnectTo(server->port());
  const absl::Status status = store->Get("never", kShort).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "\"never\"")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "0.05 s")) << status;
  const std::vector<std::string> keys = {"never"};
  EXPECT_TRUE(absl::IsDeadlineExceeded(store->Wait(keys, kShort)));
  EXPECT_TRUE(absl::IsDeadlineExceeded(store->Get("never", Milliseconds(0)).status()));
  EXPECT_TRUE(store->Set("never", "").ok()) << "the connection is still of use";
}

TEST(Store, TakesAnyWaitHoweverLong) {
  EXPECT_GT(Deadline(Milliseconds::max()).Left(), kLongestWait);
  const std::unique_ptr<StoreServer> server = StartServer();
  const std::unique_ptr<Store> store = ConnectTo(server->port()), other = ConnectTo(server->port());
  for (const Milliseconds wait : {kLongestWait + Milliseconds(1), Milliseconds::max()}) {
    const std::string key = absl::StrCat("key ", wait.count());
    std::thread sets([&] {
      std::this_thread::sleep_for(kShort);
      EXPECT_TRUE(other->Set(key, "value").ok());
    });
    const absl::StatusOr<std::string> value = store->Get(key, wait);
    sets.join();
    ASSERT_TRUE(value.ok()) << value.status();
    EXPECT_EQ(*value, "value");
  }
}

TEST(Store, AddsOfManyThreadsAreAllCounted) {
  const std::unique_ptr<StoreServer> server = StartServer();
  OnThreads(8, [&](int thread) {
    const std::unique_ptr<Store> store = ConnectTo(server->port());
    for (int i = 0; i < 50; ++i) EXPECT_TRUE(store->Add("sum", thread).ok());
  });
  const std::unique_ptr<Store> store = ConnectTo(server->port());
  EXPECT_EQ(*store->Add("sum", 0), 50 * 28);
  EXPECT_EQ(*store->Add("sum", -2000), -600);
}

TEST(Store, RefusesToAddToWhatIsNoCounter) {
  const std::unique_ptr<StoreServer> server = StartServer();
  const std::unique_ptr<Store> store = ConnectTo(server->port());
  ASSERT_TRUE(store->Set("text", "abc").ok());
  const absl::Status status = store->Add("text", 1).status();
  EXPECT_TRUE(absl::IsInvalidArgument(status) && absl::StrContains(status.message(), "\"text\"")) << status;
  ASSERT_EQ(*store->Add("high", INT64_MAX), INT64_MAX);
  EXPECT_TRUE(absl::IsInvalidArgument(store->Add("high", 1).status()));
  EXPECT_EQ(*store->Add("high", 0), INT64_MAX);
}

TEST(Store, BarrierOpensWhenAllHaveCome) {
  const std::unique_ptr<StoreServer> server = StartServer();
  std::atomic<int> come{0};
  OnThreads(4, [&](int) {
    const std::unique_ptr<Store> store = ConnectTo(server->port());
    for (int round = 1; round <= 20; ++round) {
      ++come;
      ASSERT_TRUE(store->Barrier("b", 4, kLong).ok());
      EXPECT_GE(come.load(), 4 * round);
    }
  });
}

TEST(Store, BarrierSaysHowManyHaveCome) {
  const std::unique_ptr<StoreServer> server = StartServer();
  const std::unique_ptr<Store> store = ConnectTo(server->port());
  const absl::Status status = store->Barrier("b", 3, kShort);
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "barrier \"b\": 1 of 3 have come within 0.05 s")) << status;
}

TEST(Store, HoldsKeysAndValuesToTheirSizes) {
  const std::unique_ptr<StoreServer> server = StartServer();
  const std::unique_ptr<Store> store = ConnectTo(server->port(), Milliseconds(60000));
  const std::string longest_key(256, 'k'), largest(kMostValueBytes, 'v');
  ASSERT_TRUE(store->Set(longest_key, largest).ok());
  EXPECT_TRUE(*store->Get(longest_key, kLong) == largest);
  const absl::Status key = store->Set(longest_key + "k", "");
  EXPECT_TRUE(absl::IsInvalidArgument(key) && absl::StrContains(key.message(), "257 bytes")) << key;
  const absl::Status value = store->Set("k", largest + "v");
  EXPECT_TRUE(absl::IsInvalidArgument(value) && absl::StrContains(value.message(), "16777217 bytes")) << value;
  EXPECT_TRUE(absl::IsInvalidArgument(store->Get("", kShort).status()));
  EXPECT_TRUE(store->Set("k", "v").ok());
}

TEST(Store, HoldsItsMemoryToTheBound) {
  const std::unique_ptr<StoreServer> server = StartServer({.most_bytes = std::size_t{1} << 20});
  const std::unique_ptr<Store> store = ConnectTo(server->port());
  const std::string part(200 << 10, 'x');
  absl::Status status;
  int kept = 0;
  while ((status = store->Set("key" + std::to_string(kept), part)).ok()) ASSERT_LT(++kept, 6);
  EXPECT_TRUE(absl::IsResourceExhausted(status)) << status;
  EXPECT_GE(kept, 2);
  EXPECT_TRUE(absl::IsResourceExhausted(store->Set("large", std::string(kMostValueBytes, 'x'))));
  for (int i = 0; i < kept; ++i) EXPECT_TRUE(*store->Remove("key" + std::to_string(i)));
  EXPECT_TRUE(store->Set("again", part).ok()) << "what was removed is free";
}

TEST(Store, ClosesConnectionsThatAreTooMany) {
  const std::unique_ptr<StoreServer> server = StartServer({.most_connections = 2});
  const std::unique_ptr<Store> one = ConnectTo(server->port()), two = ConnectTo(server->port());
  EXPECT_EQ(RawClient(server->port()).HearUntilClosed(), "");
  EXPECT_GE(server->refused_connections(), 1);
  EXPECT_TRUE(one->Set("a", "").ok() && two->Set("b", "").ok());
}

TEST(Store, AMessageOfAnotherFormClosesThatConnectionOnly) {
  const std::unique_ptr<StoreServer> server = StartServer();
  const std::unique_ptr<Store> store = ConnectTo(server->port());
  const std::string hello = EncodeMessage(Message{});
  const std::string wrong_kind = hello.substr(0, 6) + std::string("\x2a", 1) + hello.substr(7);
  const std::string long_key = hello.substr(0, 6) + "\x02" + hello.substr(7, 1) + "\xff\xff\xff\xff" + hello.substr(12);
  const std::string reply = EncodeMessage({.kind = MessageKind::kReply});
  const std::vector<std::string> garbage = {"GET / HTTP/1.1\r\n\r\n", std::string(1000, '\0'), wrong_kind, long_key,
                                            reply};
  for (const std::string& bytes : garbage) {
    const RawClient client(server->port());
    client.Say(bytes);
    EXPECT_EQ(client.HearUntilClosed(), "");
  }
  EXPECT_EQ(server->malformed(), static_cast<std::int64_t>(garbage.size()));
  const RawClient silent(server->port()), partial(server->port());
  partial.Say(hello.substr(0, 10));
  EXPECT_TRUE(store->Set("key", "value").ok());
  EXPECT_EQ(*store->Get("key", kLong), "value");
}

TEST(Store, MessagesMayComeInAnyPieces) {
  const std::unique_ptr<StoreServer> server = StartServer();
  const RawClient client(server->port());
  const std::string bytes = EncodeMessage({.kind = MessageKind::kSet, .key = "k", .value = "abc"}) +
                            EncodeMessage({.kind = MessageKind::kGet, .key = "k"}) +
                            EncodeMessage({.kind = MessageKind::kGoodbye});
  for (const char byte : bytes) client.Say(std::string(1, byte));
  const std::string expected =
      EncodeMessage({.kind = MessageKind::kReply}) + EncodeMessage({.kind = MessageKind::kReply, .value = "abc"});
  EXPECT_EQ(client.HearUntilClosed(), expected);
  EXPECT_EQ(server->malformed(), 0);
}

TEST(Store, AnOldClientHearsTheVersionOfTheStore) {
  const std::unique_ptr<StoreServer> server = StartServer();
  const RawClient client(server->port());
  std::string hello = EncodeMessage(Message{});
  hello[4] = 9;
  client.Say(hello);
  EXPECT_EQ(client.HearUntilClosed(),
            EncodeMessage({.kind = MessageKind::kReply, .code = ReplyCode::kOtherVersion, .number = kStoreVersion}));
}

/// Answers the first connection with `bytes`.
absl::Status ConnectToOther(const std::string& bytes) {
  const absl::StatusOr<Descriptor> listener = Listen("127.0.0.1", 0);
  EXPECT_TRUE(listener.ok()) << listener.status();
  std::thread other([&] {
    const Signal never;
    WaitFor(listener->get(), POLLIN, Deadline(kLong), never);
    const Descriptor accepted(::accept(listener->get(), nullptr, nullptr));
    char hello[kMessageHeaderBytes];
    EXPECT_GT(::recv(accepted.get(), hello, sizeof(hello), MSG_WAITALL), 0);
    ::send(accepted.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
  });
  const absl::Status status =
      Store::Connect({.port = BoundPort(*listener), .connect_limit = kLong, .answer_limit = kLong}).status();
  other.join();
  return status;
}

TEST(Store, ClientsNameAStoreOfAnotherVersion) {
  std::string reply = EncodeMessage({.kind = MessageKind::kReply});
  reply[4] = 7;
  const absl::Status status = ConnectToOther(reply);
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "speaks version 7 and this process version 1")) << status;
}

TEST(Store, ClientsNameWhatIsNoStore) {
  const absl::Status status = ConnectToOther("HTTP/1.1 400 Bad Request\r\n\r\n");
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "is no store of mpc")) << status;
}

TEST(Store, APortInUseIsNamedWithAddressAndRemedy) {
  const std::unique_ptr<StoreServer> server = StartServer();
  const absl::Status status = StoreServer::Start({.port = server->port()}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "127.0.0.1:" + std::to_string(server->port()))) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "in use")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "another MASTER_PORT")) << status;
}

TEST(Store, AnAddressOfAnotherMachineIsNamed) {
  const absl::Status status = StoreServer::Start({.listen_address = "192.0.2.1"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "192.0.2.1:0")) << status;
  const absl::Status unknown = StoreServer::Start({.listen_address = "no such name"}).status();
  EXPECT_TRUE(absl::IsFailedPrecondition(unknown)) << unknown;
  EXPECT_TRUE(absl::StrContains(unknown.message(), "\"no such name\" is unknown here")) << unknown;
}

TEST(Store, APortIsFreeAgainAtOnce) {
  std::unique_ptr<StoreServer> server = StartServer();
  const int port = server->port();
  const std::unique_ptr<Store> store = ConnectTo(port);
  server.reset();  // closes first, which leaves the connection in TIME_WAIT
  EXPECT_TRUE(StoreServer::Start({.port = port}).ok());
}

TEST(Store, ConnectWaitsForAStoreThatStartsLate) {
  const int port = FreePort();
  std::unique_ptr<StoreServer> server;
  std::thread late([&] {
    std::this_thread::sleep_for(4 * kShort);
    server = StartServer({.port = port});
  });
  EXPECT_TRUE(ConnectTo(port)->Set("k", "").ok());
  late.join();
}

TEST(Store, ConnectSaysWhoWasNotReached) {
  const int port = FreePort();
  const absl::Status status = Store::Connect({.port = port, .connect_limit = 4 * kShort}).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "127.0.0.1:" + std::to_string(port))) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "within 0.2 s")) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "MASTER_ADDR")) << status;
}

TEST(Store, AStoreThatIsGoneIsUnavailableAndNoSignalComes) {
  std::unique_ptr<StoreServer> server = StartServer();
  const std::unique_ptr<Store> waits = ConnectTo(server->port()), writes = ConnectTo(server->port());
  std::thread waiter([&] {
    const absl::Status status = waits->Get("never", kLong).status();
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
  });
  std::this_thread::sleep_for(kShort);
  server.reset();
  waiter.join();
  for (int i = 0; i < 3; ++i) {
    const absl::Status status = writes->Set("k", std::string(1 << 20, 'x'));
    EXPECT_TRUE(absl::IsUnavailable(status)) << status;
    EXPECT_TRUE(absl::StrContains(status.message(), "is gone")) << status;
  }
}

TEST(Store, AStoreThatDoesNotAnswerIsUnavailable) {
  const absl::StatusOr<Descriptor> listener = Listen("127.0.0.1", 0);
  ASSERT_TRUE(listener.ok()) << listener.status();
  const absl::Status status =
      Store::Connect({.port = BoundPort(*listener), .connect_limit = 2 * kShort, .answer_limit = kShort}).status();
  EXPECT_TRUE(absl::IsDeadlineExceeded(status)) << status;
  EXPECT_TRUE(absl::StrContains(status.message(), "has not answered")) << status;
}

TEST(Store, InterruptEndsACall) {
  const std::unique_ptr<StoreServer> server = StartServer();
  const std::unique_ptr<Store> store = ConnectTo(server->port());
  std::thread interrupter([&] {
    std::this_thread::sleep_for(kShort);
    store->Interrupt();
  });
  EXPECT_TRUE(absl::IsCancelled(store->Get("never", kLong).status()));
  interrupter.join();
  EXPECT_TRUE(absl::IsCancelled(store->Set("k", "")));
}

TEST(Store, AWillIsDoneWithoutGoodbyeAlone) {
  const std::unique_ptr<StoreServer> server = StartServer();
  const std::unique_ptr<Store> heir = ConnectTo(server->port());
  std::unique_ptr<Store> polite = ConnectTo(server->port()), rude = ConnectTo(server->port());
  ASSERT_TRUE(polite->SetWill("polite", "gone").ok());
  ASSERT_TRUE(rude->SetWill("rude", "first").ok());
  ASSERT_TRUE(rude->SetWill("rude", "gone").ok());
  polite->Goodbye();
  rude.reset();
  EXPECT_EQ(*heir->Get("rude", kLong), "gone");
  EXPECT_TRUE(absl::IsDeadlineExceeded(heir->Get("polite", kShort).status()));
  rude = ConnectTo(server->port());
  ASSERT_TRUE(rude->SetWill("back", "gone").ok());
  ASSERT_TRUE(rude->SetWill("back", "").ok());
  rude.reset();
  EXPECT_TRUE(absl::IsDeadlineExceeded(heir->Get("back", kShort).status()));
}

TEST(Store, GoodbyeCountsInTheMiddleOfAWait) {
  const std::unique_ptr<StoreServer> server = StartServer();
  for (int i = 0; i < 20; ++i) {
    const std::unique_ptr<Store> store = ConnectTo(server->port());
    ASSERT_TRUE(store->SetWill("lost", "x").ok());
    std::thread waiter([&] { EXPECT_TRUE(absl::IsCancelled(store->Get("never", kLong).status())); });
    store->Interrupt();
    waiter.join();
    store->Goodbye();
  }
  const std::unique_ptr<Store> heir = ConnectTo(server->port());
  EXPECT_TRUE(absl::IsDeadlineExceeded(heir->Get("lost", kShort).status()));
  EXPECT_EQ(server->malformed(), 0);
}

TEST(Store, NoThreadStaysBehind) {
  const std::size_t before = ThreadsOfThisProcess();
  {
    const std::unique_ptr<StoreServer> server = StartServer();
    EXPECT_EQ(ThreadsOfThisProcess(), before + 1);
    const std::unique_ptr<Store> store = ConnectTo(server->port());
    EXPECT_EQ(server->connections(), 1);
    EXPECT_FALSE(server->WaitUntilUnused(Milliseconds(1)));
    store->Goodbye();
    EXPECT_TRUE(server->WaitUntilUnused(kLong));
  }
  // The kernel may list a thread for a moment after it was joined.
  for (int i = 0; i < 200 && ThreadsOfThisProcess() != before; ++i) std::this_thread::sleep_for(Milliseconds(10));
  EXPECT_EQ(ThreadsOfThisProcess(), before);
}

}  // namespace
}  // namespace mpc::runtime
