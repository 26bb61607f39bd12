#include "runtime/state_store.h"

#include <gtest/gtest.h>

#include <array>

namespace mpc::runtime {
namespace {

std::shared_ptr<StateEntry> Entry(std::string name, Shape shape = {2}) {
  return std::make_shared<StateEntry>(std::move(name), Role::kParameter, TensorSpec{DType::kF32, std::move(shape)});
}

TEST(StateEntry, IsUninitialisedUntilTheFirstWrite) {
  const auto entry = Entry("weight");
  EXPECT_FALSE(entry->initialised());
  EXPECT_EQ(entry->version(), 0u);
  const std::array<std::uint8_t, 8> written = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_TRUE(entry->Write(written).ok());
  EXPECT_TRUE(entry->initialised());
  EXPECT_NE(entry->version(), 0u);
  std::array<std::uint8_t, 8> read = {};
  ASSERT_TRUE(entry->Read(absl::MakeSpan(read)).ok());
  EXPECT_EQ(read, written);
}

TEST(StateEntry, EveryWriteIsAVersionThatNoOtherHas) {
  const auto a = Entry("a"), b = Entry("b");
  const std::array<std::uint8_t, 8> bytes = {};
  ASSERT_TRUE(a->Write(bytes).ok());
  ASSERT_TRUE(b->Write(bytes).ok());
  const std::uint64_t first = a->version();
  EXPECT_NE(first, b->version());
  a->MarkWritten();
  EXPECT_NE(first, a->version());
}

TEST(StateEntry, FollowsTheContentThatItWasMadeFrom) {
  const auto source = Entry("weight"), derived = Entry("weight.f32");
  EXPECT_FALSE(derived->Follows(*source)) << "nothing was made yet";
  source->MarkWritten();
  derived->MarkWritten();
  derived->MarkFollowing(*source);
  EXPECT_TRUE(derived->Follows(*source));
  source->MarkWritten();
  EXPECT_FALSE(derived->Follows(*source));
}

TEST(StateEntry, RefusesAnotherSizeAndKeepsItsContent) {
  const auto entry = Entry("conv1.weight");
  const std::array<std::uint8_t, 8> written = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_TRUE(entry->Write(written).ok());
  const std::uint64_t version = entry->version();
  std::array<std::uint8_t, 7> other = {};
  const absl::Status write = entry->Write(other);
  EXPECT_EQ(write.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(write.message(), "writing state \"conv1.weight\" (tensor<2xf32>) takes 8 bytes, got 7");
  EXPECT_EQ(entry->Read(absl::MakeSpan(other)).code(), absl::StatusCode::kInvalidArgument);
  std::array<std::uint8_t, 8> read = {};
  ASSERT_TRUE(entry->Read(absl::MakeSpan(read)).ok());
  EXPECT_EQ(read, written);
  EXPECT_EQ(entry->version(), version);
}

TEST(StateEntry, StorageIsAlignedToTheWidestVector) {
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(Entry("a", {1})->data()) % 64, 0u);
}

TEST(StateEntry, MovesIntoSharedMemoryUntilItsAddressIsUsed) {
  const auto entry = Entry("weight");
  const std::array<std::uint8_t, 8> written = {1, 2, 3, 4, 5, 6, 7, 8};
  ASSERT_TRUE(entry->Write(written).ok());
  const std::uint64_t version = entry->version();
  const auto memory = std::make_shared<AlignedBuffer>(256);
  EXPECT_TRUE(entry->MoveTo(memory, 64));
  EXPECT_EQ(entry->data(), memory->data() + 64);
  EXPECT_EQ(entry->version(), version);
  std::array<std::uint8_t, 8> read = {};
  ASSERT_TRUE(entry->Read(absl::MakeSpan(read)).ok());
  EXPECT_EQ(read, written);
  entry->KeepInPlace();
  EXPECT_FALSE(entry->MoveTo(memory, 128));
  EXPECT_EQ(entry->data(), memory->data() + 64);
}

TEST(StateStore, KeepsEntriesInTheOrderOfAdding) {
  StateStore store;
  const auto b = Entry("b", {3});
  const auto a = Entry("a", {});
  ASSERT_TRUE(store.Add(b).ok());
  ASSERT_TRUE(store.Add(a).ok());
  ASSERT_EQ(store.entries().size(), 2u);
  EXPECT_EQ(store.entries()[0], b);
  EXPECT_EQ(store.Find("a"), a);
  EXPECT_EQ(store.Find("c"), nullptr);
  EXPECT_EQ(store.bytes(), 16u);
}

TEST(StateStore, NamesAreUniqueButAnEntryMayBeAddedAgain) {
  StateStore store;
  const auto weight = Entry("weight");
  ASSERT_TRUE(store.Add(weight).ok());
  EXPECT_TRUE(store.Add(weight).ok());
  EXPECT_EQ(store.entries().size(), 1u);
  EXPECT_EQ(store.Add(Entry("weight", {3})).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(store.Find("weight"), weight);
}

}  // namespace
}  // namespace mpc::runtime
