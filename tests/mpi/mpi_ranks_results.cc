// What a whole group computes.
#include <gtest/gtest.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "frontend/distributed/distributed.h"
#include "frontend/distributed/exchange.h"
#include "kernels/float16.h"
#include "runtime/distributed/any_order_communicator.h"
#include "runtime/distributed/mpi/mpi_library.h"
#include "tests/mpi/mpi_ranks.h"
#include "tests/runtime/collective_checks.h"

namespace mpc::distributed {
namespace {

std::unique_ptr<Communicator> Opened(const MpiOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<Communicator>> group = OpenMpiCommunicator(options);
  ExpectOk(group.status(), "OpenMpiCommunicator");
  return *std::move(group);
}

void Store(DType dtype, float value, std::byte* place) {
  const Half half(value);
  const BFloat16 brain(value);
  const void* const source = dtype == DType::kF16    ? static_cast<const void*>(&half)
                             : dtype == DType::kBF16 ? static_cast<const void*>(&brain)
                                                     : &value;
  std::memcpy(place, source, ElementSize(dtype));
}

/// Small whole numbers have one sum in every order. The message has two sums, and a maximum as that of a check.
void CheckExactSums(Communicator& group, DType dtype, std::size_t elements) {
  const std::size_t size = ElementSize(dtype);
  const int ranks = group.size();
  test::Bytes values(elements * size), expected(elements * size);
  for (std::size_t i = 0; i < elements; ++i) {
    const int step = static_cast<int>(i % 5);
    Store(dtype, static_cast<float>(step * (group.rank() + 1)), values.data() + i * size);
    Store(dtype, static_cast<float>(step * ranks * (ranks + 1) / 2), expected.data() + i * size);
  }
  const std::size_t first = elements / 3;
  std::byte* const rest = values.data() + first * size;
  std::int32_t code = group.rank();
  ExpectOk(group.AllReduce(
               {{.input = &code, .output = &code, .elements = 1, .dtype = DType::kI32, .reduction = Reduction::kMax},
                {.input = values.data(), .output = values.data(), .elements = first, .dtype = dtype},
                {.input = rest, .output = rest, .elements = elements - first, .dtype = dtype}}),
           "AllReduce");
  EXPECT_EQ(code, ranks - 1);
  EXPECT_TRUE(values == expected) << DTypeName(dtype) << ", " << elements << " elements";
}

/// Sums of any numbers are the same bits in all ranks.
void CheckThatRanksAgree(Communicator& group, DType dtype, std::size_t elements) {
  std::mt19937 random(static_cast<unsigned>(group.rank()));
  const test::Bytes input = test::DrawnBytes(dtype, elements, random);
  test::Bytes sum(input.size());
  const ReducedPart part = {.input = input.data(), .output = sum.data(), .elements = elements, .dtype = dtype};
  ExpectOk(group.AllReduce({part}), "AllReduce");
  test::Bytes all(sum.size() * static_cast<std::size_t>(group.size()));
  ExpectOk(group.AllGather(sum.data(), all.data(), sum.size()), "AllGather");
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(group.size()); ++rank) {
    EXPECT_EQ(std::memcmp(all.data() + rank * sum.size(), sum.data(), sum.size()), 0) << DTypeName(dtype);
  }
}

void ExpectNoFailure() { Expect(!testing::Test::HasFailure(), "results differ"); }

}  // namespace

void Results() {
  const std::unique_ptr<Communicator> group = Opened();
  Expect(group->transport() == "mpi", "the transport's name");
  if (std::has_single_bit(static_cast<unsigned>(group->size()))) {
    test::CheckCollectives(*group, std::size_t{1} << 16);
    test::CheckAllReduceBits(*group, 1, {3'000'000, 5});  // several chunks
  } else {
    for (const std::size_t bytes : {1, 13, 4096, 1'000'003}) test::CheckCopies(*group, 2, bytes);
  }
  for (int i = 0; i < 100; ++i) ExpectOk(group->Barrier(), "Barrier");
  ExpectNoFailure();
  Say("rank " + std::to_string(group->rank()) + " of " + std::to_string(group->size()) + " has all results");
}

void SumsInAnyOrder() {
  const std::shared_ptr<Communicator> group = Opened();
  AnyOrderCommunicator any_order(group);
  if (group->size() == 2) test::CheckCollectives(any_order, std::size_t{1} << 16);  // two ranks have one order
  for (const DType dtype : {DType::kF32, DType::kF16, DType::kBF16}) {
    for (const std::size_t elements : {1, 300, 100'003}) {
      CheckExactSums(any_order, dtype, elements);
      CheckThatRanksAgree(any_order, dtype, elements);
    }
  }
  ExpectNoFailure();
  Say("rank " + std::to_string(group->rank()) + " of " + std::to_string(group->size()) + " has all sums");
}

void LongMessages() {
  const std::unique_ptr<Communicator> group = Opened();
  test::CheckCopies(*group, 3, (std::size_t{70} << 20) + 13);
  ExpectNoFailure();
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

void InitOverMpi() {
  ExpectOk(Init({.transport = Transport::kMpi}), "Init");
  const std::shared_ptr<Communicator> group = internal::GetCommunicator();
  const absl::StatusOr<std::vector<std::string>> ranks = GatherBytes(*group, std::to_string(GetRank()));
  ExpectOk(ranks.status(), "GatherBytes");
  Say("rank " + std::to_string(GetRank()) + " of " + std::to_string(GetRankSize()) + ", local rank " +
      std::to_string(GetLocalRank()) + ", over " + std::string(group->transport()) + ": " + ranks->at(0) + " " +
      ranks->at(1));
  Finalize();
}

}  // namespace mpc::distributed
