// The table of CPU kernels. Each family file adds its operations through one function declared here. Nothing registers
// itself from a static initialiser, so that a static library keeps every kernel.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/alias_rule.h"
#include "kernels/cpu/kernel.h"

namespace mpc::cpu {

using Factory = absl::StatusOr<std::unique_ptr<Kernel>> (*)(const KernelSpec&);

/// The functions behind CreateKernel and CandidateChoices for an operation with several implementations.
struct Implementations {
  absl::StatusOr<std::unique_ptr<Kernel>> (*create)(const KernelSpec&, const KernelOptions&) = nullptr;
  std::vector<std::string> (*candidates)(const KernelSpec&, const KernelOptions&) = nullptr;
};
using GroupFactory = absl::StatusOr<std::unique_ptr<Kernel>> (*)(absl::Span<const KernelSpec>);

class Registry {
 public:
  struct Entry {
    Factory factory = nullptr;        ///< null where there are several implementations
    Implementations implementations;  ///< null where there is one
    GroupFactory group = nullptr;     ///< several instructions in one parallel region
    std::vector<AliasRule> aliases;
  };

  /// `name` is a string literal: the mnemonic without "mpc.".
  void Add(std::string_view name, Factory factory, std::vector<AliasRule> aliases = {}) {
    Entry& entry = entries_[name];
    entry.factory = factory;
    entry.aliases = std::move(aliases);
  }
  void Add(std::string_view name, const Implementations& implementations, std::vector<AliasRule> aliases = {}) {
    Entry& entry = entries_[name];
    entry.implementations = implementations;
    entry.aliases = std::move(aliases);
  }
  void AddGroup(std::string_view name, GroupFactory factory) { entries_[name].group = factory; }
  const std::map<std::string_view, Entry>& entries() const { return entries_; }

 private:
  std::map<std::string_view, Entry> entries_;
};

void RegisterUnary(Registry& registry);
void RegisterBinary(Registry& registry);
void RegisterCompare(Registry& registry);
void RegisterCast(Registry& registry);
void RegisterRandom(Registry& registry);
void RegisterIntegerArithmetic(Registry& registry);
void RegisterIota(Registry& registry);
void RegisterGather(Registry& registry);
void RegisterMovement(Registry& registry);
void RegisterPrelu(Registry& registry);
void RegisterReduceMax(Registry& registry);
void RegisterReduceProd(Registry& registry);
void RegisterCumsum(Registry& registry);
void RegisterTopK(Registry& registry);  ///< and sort
void RegisterDataMovement(Registry& registry);
void RegisterReduce(Registry& registry);
void RegisterMaxPool(Registry& registry);
void RegisterActivation(Registry& registry);
void RegisterAvgPool(Registry& registry);
void RegisterResize(Registry& registry);
void RegisterBatchNorm(Registry& registry);
void RegisterLossScale(Registry& registry);
void RegisterOptimizers(Registry& registry);
void RegisterAccumulation(Registry& registry);
void RegisterCollectives(Registry& registry);
void RegisterGradientNorm(Registry& registry);
void RegisterStepFlags(Registry& registry);
void RegisterTensorStatistics(Registry& registry);
void RegisterAttention(Registry& registry);
void RegisterAttentionGrad(Registry& registry);
void RegisterRecurrent(Registry& registry);
void RegisterGroupNorm(Registry& registry);
void RegisterConvTranspose2d(Registry& registry);
void RegisterBatchMatmul(Registry& registry);  ///< onednn_batch_matmul.cc
void RegisterConv2d(Registry& registry);       ///< onednn_conv2d.cc
void RegisterConvolutionStatistics(Registry& registry);
void RegisterMatmul(Registry& registry);      ///< onednn_matmul.cc
void RegisterPackWeight(Registry& registry);  ///< onednn_pack_weight.cc

/// `kernel` with its name among several implementations, and how it packs its weight.
std::unique_ptr<Kernel> WithChoice(std::unique_ptr<Kernel> kernel, std::string choice,
                                   std::optional<WeightPacking> packing = std::nullopt);

/// UNIMPLEMENTED, naming the operation with the types of its operands and results.
absl::Status UnsupportedTypes(const KernelSpec& spec);

/// What every kernel takes as given. Errors: UNIMPLEMENTED if an operand or result is f64 where kernels take none
/// (kernels/f64_scalars.h); those of CheckWords.
absl::Status CheckSpec(const KernelSpec& spec);

}  // namespace mpc::cpu
