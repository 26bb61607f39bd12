// What the optimizers' kernels do on one tensor. They apply a rule of kernels/scalar/optimizer_rules.h, in f32, to the
// unscaled and clipped gradient. One pass writes the new values and the low copy, all of it under the
// predicate. Values that change from step to step are read on the device.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/cuda/block_reduce.h"
#include "kernels/cuda/multi_tensor.h"
#include "kernels/scalar/optimizer_rules.h"

namespace mpc::cuda {

/// Parameter, states and gradient; new parameter, new states and low copy.
template <int kStates>
using OptimizerSegment = TensorSegment<kStates + 2, kStates + 2>;

/// The element types of all tensors of a launch; the states are f32.
struct OptimizerTypes {
  DType parameter, gradient, low_copy;
};

/// A predicate in device memory; absent, it holds.
struct DevicePredicate {
  const std::uint8_t* flag;
  __device__ __forceinline__ bool Holds() const { return flag == nullptr || *flag != 0; }
};

/// The scalars of a step in device memory; those that an update does not have are null.
struct DeviceScalars {
  const float* learning_rate;
  const std::int32_t* step;
  const float* scale;
  scalar::NormOperand norm;
  float max_norm;
  DevicePredicate predicate;
  __device__ __forceinline__ scalar::StepScalars Read() const { return {*learning_rate, step == nullptr ? 0 : *step}; }
  __device__ __forceinline__ scalar::GradientFactors ReadFactors() const {
    return scalar::FactorsOf(scale, norm, max_norm);
  }
};

/// `kWidth` neighbours of every operand, as f32. The gradient is the one that the rule sees.
template <int kStates, int kWidth>
struct OptimizerElements {
  float parameter[kWidth], gradient[kWidth];
  float states[2][kWidth];

  __device__ __forceinline__ OptimizerElements(const OptimizerTypes& types, const OptimizerSegment<kStates>& segment,
                                               const scalar::GradientFactors& factors, std::int64_t index) {
    LoadElements(Source{segment.inputs[0], types.parameter}, index, parameter);
    MPC_UNROLL
    for (int k = 0; k < kStates; ++k) LoadElements(Source{segment.inputs[1 + k], DType::kF32}, index, states[k]);
    if constexpr (kStates == 1) {
      for (int i = 0; i < kWidth; ++i) states[1][i] = 0;
    }
    LoadElements(Source{segment.inputs[1 + kStates], types.gradient}, index, gradient);
    MPC_UNROLL
    for (int i = 0; i < kWidth; ++i) gradient[i] = factors.Apply(gradient[i]);
  }
};

/// Writes the results of a skipped update: the old values, and the old parameter rounded.
template <int kStates>
__device__ __forceinline__ void KeepOldState(const OptimizerTypes& types, const OptimizerSegment<kStates>& segment,
                                             const SegmentShare& share) {
  ForEachInShare(share, segment.count, [&](auto width, std::int64_t index) {
    constexpr int kWidth = decltype(width)::value;
    MPC_UNROLL
    for (int k = 0; k <= kStates; ++k) {
      if (segment.outputs[k] == nullptr || segment.outputs[k] == segment.inputs[k]) continue;
      CopyElements<kWidth>(k == 0 && types.parameter != DType::kF32 ? 2 : 4, segment.inputs[k], index,
                           segment.outputs[k], index);
    }
    if (segment.outputs[kStates + 1] == nullptr) return;
    float parameter[kWidth];
    LoadElements(Source{segment.inputs[0], types.parameter}, index, parameter);
    StoreElements(Sink{segment.outputs[kStates + 1], types.low_copy}, index, parameter);
  });
}

/// Applies `step` to each element and stores what is wanted. Each element is read before its results are written, so
/// results may lie in their operands' storage.
template <int kStates, typename Step>
__device__ __forceinline__ void UpdateElements(const OptimizerTypes& types, const OptimizerSegment<kStates>& segment,
                                               const SegmentShare& share, const scalar::GradientFactors& factors,
                                               const Step& step) {
  ForEachInShare(share, segment.count, [&](auto width, std::int64_t index) {
    constexpr int kWidth = decltype(width)::value;
    OptimizerElements<kStates, kWidth> x(types, segment, factors, index);
    MPC_UNROLL
    for (int i = 0; i < kWidth; ++i) step(x.parameter[i], x.states[0][i], x.states[1][i], x.gradient[i]);
    if (segment.outputs[0] != nullptr) StoreElements(Sink{segment.outputs[0], types.parameter}, index, x.parameter);
    MPC_UNROLL
    for (int k = 0; k < kStates; ++k) {
      if (segment.outputs[1 + k] == nullptr) continue;
      StoreElements(Sink{segment.outputs[1 + k], DType::kF32}, index, x.states[k]);
    }
    if (segment.outputs[kStates + 1] == nullptr) return;
    StoreElements(Sink{segment.outputs[kStates + 1], types.low_copy}, index, x.parameter);
  });
}

/// A rule that treats every element alike.
template <typename Rule>
struct ElementwiseUpdate {
  using Segment = OptimizerSegment<Rule::kStates>;
  Rule rule;
  OptimizerTypes types;
  DeviceScalars scalars;

  __device__ __forceinline__ void operator()(const Segment& segment, const SegmentShare& share) const {
    if (!scalars.predicate.Holds()) return KeepOldState<Rule::kStates>(types, segment, share);
    UpdateElements<Rule::kStates>(types, segment, share, scalars.ReadFactors(), rule.Begin(scalars.Read()));
  }
};

/// Blocks of one tensor whose norms are wanted: each block of the second pass adds up all their partial sums.
inline constexpr std::int64_t kNormBlocks = 512;

/// The first pass of a rule with norms: for each block the sums of squares of its parameters and directions, in f64.
template <typename Rule>
struct NormPartials {
  using Segment = OptimizerSegment<Rule::kStates>;
  Rule rule;
  OptimizerTypes types;
  DeviceScalars scalars;
  double* partials;  ///< two of each block of the grid

  __device__ __forceinline__ void operator()(const Segment& segment, const SegmentShare& share) const {
    if (!scalars.predicate.Holds()) return;
    const auto direction = rule.Direction(scalars.Read());
    const scalar::GradientFactors factors = scalars.ReadFactors();
    double parameter = 0, update = 0;
    ForEachInShare(share, segment.count, [&](auto width, std::int64_t index) {
      constexpr int kWidth = decltype(width)::value;
      OptimizerElements<Rule::kStates, kWidth> x(types, segment, factors, index);
      MPC_UNROLL
      for (int i = 0; i < kWidth; ++i) {
        const float u = direction(x.parameter[i], x.states[0][i], x.states[1][i], x.gradient[i]);
        parameter += static_cast<double>(x.parameter[i]) * static_cast<double>(x.parameter[i]);
        update += static_cast<double>(u) * static_cast<double>(u);
      }
    });
    using Sum = scalar::SumOp<double>;
    parameter = BlockReduce<Sum, kTensorThreads>(parameter);
    update = BlockReduce<Sum, kTensorThreads>(update);
    if (threadIdx.x != 0) return;
    partials[2 * (share.first_block + share.block)] = parameter;
    partials[2 * (share.first_block + share.block) + 1] = update;
  }
};

/// The second pass.
template <typename Rule>
struct NormUpdate {
  using Segment = OptimizerSegment<Rule::kStates>;
  Rule rule;
  OptimizerTypes types;
  DeviceScalars scalars;
  const double* partials;

  __device__ __forceinline__ void operator()(const Segment& segment, const SegmentShare& share) const {
    if (!scalars.predicate.Holds()) return KeepOldState<Rule::kStates>(types, segment, share);
    double parameter = 0, update = 0;
    for (unsigned block = threadIdx.x; block < share.blocks; block += kTensorThreads) {
      parameter += partials[2 * (share.first_block + block)];
      update += partials[2 * (share.first_block + block) + 1];
    }
    using Sum = scalar::SumOp<double>;
    parameter = BlockReduce<Sum, kTensorThreads>(parameter);
    update = BlockReduce<Sum, kTensorThreads>(update);
    UpdateElements<Rule::kStates>(types, segment, share, scalars.ReadFactors(),
                                  rule.Begin(scalars.Read(), std::sqrt(parameter), std::sqrt(update)));
  }
};

}  // namespace mpc::cuda
