#include "frontend/state/name_map.h"

#include <gtest/gtest.h>

namespace mpc {
namespace {

TEST(NameMap, TheIdentityChangesNothing) {
  EXPECT_EQ(NameMap().Foreign("norm.gamma"), "norm.gamma");
  EXPECT_FALSE(NameMap().Ignores("norm.num_batches_tracked"));
  EXPECT_EQ(NameMap().format(), "mpc");
}

TEST(NameMap, PyTorchsNames) {
  const NameMap map = NameMap::PyTorch();
  EXPECT_EQ(map.Foreign("layer1.0.norm.gamma"), "layer1.0.norm.weight");
  EXPECT_EQ(map.Foreign("norm.beta"), "norm.bias");
  EXPECT_EQ(map.Foreign("norm.moving_mean"), "norm.running_mean");
  EXPECT_EQ(map.Foreign("norm.moving_variance"), "norm.running_var");
  EXPECT_EQ(map.Foreign("conv.weight"), "conv.weight");
  EXPECT_EQ(map.Foreign("fc.bias"), "fc.bias");
  EXPECT_EQ(map.Foreign("gamma"), "weight") << "of a network that is one layer";
  EXPECT_EQ(map.Foreign("gamma.weight"), "gamma.weight") << "a path is no member";
  EXPECT_TRUE(map.Ignores("norm.num_batches_tracked"));
  EXPECT_FALSE(map.Ignores("num_batches_tracked.weight"));
}

TEST(NameMap, RenamedPaths) {
  NameMap map = NameMap::PyTorch();
  map.Rename("norm", "features.1").Rename("norm.inner", "deep").Rename("head", "");
  EXPECT_EQ(map.Foreign("norm.gamma"), "features.1.weight");
  EXPECT_EQ(map.Foreign("norm.inner.weight"), "deep.weight") << "the longest path wins";
  EXPECT_EQ(map.Foreign("norm2.gamma"), "norm2.weight");
  EXPECT_EQ(map.Foreign("head.fc.bias"), "fc.bias");
  EXPECT_EQ(NameMap().Rename("", "module").Foreign("fc.bias"), "module.fc.bias");
}

}  // namespace
}  // namespace mpc
