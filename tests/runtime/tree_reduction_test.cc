// Collectives over pairs of processes, and the checks and loops that all transports share.
#include "runtime/distributed/tree_reduction.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "runtime/distributed/combine_elements.h"
#include "runtime/distributed/reduction_checks.h"
#include "runtime/distributed/tree_rounds.h"
#include "tests/runtime/collective_checks.h"
#include "tests/runtime/processes.h"

namespace mpc::distributed {
namespace {

/// A socket between each two of `size` processes. They are made before the processes are.
class Sockets {
 public:
  explicit Sockets(int size) : size_(size) {
    for (int low = 0; low < size; ++low) {
      for (int high = low + 1; high < size; ++high) {
        std::array<int, 2> ends{};
        EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends.data()), 0);
        ends_[{low, high}] = ends[0];
        ends_[{high, low}] = ends[1];
      }
    }
  }
  ~Sockets() {
    for (const auto& [pair, end] : ends_) ::close(end);
  }
  Sockets(const Sockets&) = delete;
  Sockets& operator=(const Sockets&) = delete;

  int size() const { return size_; }
  int end(int rank, int peer) const { return ends_.at({rank, peer}); }

 private:
  int size_;
  std::map<std::pair<int, int>, int> ends_;
};

class SocketExchange : public PeerExchange {
 public:
  SocketExchange(const Sockets& sockets, int rank) : sockets_(sockets), rank_(rank) {}

  int rank() const override { return rank_; }
  int size() const override { return sockets_.size(); }
  absl::Status Exchange(int peer, absl::Span<const std::byte> send, absl::Span<std::byte> receive) override {
    ++exchanges;
    const int end = sockets_.end(rank_, peer);
    while (!send.empty() || !receive.empty()) {
      pollfd wanted{end, static_cast<short>((send.empty() ? 0 : POLLOUT) | (receive.empty() ? 0 : POLLIN)), 0};
      if (::poll(&wanted, 1, 20000) <= 0) return absl::DeadlineExceededError("the peer does not answer");
      if (!send.empty() && (wanted.revents & POLLOUT) != 0) {
        const ssize_t sent = ::send(end, send.data(), send.size(), MSG_NOSIGNAL);
        if (sent > 0) send.remove_prefix(static_cast<std::size_t>(sent));
      }
      if (!receive.empty() && (wanted.revents & (POLLIN | POLLHUP)) != 0) {
        const ssize_t received = ::recv(end, receive.data(), receive.size(), 0);
        if (received == 0) return absl::UnavailableError("the peer has gone");
        if (received > 0) receive.remove_prefix(static_cast<std::size_t>(received));
      }
    }
    return absl::OkStatus();
  }

  int exchanges = 0;

 private:
  const Sockets& sockets_;
  int rank_;
};

/// A communicator as a transport of pairs makes it.
class PeerCommunicator : public Communicator {
 public:
  PeerCommunicator(PeerExchange& exchange, std::size_t chunk_bytes)
      : exchange_(exchange), collectives_(&exchange, chunk_bytes) {}
  std::string_view transport() const override { return "sockets"; }
  int rank() const override { return exchange_.rank(); }
  int size() const override { return exchange_.size(); }
  absl::Status status() const override { return collectives_.status(); }
  absl::Status AllReduce(absl::Span<const ReducedPart> parts) override { return collectives_.AllReduce(parts); }
  absl::Status ReduceScatter(const ReducedPart& part) override { return collectives_.ReduceScatter(part); }
  absl::Status AllGather(const void* input, void* output, std::size_t bytes) override {
    return collectives_.AllGather(input, output, bytes);
  }
  absl::Status Broadcast(void* data, std::size_t bytes, int root) override {
    return collectives_.Broadcast(data, bytes, root);
  }
  absl::Status Barrier() override { return collectives_.Barrier(); }

 private:
  PeerExchange& exchange_;
  TreeCollectives collectives_;
};

/// An exchange that no test should reach.
class NoExchange : public PeerExchange {
 public:
  explicit NoExchange(int size) : size_(size) {}
  int rank() const override { return 0; }
  int size() const override { return size_; }
  absl::Status Exchange(int peer, absl::Span<const std::byte> send, absl::Span<std::byte> receive) override {
    return absl::UnavailableError("no peer");
  }

 private:
  int size_;
};

constexpr std::size_t kChunk = 8192;

class TreeReduction : public testing::TestWithParam<int> {};

TEST_P(TreeReduction, HasTheBitsOfAPlainTree) {
  const Sockets sockets(GetParam());
  EXPECT_TRUE(test::RunProcesses(GetParam(), [&](int rank) {
    SocketExchange exchange(sockets, rank);
    PeerCommunicator group(exchange, kChunk);
    test::CheckCollectives(group, kChunk);
    return 0;
  }));
}

INSTANTIATE_TEST_SUITE_P(Ranks, TreeReduction, testing::Values(1, 2, 4, 8));

TEST(TreeCollectives, CopiesOverAnyNumberOfRanks) {
  for (const int size : {3, 5, 6}) {
    const Sockets sockets(size);
    EXPECT_TRUE(test::RunProcesses(size, [&](int rank) {
      SocketExchange exchange(sockets, rank);
      PeerCommunicator group(exchange, kChunk);
      for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, 3 * kChunk + 1})
        test::CheckCopies(group, 1, bytes);
      return 0;
    }));
  }
}

TEST(TreeRounds, HalveWithTheNearestRankFirstAndGatherBackwards) {
  const std::vector<TreeRound> halving = HalvingRounds(1, 4);
  ASSERT_EQ(halving.size(), 2u);
  EXPECT_EQ(halving[0].peer, 0);
  EXPECT_TRUE(halving[0].is_upper);
  EXPECT_EQ(halving[0].sent.first, 0);
  EXPECT_EQ(halving[0].received.first, 2);
  EXPECT_EQ(halving[0].received.count, 2);
  EXPECT_EQ(halving[1].peer, 3);
  EXPECT_FALSE(halving[1].is_upper);
  EXPECT_EQ(halving[1].received.first, 2) << "1 with reversed bits";
  EXPECT_EQ(halving[1].received.count, 1);
  const std::vector<TreeRound> gathering = GatheringRounds(1, 4);
  ASSERT_EQ(gathering.size(), 2u);
  EXPECT_EQ(gathering[0].peer, 3);
  EXPECT_EQ(gathering[0].sent.first, 2);
  EXPECT_EQ(gathering[0].received.first, 3);
  EXPECT_EQ(gathering[1].peer, 0);
  EXPECT_EQ(gathering[1].sent.count, 2);
  EXPECT_TRUE(HalvingRounds(0, 1).empty());
}

TEST(TreeCollectives, NeedsTwoRoundsForEachHalvingOfRanks) {
  const Sockets sockets(4);
  EXPECT_TRUE(test::RunProcesses(4, [&](int rank) {
    SocketExchange exchange(sockets, rank);
    TreeCollectives collectives(&exchange);
    std::vector<float> values(100000, 1.0f);
    EXPECT_TRUE(collectives.AllReduce({{values.data(), values.data(), values.size()}}).ok());
    EXPECT_EQ(exchange.exchanges, 4);
    EXPECT_EQ(values.back(), 4.0f);
    // A short message is exchanged whole.
    EXPECT_TRUE(collectives.AllReduce({{values.data(), values.data(), 10}}).ok());
    EXPECT_EQ(exchange.exchanges, 6);
    return 0;
  }));
}

TEST(TreeCollectives, KeepsItsFirstError) {
  NoExchange exchange(2);
  TreeCollectives collectives(&exchange);
  float value = 1.0f;
  EXPECT_EQ(collectives.AllReduce({{nullptr, &value, 1}}).message(), "all-reduce: part 0 has no input");
  EXPECT_EQ(collectives.Barrier().message(), "all-reduce: part 0 has no input");
  EXPECT_EQ(collectives.Broadcast(&value, 4, 0).code(), absl::StatusCode::kInvalidArgument);
}

TEST(TreeCollectives, ReturnsTheErrorOfItsTransport) {
  NoExchange exchange(2);
  TreeCollectives collectives(&exchange);
  EXPECT_EQ(collectives.Barrier(), absl::UnavailableError("no peer"));
}

TEST(CombineRows, MayWriteOverAnyRow) {
  std::mt19937 random(3);
  for (std::size_t over = 0; over < 4; ++over) {
    test::DrawnPart part = test::DrawPart(random, 4, 5000);
    std::vector<const void*> rows;
    for (const test::Bytes& row : part.inputs) rows.push_back(row.data());
    CombineRows(part.reduction, part.dtype, rows, part.inputs[over].data(), 5000);
    EXPECT_TRUE(part.inputs[over] == part.sum) << over;
  }
}

TEST(CombineElements, CarriesInfinitiesAndWhatIsNotANumber) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const std::array<float, 4> a = {kInfinity, kInfinity, 1.0f, std::bit_cast<float>(0xffc12345u)};
  const std::array<float, 4> b = {1.0f, -kInfinity, std::bit_cast<float>(0x7f812345u), 2.0f};
  std::array<float, 4> sum{};
  CombineElements(Reduction::kSum, DType::kF32, a.data(), b.data(), sum.data(), sum.size());
  EXPECT_EQ(sum[0], kInfinity);
  for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(std::bit_cast<std::uint32_t>(sum[i]), 0x7fc00000u) << i;
  // The largest f16 and its neighbour: the sum is out of range.
  const Half large(65504.0f);
  Half low_sum;
  CombineElements(Reduction::kSum, DType::kF16, &large, &large, &low_sum, 1);
  EXPECT_EQ(low_sum.bits, 0x7c00);
}

TEST(CombineElements, RoundsToNearestEvenOnce) {
  // 2049 lies between the f16 numbers 2048 and 2050, 2051 between 2050 and 2052.
  const std::array<Half, 2> a = {Half(2048.0f), Half(2050.0f)};
  const std::array<Half, 2> b = {Half(1.0f), Half(1.0f)};
  std::array<Half, 2> sum{};
  CombineElements(Reduction::kSum, DType::kF16, a.data(), b.data(), sum.data(), 2);
  EXPECT_EQ(static_cast<float>(sum[0]), 2048.0f);
  EXPECT_EQ(static_cast<float>(sum[1]), 2052.0f);
}

TEST(ReductionChecks, RefuseByName) {
  std::array<float, 8> values{};
  const auto refusal = [](const ReducedPart& part, int size) {
    return std::string(CheckAllReduce({part}, size).message());
  };
  const ReducedPart good{values.data(), values.data(), 8};
  EXPECT_TRUE(CheckAllReduce({good}, 4).ok());
  EXPECT_EQ(refusal(good, 3), "all-reduce is over a power of two of ranks: there are 3");
  ReducedPart part = good;
  part.dtype = DType::kF64;
  EXPECT_EQ(refusal(part, 2), "all-reduce: part 0 is f64; sum takes f32, f16, bf16, i32 and i64");
  part = good;
  part.reduction = Reduction::kMax;
  EXPECT_EQ(refusal(part, 2), "all-reduce: part 0 is f32; max takes i32 and i64");
  part.reduction = static_cast<Reduction>(9);
  EXPECT_EQ(refusal(part, 2), "all-reduce: part 0 has the unknown reduction 9");
  part = good;
  part.output = nullptr;
  EXPECT_EQ(refusal(part, 2), "all-reduce: part 0 has no output");
  part.elements = 0;
  EXPECT_TRUE(CheckAllReduce({part}, 2).ok());
  part = {values.data(), values.data() + 1, 4};
  EXPECT_EQ(refusal(part, 2), "all-reduce: input and output of part 0 overlap, and do not begin at the same address");
}

TEST(ReductionChecks, RefuseWhatDoesNotDivideOrHasNoRoot) {
  std::array<float, 8> values{};
  EXPECT_EQ(CheckReduceScatter({values.data(), values.data(), 7}, 2).message(),
            "reduce-scatter: 7 elements do not divide by 2 ranks");
  EXPECT_EQ(CheckReduceScatter({values.data(), values.data(), 8}, 6).message(),
            "reduce-scatter is over a power of two of ranks: there are 6");
  EXPECT_EQ(CheckBroadcast(values.data(), 4, 2, 2).message(), "broadcast: the root 2 is no rank of 2");
  EXPECT_EQ(CheckBroadcast(nullptr, 4, 1, 2).message(), "broadcast has no data");
  EXPECT_EQ(CheckAllGather(nullptr, values.data(), 4).message(), "all-gather has no input");
  EXPECT_TRUE(CheckAllGather(nullptr, nullptr, 0).ok());
}

}  // namespace
}  // namespace mpc::distributed
