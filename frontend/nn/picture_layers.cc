#include "frontend/nn/picture_layers.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/emit.h"

namespace mpc::nn {
namespace {

using mpc::internal::FailWith;

// x times draws of shape `shape`: 0 with probability p, else 1 / (1 - p).
Tensor TimesDraws(const Tensor& x, const Shape& shape, double p) {
  return x * dropout(ops::Fill(x.dtype(), shape, 1), p);
}

}  // namespace

Tensor Dropout2d::Construct(const Tensor& x) {
  if (x.rank() != 4) {
    return FailWith(absl::StrCat("Dropout2d expects images [N, C, H, W], got ", x.spec().ToString()), x.shape());
  }
  return training() ? TimesDraws(x, {x.dim(0), x.dim(1), 1, 1}, p_) : x;
}

Tensor DropPath::Construct(const Tensor& x) {
  if (x.rank() < 1) {
    return FailWith(absl::StrCat("DropPath expects samples [N, ...], got ", x.spec().ToString()), x.shape());
  }
  Shape one_a_sample(x.shape().size(), 1);
  one_a_sample[0] = x.dim(0);
  return training() ? TimesDraws(x, one_a_sample, p_) : x;
}

ConstantPad2d::ConstantPad2d(std::vector<std::int64_t> padding, double value)
    : padding_(std::move(padding)), value_(value) {}

Tensor ConstantPad2d::Construct(const Tensor& x) {
  const bool negative = std::any_of(padding_.begin(), padding_.end(), [](std::int64_t count) { return count < 0; });
  if (negative || (padding_.size() != 1 && padding_.size() != 4) || x.rank() < 2) {
    return FailWith(absl::StrCat(TypeName(),
                                 " takes [..., H, W] and a padding of 1 or 4 counts of 0 or more: left, "
                                 "right, top, bottom. Got ",
                                 x.spec().ToString(), " and [", absl::StrJoin(padding_, ", "), "]"),
                    x.shape());
  }
  const std::vector<std::int64_t> sides = padding_.size() == 4 ? padding_ : std::vector<std::int64_t>(4, padding_[0]);
  std::vector<std::int64_t> low(x.shape().size(), 0), high = low;
  low.end()[-1] = sides[0];
  high.end()[-1] = sides[1];
  low.end()[-2] = sides[2];
  high.end()[-2] = sides[3];
  return pad(x, low, high, value_);
}

}  // namespace mpc::nn
