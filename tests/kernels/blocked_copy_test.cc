// Our own copies into blocked layouts beside the library's: each layout of four dimensions, drawn extents and orders.
#include "kernels/cpu/blocked_copy.h"

#include <dnnl_debug.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/onednn_calls.h"
#include "kernels/cpu/onednn_common.h"
#include "kernels/cpu/onednn_layout.h"
#include "tests/kernels/kernel_run.h"

namespace mpc::cpu {
namespace {

using dnnl::memory;
using test::GuardedBuffer;

/// Names of the layouts that a weight of `rank` dimensions may be wanted in.
std::vector<std::string> BlockedLayouts(std::size_t rank) {
  std::vector<std::string> names;
  for (int tag = dnnl_format_tag_any + 1; tag < dnnl_format_tag_last; ++tag) {
    const std::string name = dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(tag));
    if (name.find_first_of("0123456789") != rank) continue;
    if (NamedLayout(memory::dims(rank, 2), memory::data_type::f32, name).ok()) names.push_back(name);
  }
  return names;
}

/// Strides of a tensor of `extents` that fills its memory, its dimensions in a drawn order.
memory::dims DrawStrides(const memory::dims& extents, std::mt19937& random) {
  std::vector<std::size_t> order(extents.size());
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random);
  memory::dims strides(extents.size());
  std::int64_t next = 1;
  for (const std::size_t d : order) {
    strides[d] = next;
    next *= extents[d];
  }
  return strides;
}

/// The bits that the library gives: widened as a whole, where the types differ, and then copied.
std::vector<std::uint8_t> OfLibrary(const Port& port, const void* from) {
  WorkspaceLayout layout;
  const Stage stage(port, layout);
  ReorderInParts reorder(port.stored, port.wanted);
  const std::size_t scratchpad = layout.Reserve(reorder.scratchpad_bytes());
  GuardedBuffer workspace(layout.size()), result(port.wanted.get_size());
  auto* bytes = static_cast<std::byte*>(workspace.data());
  reorder.Execute(stage.Convert(from, bytes), result.data(), bytes + scratchpad);
  return result.Bits();
}

/// Any bits but those of NaN, whose payload the library may change.
void DrawNumbers(DType dtype, GuardedBuffer& buffer, std::mt19937& random) {
  const std::uint16_t exponent = dtype == DType::kF16 ? 0x7c00 : 0x7f80;
  auto* numbers = static_cast<std::uint16_t*>(buffer.data());
  for (std::size_t i = 0; i < buffer.bytes() / sizeof(*numbers); ++i) {
    const auto bits = static_cast<std::uint16_t>(random());
    numbers[i] = (bits & exponent) == exponent ? static_cast<std::uint16_t>(bits & ~0x7f) : bits;
    if (dtype == DType::kF16 && (bits & exponent) == exponent) numbers[i] &= 0xfc00;
  }
}

struct Types {
  DType storage;
  memory::data_type packed;
};

class BlockedCopies : public testing::TestWithParam<Types> {
 protected:
  void SetUp() override {
    if (!UsesInstructionsOf(dnnl::cpu_isa::avx512_core)) GTEST_SKIP() << "needs AVX-512";
  }
};

TEST_P(BlockedCopies, GiveTheBitsOfTheLibrary) {
  constexpr int kDraws = 4;
  const auto [storage, packed] = GetParam();
  std::mt19937 random(5);
  const auto draw = [&](std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(random() % static_cast<std::uint32_t>(most - least + 1));
  };
  int taken = 0;
  for (const std::size_t rank : {std::size_t{2}, std::size_t{4}, std::size_t{5}}) {
    for (const std::string& name : BlockedLayouts(rank)) {
      for (int i = 0; i < kDraws; ++i) {
        memory::dims extents(rank);
        for (std::int64_t& extent : extents) extent = draw(0, 3) == 0 ? draw(1, 70) : draw(1, rank == 2 ? 150 : 9);
        const Port port{
            0, storage, {extents, packed, DrawStrides(extents, random)}, *NamedLayout(extents, packed, name)};
        const std::optional<BlockedCopy> copy = BlockedCopy::Make(storage, port.stored, port.wanted);
        if (!copy) continue;
        SCOPED_TRACE(testing::Message() << name << " of " << testing::PrintToString(extents) << " draw " << i);
        const auto elements = std::accumulate(extents.begin(), extents.end(), std::int64_t{1}, std::multiplies<>());
        GuardedBuffer from(static_cast<std::size_t>(elements) * ElementSize(storage)), to(port.wanted.get_size());
        DrawNumbers(storage, from, random);
        copy->Run(from.data(), to.data());
        ASSERT_TRUE(from.GuardIntact() && to.GuardIntact());
        ASSERT_EQ(to.Bits(), OfLibrary(port, from.data()));
        ++taken;
      }
    }
  }
  EXPECT_GT(taken, 100);
}

TEST_P(BlockedCopies, TakeTheLayoutsOfConvolutions) {
  const auto [storage, packed] = GetParam();
  const memory::dims extents = {64, 32, 3, 3};
  const memory::desc stored(extents, packed, memory::dims{288, 9, 3, 1});
  const std::vector<std::string> names = packed == memory::data_type::f32
                                             ? std::vector<std::string>{"ABcd16b16a", "Acdb64a", "Bcda32b"}
                                             : std::vector<std::string>{"ABcd16b16a2b", "AcdB64a2b", "BcdA64b2a"};
  for (const std::string& name : names) {
    EXPECT_TRUE(BlockedCopy::Make(storage, stored, *NamedLayout(extents, packed, name))) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Types, BlockedCopies,
                         testing::Values(Types{DType::kF16, memory::data_type::f32},
                                         Types{DType::kBF16, memory::data_type::f32},
                                         Types{DType::kBF16, memory::data_type::bf16}),
                         [](const auto& info) {
                           return std::string(DTypeName(info.param.storage)) +
                                  (info.param.packed == memory::data_type::f32 ? "_widened" : "_pairs");
                         });

TEST(BlockedCopy, LeavesTheLibraryWhatItCopiesWell) {
  const memory::dims extents = {64, 32, 3, 3};
  const auto make = [&](DType storage, memory::data_type packed, const std::string& name, const memory::dims& sizes) {
    const memory::dims strides = {sizes[1] * 9, 9, 3, 1};
    return BlockedCopy::Make(storage, {sizes, packed, strides}, *NamedLayout(sizes, packed, name)).has_value();
  };
  EXPECT_FALSE(make(DType::kF32, memory::data_type::f32, "ABcd16b16a", extents));
  EXPECT_FALSE(make(DType::kBF16, memory::data_type::bf16, "ABcd16b16a", extents)) << "it has no pairs";
  EXPECT_FALSE(make(DType::kBF16, memory::data_type::bf16, "ABcd16b16a2b", {64, 31, 3, 3})) << "half a pair";
  EXPECT_FALSE(make(DType::kBF16, memory::data_type::f32, "ABcd8b8a", extents)) << "vectors of 8";
}

}  // namespace
}  // namespace mpc::cpu
