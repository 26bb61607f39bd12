#include "kernels/window.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace mpc {
namespace {

using Ints = std::vector<std::int64_t>;
using Pair = std::array<std::int64_t, 2>;

Attributes Mode(const char* pad_mode, Ints strides, Ints padding = {0, 0, 0, 0}) {
  return {{"pad_mode", std::string(pad_mode)}, {"strides", std::move(strides)}, {"padding", std::move(padding)}};
}

TEST(Window, ValidHasNoPadding) {
  const Window window = ResolveWindow(Mode("valid", {2, 1}), {7, 8}, {3, 3}).value();
  EXPECT_EQ(window.output, (Pair{3, 6}));
  EXPECT_EQ(window.pad_begin, (Pair{0, 0}));
}

TEST(Window, SamePutsTheOddElementAtTheEnd) {
  const Window window = ResolveWindow(Mode("same", {2, 1}), {8, 7}, {3, 4}).value();
  EXPECT_EQ(window.output, (Pair{4, 7}));
  EXPECT_EQ(window.pad_begin, (Pair{0, 1}));
  EXPECT_EQ(window.pad_end, (Pair{1, 2}));
}

TEST(Window, PadTakesTopBottomLeftRight) {
  const Window window = ResolveWindow(Mode("pad", {1, 1}, {1, 2, 3, 4}), {5, 5}, {3, 3}).value();
  EXPECT_EQ(window.pad_begin, (Pair{1, 3}));
  EXPECT_EQ(window.pad_end, (Pair{2, 4}));
  EXPECT_EQ(window.output, (Pair{6, 10}));
}

TEST(Window, DilationWidensTheKernel) {
  const Window window = ResolveWindow({{"dilations", Ints{2, 3}}}, {9, 9}, {3, 3}).value();
  EXPECT_EQ(window.output, (Pair{5, 3}));
}

TEST(Window, RefusesWhatDoesNotFit) {
  EXPECT_EQ(ResolveWindow(Mode("valid", {1, 1}), {4, 4}, {5, 5}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(ResolveWindow(Mode("reflect", {1, 1}), {4, 4}, {3, 3}).ok());
  EXPECT_FALSE(ResolveWindow(Mode("same", {1, 1}, {1, 1, 1, 1}), {4, 4}, {3, 3}).ok());
  EXPECT_FALSE(ResolveWindow(Mode("valid", {0, 1}), {4, 4}, {3, 3}).ok());
  EXPECT_FALSE(ResolveWindow({{"dilations", Ints{0, 1}}}, {4, 4}, {3, 3}).ok());
  EXPECT_FALSE(ResolveWindow(Mode("pad", {1, 1}, {-1, 0, 0, 0}), {4, 4}, {3, 3}).ok());
  EXPECT_FALSE(ResolveWindow(Mode("pad", {1, 1}, {0, 0, 0, -1}), {4, 4}, {3, 3}).ok());
  EXPECT_FALSE(ResolveWindow(Mode("valid", {std::int64_t{1} << 31, 1}), {4, 4}, {3, 3}).ok());
}

}  // namespace
}  // namespace mpc
