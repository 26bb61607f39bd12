// Calls of the reference with literals, for tests of hand-computed values.
#pragma once

#include <gtest/gtest.h>

#include <string_view>
#include <utility>
#include <vector>

#include "kernels/reference/reference.h"

namespace mpc::test {

using Ints = std::vector<std::int64_t>;
using Values = std::vector<double>;

inline reference::Tensor F32(Shape shape, Values values) {
  return {{DType::kF32, std::move(shape)}, std::move(values)};
}
inline reference::Tensor F16(Shape shape, Values values) {
  return {{DType::kF16, std::move(shape)}, std::move(values)};
}
inline reference::Tensor I32(Shape shape, Values values) {
  return {{DType::kI32, std::move(shape)}, std::move(values)};
}
inline reference::Tensor I64(Shape shape, Values values) {
  return {{DType::kI64, std::move(shape)}, std::move(values)};
}
inline reference::Tensor Bool(Shape shape, Values values) {
  return {{DType::kBool, std::move(shape)}, std::move(values)};
}

/// The results of operation `op`, whose specs are `results`.
inline std::vector<reference::Tensor> RunReference(std::string_view op, const Attributes& attributes,
                                                   const std::vector<reference::Tensor>& inputs,
                                                   const std::vector<TensorSpec>& results,
                                                   reference::Rounding rounding = reference::Rounding::kLowOnly) {
  std::vector<reference::Tensor> outputs;
  for (const TensorSpec& spec : results) outputs.push_back({spec, {}});
  const absl::Status status = reference::Run(op, attributes, inputs, absl::MakeSpan(outputs), rounding);
  EXPECT_TRUE(status.ok()) << status;
  return outputs;
}

/// The values of the only result, f32 of `shape`.
inline Values RunOne(std::string_view op, const Attributes& attributes, const std::vector<reference::Tensor>& inputs,
                     Shape shape) {
  return RunReference(op, attributes, inputs, {{DType::kF32, std::move(shape)}})[0].values;
}

/// f64 arithmetic on f32 inputs: a few roundings of f64.
inline void ExpectNear(const Values& actual, const Values& expected, double tolerance = 1e-13) {
  ASSERT_EQ(actual.size(), expected.size());
  for (std::size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], tolerance) << i;
}

}  // namespace mpc::test
