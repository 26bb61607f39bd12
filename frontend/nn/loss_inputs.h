// What losses have in common: their inputs, reductions and errors. Not part of the public API.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "frontend/graph/tensor.h"

namespace mpc::nn::internal {

/// f32 of a floating tensor; losses compute in it.
Tensor AsF32(const Tensor& x);
/// An f32 constant that broadcasts to any shape.
Tensor Number(double value);

/// Reports that `loss` is wrong in the way that `message` says. The result carries the error.
Tensor LossError(std::string_view loss, const std::string& message);

/// "none", "mean" or "sum" of `losses`. Another word is an error that lists the known ones.
Tensor Reduce(std::string_view loss, const Tensor& losses, const std::string& reduction);

/// Empty if both are floating and of one shape, else what is wrong.
std::string PairError(const Tensor& prediction, const Tensor& target);
/// Empty if both are floating rows [N, D] of one shape, else what is wrong.
std::string RowsError(const Tensor& a, const Tensor& b);
/// Empty if `weight` is undefined, or concrete and floating with one factor for each class, else what is wrong.
std::string WeightError(const Tensor& weight, std::int64_t classes);

/// max(0, x). A NaN passes.
Tensor Hinge(const Tensor& x);

/// Logits [N, C, d1, ...] and their labels as rows of classes: one row a position.
struct ClassRows {
  std::string error;    ///< not empty: what is wrong with the inputs
  bool sparse = false;  ///< labels are class indices
  Tensor logits;        ///< f32 [rows, C]
  Tensor labels;        ///< integers [rows], or f32 [rows, C]
  Tensor weight;        ///< f32 [C]
  Shape positions;      ///< [N, d1, ...]
  std::int64_t classes = 0;
};

/// Takes labels [N, d1, ...] of integers, or floating ones like the logits if `dense` are accepted. `weight` is that
/// of the options.
ClassRows AsClassRows(const Tensor& logits, const Tensor& labels, const Tensor& weight, bool dense);

}  // namespace mpc::nn::internal
