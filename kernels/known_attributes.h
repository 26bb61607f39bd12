// The attributes that take words, and those with a default other than zero. The defaults are those of the dialect's
// operations. Lowering writes every attribute into a Program. Shape inference and tests leave some out.
#pragma once

#include <array>
#include <cstdint>

#include "kernels/attribute_enums.h"
#include "kernels/attributes.h"

namespace mpc {

namespace attribute {

using Pair = std::array<std::int64_t, 2>;
using Margins = std::array<std::int64_t, 4>;

// Words.
inline constexpr KnownAttribute<DataFormat> kDataFormat{"data_format", DataFormat::kNCHW};
inline constexpr KnownAttribute<PadMode> kPadMode{"pad_mode", PadMode::kValid};
inline constexpr KnownAttribute<LossReduction> kReduction{"reduction", LossReduction::kMean};
inline constexpr KnownAttribute<Activation> kActivation{"activation", Activation::kNone};
inline constexpr KnownAttribute<Approximation> kApproximate{"approximate", Approximation::kNone};
inline constexpr KnownAttribute<Interpolation> kInterpolation{"interpolation", Interpolation::kNearest};
inline constexpr KnownAttribute<Coordinates> kCoordinates{"coordinates", Coordinates::kAsymmetric};
inline constexpr KnownAttribute<LowCopy> kLowCopy{"shadow", LowCopy::kNone};
inline constexpr RequiredAttribute<Distribution> kDistribution{"distribution"};

// Windows. The dialect has no default for the size of a pooling window.
inline constexpr KnownAttribute<Pair> kStrides{"strides", {1, 1}};
inline constexpr KnownAttribute<Pair> kDilations{"dilations", {1, 1}};
inline constexpr KnownAttribute<Margins> kPadding{"padding", {0, 0, 0, 0}};
inline constexpr KnownAttribute<Pair> kKernelSize{"kernel_size", {1, 1}};
inline constexpr KnownAttribute<bool> kCountIncludePad{"count_include_pad", true};

// Counts by which kernels divide. The dialect has no default for `count`, and none for the groups of group_norm.
inline constexpr KnownAttribute<std::int64_t> kGroups{"groups", 1};
inline constexpr KnownAttribute<std::int64_t> kCount{"count", 1};

// Steps: a level of a sum over micro-steps, processes that train together, what a counter moves by, batches whose
// statistics move those of BatchNorm.
inline constexpr KnownAttribute<std::int64_t> kLevel{"level", 0};
inline constexpr KnownAttribute<std::int64_t> kProcesses{"processes", 1};
inline constexpr KnownAttribute<std::int64_t> kBy{"by", 1};
inline constexpr KnownAttribute<std::int64_t> kBatches{"batches", 1};

// Axes. Those of concat and split have the default 0.
inline constexpr KnownAttribute<std::int64_t> kLastAxis{"axis", -1};

// Numbers of functions. The dialect has no default for the scale of attention.
inline constexpr KnownAttribute<float> kScale{"scale", 1.0f};
inline constexpr KnownAttribute<float> kSlope{"alpha", 0.2f};
inline constexpr KnownAttribute<float> kOn{"on", 1.0f};
inline constexpr KnownAttribute<float> kUpper{"b", 1.0f};
inline constexpr KnownAttribute<float> kEpsilon{"epsilon", 1e-5f};

// Numbers of optimizers. The momentum of sgd and the weight decay of others than adamw have the default 0. The epsilon
// of adamw is that of adam. The epsilon of adam_weight_decay is that of lamb.
inline constexpr KnownAttribute<float> kMomentum{"momentum", 0.9f};
inline constexpr KnownAttribute<float> kBeta1{"beta1", 0.9f};
inline constexpr KnownAttribute<float> kBeta2{"beta2", 0.999f};
inline constexpr KnownAttribute<float> kAdamEpsilon{"epsilon", 1e-8f};
inline constexpr KnownAttribute<float> kLambEpsilon{"epsilon", 1e-6f};
inline constexpr KnownAttribute<float> kAdamWDecay{"weight_decay", 0.01f};
inline constexpr KnownAttribute<float> kLossScale{"loss_scale", 1.0f};

}  // namespace attribute

}  // namespace mpc
