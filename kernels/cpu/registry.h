// The table of CPU kernels. Each family file adds its operations through one function declared here; nothing registers
// itself from a static initialiser, so that a static library keeps every kernel.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cpu/kernel.h"

namespace mpc::cpu {

using Factory = absl::StatusOr<std::unique_ptr<Kernel>> (*)(const KernelSpec&);

/// Output `output` may occupy the storage of input `input` where both have one spec.
struct AliasRule {
  std::size_t output = 0;
  std::size_t input = 0;
};

class Registry {
 public:
  struct Entry {
    Factory factory = nullptr;
    std::vector<AliasRule> aliases;
  };

  /// `name` is a string literal: the mnemonic without "mpc.".
  void Add(std::string_view name, Factory factory, std::vector<AliasRule> aliases = {}) {
    entries_[name] = Entry{factory, std::move(aliases)};
  }
  const std::map<std::string_view, Entry>& entries() const { return entries_; }

 private:
  std::map<std::string_view, Entry> entries_;
};

void RegisterUnary(Registry& registry);
void RegisterBinary(Registry& registry);
void RegisterCompare(Registry& registry);
void RegisterCast(Registry& registry);
void RegisterRandom(Registry& registry);
void RegisterGather(Registry& registry);
void RegisterMovement(Registry& registry);
void RegisterPrelu(Registry& registry);
void RegisterReduceMax(Registry& registry);
void RegisterDataMovement(Registry& registry);
void RegisterReduce(Registry& registry);
void RegisterMaxPool(Registry& registry);
void RegisterActivation(Registry& registry);
void RegisterAvgPool(Registry& registry);
void RegisterBatchNorm(Registry& registry);
void RegisterBatchNormGrad(Registry& registry);
void RegisterSoftmax(Registry& registry);
void RegisterLosses(Registry& registry);
void RegisterLossScale(Registry& registry);
void RegisterOptimizers(Registry& registry);
void RegisterAccumulation(Registry& registry);
void RegisterGradientNorm(Registry& registry);
void RegisterStepFlags(Registry& registry);
void RegisterTensorStatistics(Registry& registry);
void RegisterAttention(Registry& registry);
void RegisterAttentionGrad(Registry& registry);
void RegisterRecurrent(Registry& registry);
void RegisterLayerNorm(Registry& registry);
void RegisterGroupNorm(Registry& registry);
void RegisterConvTranspose2d(Registry& registry);
void RegisterBatchMatmul(Registry& registry);  ///< onednn_batch_matmul.cc
void RegisterConv2d(Registry& registry);       ///< onednn_conv2d.cc
void RegisterMatmul(Registry& registry);       ///< onednn_matmul.cc

/// UNIMPLEMENTED, naming the operation with the types of its operands and results.
absl::Status UnsupportedTypes(const KernelSpec& spec);

/// UNIMPLEMENTED if an operand or result is f64, which only the reference computes in.
absl::Status CheckStorageTypes(const KernelSpec& spec);

}  // namespace mpc::cpu
