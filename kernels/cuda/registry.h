// The table of CUDA kernels. Each family file adds its operations through one function declared here.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/alias_rule.h"
#include "kernels/cuda/kernel.h"

namespace mpc::cuda {

using Factory = absl::StatusOr<std::unique_ptr<Kernel>> (*)(const KernelSpec&, const KernelContext&);
using GroupFactory = absl::StatusOr<std::unique_ptr<Kernel>> (*)(absl::Span<const KernelSpec>, const KernelContext&);
using Candidates = absl::StatusOr<std::vector<std::string>> (*)(const KernelSpec&, const KernelContext&);

class Registry {
 public:
  struct Entry {
    Factory own = nullptr;            ///< this project's kernel
    Factory library = nullptr;        ///< the vendor's; UNIMPLEMENTED where it cannot or should not be used
    GroupFactory group = nullptr;     ///< several instructions in one launch
    Candidates candidates = nullptr;  ///< the library's choices, for tuning
    std::vector<AliasRule> aliases;
  };

  /// `name` is a string literal: the mnemonic without "mpc.".
  void Add(std::string_view name, Factory factory, std::vector<AliasRule> aliases = {}) {
    Entry& entry = entries_[name];
    entry.own = factory;
    entry.aliases = std::move(aliases);
  }
  void AddGroup(std::string_view name, GroupFactory factory) { entries_[name].group = factory; }
  void AddLibrary(std::string_view name, Factory factory, Candidates candidates = nullptr) {
    Entry& entry = entries_[name];
    entry.library = factory;
    entry.candidates = candidates;
  }
  const std::map<std::string_view, Entry>& entries() const { return entries_; }

 private:
  std::map<std::string_view, Entry> entries_;
};

// Map: one thread an element or a vector of elements.
void RegisterUnary(Registry& registry);              ///< unary.cu
void RegisterActivation(Registry& registry);         ///< activation.cu
void RegisterBinary(Registry& registry);             ///< binary.cu
void RegisterSelection(Registry& registry);          ///< selection.cu: compare, logic, select, where, cast
void RegisterRandom(Registry& registry);             ///< random.cu
void RegisterIntegerArithmetic(Registry& registry);  ///< integer_arithmetic.cu
void RegisterIota(Registry& registry);               ///< iota.cu
void RegisterDataMovement(Registry& registry);       ///< data_movement.cu
void RegisterCollectives(Registry& registry);        ///< collectives.cu
void RegisterStepFlags(Registry& registry);          ///< step_flags.cu
// Row and column reductions.
void RegisterReduce(Registry& registry);     ///< reduce.cu
void RegisterCumsum(Registry& registry);     ///< cumsum.cu
void RegisterTopK(Registry& registry);       ///< top_k.cu: and sort
void RegisterSoftmax(Registry& registry);    ///< softmax.cu
void RegisterLosses(Registry& registry);     ///< losses.cu
void RegisterBatchNorm(Registry& registry);  ///< batch_norm.cu
void RegisterLayerNorm(Registry& registry);  ///< layer_norm.cu
void RegisterGroupNorm(Registry& registry);  ///< group_norm.cu
void RegisterFinite(Registry& registry);     ///< finite.cu: finite checks, norms, clip_by_norm, tensor_statistics
// Windows, gathers, products.
void RegisterPooling(Registry& registry);                ///< pooling.cu
void RegisterResize(Registry& registry);                 ///< resize.cu
void RegisterGather(Registry& registry);                 ///< gather.cu
void RegisterConvolution(Registry& registry);            ///< convolution.cu: direct, any shape
void RegisterConvolutionStatistics(Registry& registry);  ///< convolution_statistics.cu
void RegisterMatmul(Registry& registry);                 ///< matmul.cu: tiles, any shape
void RegisterAttention(Registry& registry);              ///< attention.cu
void RegisterRecurrent(Registry& registry);              ///< recurrent.cu
// State.
void RegisterOptimizers(Registry& registry);  ///< optimizers.cu
void RegisterLossScale(Registry& registry);   ///< loss_scale.cu
// The vendor's libraries; not part of the emulation.
void RegisterCublasLt(Registry& registry);          ///< library/cublas_lt.cc
void RegisterCudnnConvolution(Registry& registry);  ///< library/cudnn_convolution.cc
void RegisterCudnnAttention(Registry& registry);    ///< library/cudnn_attention.cc

/// UNIMPLEMENTED, naming the operation with the types of its operands and results.
absl::Status UnsupportedTypes(const KernelSpec& spec);

/// What every kernel takes as given. Errors: UNIMPLEMENTED if an operand or result is f64 where kernels take none
/// (kernels/f64_scalars.h); those of CheckWords.
absl::Status CheckSpec(const KernelSpec& spec);

/// A kernel that is one function of its operands: `function(operands, queue)` returns a status.
template <typename Function>
class FunctionKernel : public Kernel {
 public:
  FunctionKernel(Function function, std::size_t workspace_bytes)
      : function_(std::move(function)), workspace_bytes_(workspace_bytes) {}
  std::size_t workspace_bytes() const override { return workspace_bytes_; }
  absl::Status Enqueue(const KernelOperands& operands, LaunchQueue& queue) override {
    return function_(operands, queue);
  }

 private:
  Function function_;
  std::size_t workspace_bytes_;
};

template <typename Function>
absl::StatusOr<std::unique_ptr<Kernel>> MakeKernel(Function function, std::size_t workspace_bytes = 0) {
  return std::unique_ptr<Kernel>(new FunctionKernel<Function>(std::move(function), workspace_bytes));
}

}  // namespace mpc::cuda
