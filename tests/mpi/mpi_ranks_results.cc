// What a whole group computes.
#include <bit>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <type_traits>
#include <vector>

#include "kernels/dtype.h"
#include "kernels/float16.h"
#include "runtime/distributed/mpi/mpi_library.h"
#include "tests/mpi/mpi_ranks.h"

namespace mpc::distributed {
namespace {

template <typename T>
constexpr DType kTypeOf = DType::kF32;
template <>
constexpr DType kTypeOf<Half> = DType::kF16;
template <>
constexpr DType kTypeOf<BFloat16> = DType::kBF16;
template <>
constexpr DType kTypeOf<std::int32_t> = DType::kI32;
template <>
constexpr DType kTypeOf<std::int64_t> = DType::kI64;

template <typename T>
T Combined(Reduction reduction, T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    if (reduction == Reduction::kMax) return a > b ? a : b;
    if (reduction == Reduction::kMin) return a < b ? a : b;
    return static_cast<T>(static_cast<Unsigned>(a) + static_cast<Unsigned>(b));
  } else {
    return T(static_cast<float>(a) + static_cast<float>(b));
  }
}

/// Element `i` of ranks first ... first + count - 1, as the definition of the reduction says.
template <typename T>
T Tree(Reduction reduction, const std::vector<std::vector<T>>& ranks, std::size_t first, std::size_t count,
       std::size_t i) {
  if (count == 1) return ranks[first][i];
  const std::size_t half = count / 2;
  return Combined(reduction, Tree(reduction, ranks, first, half, i), Tree(reduction, ranks, first + half, half, i));
}

/// Numbers of many sizes, so that another order of additions has other bits.
template <typename T>
std::vector<T> Drawn(std::uint64_t seed, int rank, std::size_t elements) {
  std::mt19937_64 generator(seed * 1000 + static_cast<std::uint64_t>(rank));
  std::vector<T> drawn(elements);
  for (T& element : drawn) {
    const std::uint64_t bits = generator();
    if constexpr (std::is_integral_v<T>) {
      element = static_cast<T>(bits);
    } else {
      const float fraction = static_cast<float>(bits >> 40) * 0x1p-24f - 0.5f;
      element = T(std::ldexp(fraction, static_cast<int>(bits % 16) - 8));
    }
  }
  return drawn;
}

template <typename T>
struct Case {
  Case(const Communicator& group, Reduction reduced, std::uint64_t seed, std::size_t elements) : reduction(reduced) {
    std::vector<std::vector<T>> ranks;
    for (int rank = 0; rank < group.size(); ++rank) ranks.push_back(Drawn<T>(seed, rank, elements));
    input = ranks[static_cast<std::size_t>(group.rank())];
    for (std::size_t i = 0; i < elements; ++i) expected.push_back(Tree(reduced, ranks, 0, ranks.size(), i));
    output.resize(elements);
  }

  ReducedPart Part(bool in_place) {
    if (in_place) output = input;
    return {in_place ? output.data() : input.data(), output.data(), input.size(), kTypeOf<T>, reduction};
  }

  std::string Name() const { return std::to_string(input.size()) + " " + std::string(DTypeName(kTypeOf<T>)); }

  void ExpectEqual(const T* got, std::size_t first, std::size_t count) const {
    Expect(std::memcmp(got, expected.data() + first, count * sizeof(T)) == 0, "other bits than the tree's: " + Name());
  }

  Reduction reduction;
  std::vector<T> input;
  std::vector<T> output;
  std::vector<T> expected;
};

template <typename T>
void Reductions(Communicator& group, Reduction reduction, std::uint64_t seed, std::size_t elements) {
  Case<T> drawn(group, reduction, seed, elements);
  for (const bool in_place : {false, true}) {
    const ReducedPart part = drawn.Part(in_place);
    ExpectOk(group.AllReduce({&part, 1}), "AllReduce of " + drawn.Name());
    drawn.ExpectEqual(drawn.output.data(), 0, elements);
  }
  const auto ranks = static_cast<std::size_t>(group.size());
  if (elements % ranks != 0) return;
  ExpectOk(group.ReduceScatter(drawn.Part(false)), "ReduceScatter of " + drawn.Name());
  const std::size_t kept = elements / ranks;
  drawn.ExpectEqual(drawn.output.data(), static_cast<std::size_t>(group.rank()) * kept, kept);
}

void AllReductions(Communicator& group) {
  std::mt19937_64 sizes(5);
  std::vector<std::size_t> elements = {1, 2, 7, 64, 1000, 1024, 1025, 61700, 3'000'000};
  for (int i = 0; i < 12; ++i) elements.push_back(1 + sizes() % 100'000);
  for (std::uint64_t seed = 0; seed < elements.size(); ++seed) {
    const std::size_t count = elements[seed];
    Reductions<float>(group, Reduction::kSum, seed, count);
    Reductions<Half>(group, Reduction::kSum, seed, count);
    Reductions<BFloat16>(group, Reduction::kSum, seed, count);
    for (const Reduction reduction : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
      Reductions<std::int32_t>(group, reduction, seed, count);
      Reductions<std::int64_t>(group, reduction, seed, count);
    }
  }
}

void SeveralParts(Communicator& group) {
  Case<float> gradients(group, Reduction::kSum, 100, 50'001);
  Case<Half> low(group, Reduction::kSum, 101, 333);
  Case<std::int64_t> flags(group, Reduction::kMax, 102, 3);
  const std::vector<ReducedPart> parts = {gradients.Part(true), low.Part(false), flags.Part(true)};
  ExpectOk(group.AllReduce(parts), "AllReduce of several parts");
  gradients.ExpectEqual(gradients.output.data(), 0, 50'001);
  low.ExpectEqual(low.output.data(), 0, 333);
  flags.ExpectEqual(flags.output.data(), 0, 3);
}

void NotANumber(Communicator& group) {
  std::vector<float> values(8, 1.0f);
  if (group.rank() == 1) values[3] = std::numeric_limits<float>::quiet_NaN();
  if (group.rank() == 0) values[5] = std::numeric_limits<float>::infinity();
  const ReducedPart part = {values.data(), values.data(), values.size()};
  ExpectOk(group.AllReduce({&part, 1}), "AllReduce of a NaN");
  Expect(std::isnan(values[3]) && std::isinf(values[5]), "a NaN or an infinity of one rank is lost");
  const std::size_t bytes = values.size() * sizeof(float);
  std::vector<float> all(values.size() * static_cast<std::size_t>(group.size()));
  ExpectOk(group.AllGather(values.data(), all.data(), bytes), "AllGather");
  for (int rank = 0; rank < group.size(); ++rank) {
    Expect(std::memcmp(all.data() + static_cast<std::size_t>(rank) * values.size(), values.data(), bytes) == 0,
           "ranks have other bits");
  }
}

void Copies(Communicator& group, std::size_t bytes) {
  const auto ranks = static_cast<std::size_t>(group.size());
  const auto fill = [bytes](int rank) { return Drawn<std::int64_t>(7, rank, bytes / 8 + 1); };
  const std::vector<std::int64_t> own = fill(group.rank());
  std::vector<std::byte> all(ranks * bytes);
  ExpectOk(group.AllGather(own.data(), all.data(), bytes), "AllGather");
  for (int rank = 0; rank < group.size(); ++rank) {
    Expect(std::memcmp(all.data() + static_cast<std::size_t>(rank) * bytes, fill(rank).data(), bytes) == 0,
           "AllGather has other bytes");
  }
  for (int root = 0; root < group.size(); ++root) {
    std::vector<std::int64_t> data = own;
    ExpectOk(group.Broadcast(data.data(), bytes, root), "Broadcast");
    Expect(std::memcmp(data.data(), fill(root).data(), bytes) == 0, "Broadcast has other bytes");
  }
}

std::unique_ptr<Communicator> Opened(const MpiOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<Communicator>> group = OpenMpiCommunicator(options);
  ExpectOk(group.status(), "OpenMpiCommunicator");
  return *std::move(group);
}

}  // namespace

void Results() {
  const std::unique_ptr<Communicator> group = Opened();
  Expect(group->transport() == "mpi", "the transport's name");
  if (std::has_single_bit(static_cast<unsigned>(group->size()))) {
    AllReductions(*group);
    SeveralParts(*group);
    if (group->size() > 1) NotANumber(*group);
  }
  for (const std::size_t bytes : {1, 13, 4096, 1'000'003}) Copies(*group, bytes);
  for (int i = 0; i < 100; ++i) ExpectOk(group->Barrier(), "Barrier");
  Say("rank " + std::to_string(group->rank()) + " of " + std::to_string(group->size()) + " has all results");
}

void LongMessages() {
  const std::unique_ptr<Communicator> group = Opened();
  Copies(*group, (std::size_t{70} << 20) + 13);
  Say("rank " + std::to_string(group->rank()) + " has long messages");
}

void Opening() {
  {
    const std::unique_ptr<Communicator> first = Opened({.size = 2});
    {
      const std::unique_ptr<Communicator> second = Opened();
      ExpectOk(second->Barrier(), "Barrier of a second group");
    }
    ExpectOk(first->Barrier(), "Barrier after the second group");
  }
  Say("again: " + OpenMpiCommunicator().status().ToString());
}

}  // namespace mpc::distributed
