// A score is a sum of D products, off by (D + 2) u times the sum of their magnitudes. What scores are off by becomes a
// relative error of exp(score); a probability that is then within its error of a tie may round to either low neighbour.
// Subnormal operands and sums of products may count as 0 (kUnderflow).
#include "tests/kernels/attention_error_bounds.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"

namespace mpc::test {
namespace {

using reference::Tensor;

/// A computed number with what it may be off by.
struct Uncertain {
  double value = 0;
  double error = 0;

  /// What rounding to `dtype` makes of it: f32 arithmetic is not rounded again.
  Uncertain Rounded(DType dtype) const {
    if (!IsLowPrecision(dtype)) return *this;
    const double rounded = reference::RoundTo(dtype, value);
    const double low = reference::RoundTo(dtype, value - error);
    const double high = reference::RoundTo(dtype, value + error);
    return {rounded, std::max(rounded - low, high - rounded)};
  }
};

/// What rounding to `dtype` changes of a normal number, relative to it; 0 for f32, which is not rounded again.
double LowUnit(DType dtype) {
  if (dtype == DType::kF16) return 0x1p-11;
  return dtype == DType::kBF16 ? 0x1p-8 : 0;
}
/// What rounding to `dtype` changes of a number below its normal ones.
double LowUnderflow(DType dtype) { return dtype == DType::kF16 ? 0x1p-25 : 0; }

/// ex2.approx of a GPU with the product in front of it, in relative terms: 2 ulp, and one for the rounded factor.
constexpr double kFusedExponential = 8 * kFunction;

/// The scores of a case, row by row.
class Scores {
 public:
  Scores(const OpCase& op_case, const Tensor& query, const Tensor& key, const Tensor& value, const Tensor* mask)
      : heads(Extent(query, 0) * Extent(query, 1)),
        rows(Extent(query, 2)),
        columns(Extent(key, 2)),
        width(Extent(query, 3)),
        value_width(Extent(value, 3)),
        query_(query.values),
        key_(key.values),
        scale(reference::FloatAttribute(op_case.attributes, attribute::kScale)),
        causal_(op_case.attributes.GetBool("causal")) {
    const Shape& q = query.spec.shape;
    if (mask == nullptr) return;
    for (std::size_t index : reference::BroadcastIndices(mask->spec.shape, {q[0], q[1], q[2], key.spec.shape[2]})) {
      mask_.push_back(mask->values[index] != 0);
    }
  }

  bool Allowed(std::size_t head, std::size_t t, std::size_t s) const {
    if (causal_ && s + rows > t + columns) return false;
    return mask_.empty() || mask_[(head * rows + t) * columns + s];
  }
  Uncertain ScoreAt(std::size_t head, std::size_t t, std::size_t s) const {
    double sum = 0;
    double magnitude = 0, underflow = 0;
    for (std::size_t d = 0; d < width; ++d) {
      const double q = query_[(head * rows + t) * width + d], k = key_[(head * columns + s) * width + d];
      sum += q * k;
      magnitude += std::abs(q * k);
      underflow += kUnderflow * (std::abs(q) + std::abs(k) + 1);
    }
    return {scale * sum, std::abs(scale) * ((static_cast<double>(width) + 2) * kU * magnitude + underflow)};
  }

  const std::size_t heads, rows, columns, width, value_width;

 private:
  static std::size_t Extent(const Tensor& tensor, std::size_t axis) {
    return static_cast<std::size_t>(tensor.spec.shape[axis]);
  }
  const std::vector<double>& query_;
  const std::vector<double>& key_;

 public:
  const double scale;

 private:
  bool causal_;
  std::vector<bool> mask_;
};

}  // namespace

static Errors ErrorsApart(const OpCase& op_case, const Tensors& inputs, const Tensors& exact,
                          AttentionArithmetic arithmetic) {
  const Tensor& value = inputs[2];
  const bool fused = arithmetic == AttentionArithmetic::kFused && IsLowPrecision(value.spec.dtype);
  const double function = fused ? kFusedExponential : kFunction;
  const Scores scores(op_case, inputs[0], inputs[1], value, inputs.size() > 3 ? &inputs[3] : nullptr);
  const auto count = static_cast<double>(scores.columns);
  ElementErrors y_error(exact[0].values.size()), log_sum_exp_error(exact[1].values.size());
  for (std::size_t row = 0; row < scores.heads * scores.rows; ++row) {
    const std::size_t head = row / scores.rows;
    const std::size_t t = row % scores.rows;
    const double log_sum_exp = exact[1].values[row];
    double score_error = 0;
    double largest = -std::numeric_limits<double>::infinity();
    for (std::size_t s = 0; s < scores.columns; ++s) {
      if (!scores.Allowed(head, t, s)) continue;
      score_error = std::max(score_error, scores.ScoreAt(head, t, s).error);
      largest = std::max(largest, scores.ScoreAt(head, t, s).value);
    }
    if (std::isinf(largest)) continue;  // nothing to read: -inf and 0, exactly
    // Terms of one sign: their relative errors, the additions, and d exp(-d) < 1 for the rounded differences.
    const double sum_error = score_error + (count + 3) * kU + function;
    log_sum_exp_error[row] =
        sum_error + function * (log_sum_exp - largest) + 2 * kU * (std::abs(largest) + std::abs(log_sum_exp));
    std::vector<double> magnitude(scores.value_width);
    for (std::size_t s = 0; s < scores.columns; ++s) {
      if (!scores.Allowed(head, t, s)) continue;
      const double score = scores.ScoreAt(head, t, s).value;
      const double probability = std::exp(score - log_sum_exp);
      const double relative = score_error + sum_error + function + (largest - score + 4) * kU;
      Uncertain p = Uncertain{probability, probability * relative}.Rounded(value.spec.dtype);
      // Either rounding is off by one unit at most.
      if (fused) p.error += 2 * (LowUnit(value.spec.dtype) * probability + LowUnderflow(value.spec.dtype));
      for (std::size_t e = 0; e < scores.value_width; ++e) {
        const double v = std::abs(value.values[(head * scores.columns + s) * scores.value_width + e]);
        y_error[row * scores.value_width + e] += (p.error + kUnderflow + (count + 2) * kU * p.value) * v;
      }
    }
    for (std::size_t e = 0; e < scores.value_width; ++e) y_error[row * scores.value_width + e] += kUnderflow;
  }
  return {y_error, log_sum_exp_error};
}

static Errors GradErrorsApart(const OpCase& op_case, const Tensors& inputs, AttentionArithmetic arithmetic) {
  const std::vector<double>& dy = inputs[0].values;
  const Tensor& query = inputs[1];
  const Tensor& key = inputs[2];
  const Tensor& value = inputs[3];
  const Scores scores(op_case, query, key, value, inputs.size() > 5 ? &inputs[5] : nullptr);
  const DType low = value.spec.dtype;
  const bool fused = arithmetic == AttentionArithmetic::kFused && IsLowPrecision(low);
  const double function = fused ? kFusedExponential : kFunction;
  const auto columns = static_cast<double>(scores.columns);
  const auto rows = static_cast<double>(scores.rows);
  ElementErrors dquery(query.values.size()), dkey(key.values.size()), dvalue(value.values.size());
  for (std::size_t row = 0; row < scores.heads * scores.rows; ++row) {
    const std::size_t head = row / scores.rows;
    const std::size_t t = row % scores.rows;
    const double log_sum_exp = inputs[4].values[row];
    std::vector<Uncertain> p(scores.columns), dp(scores.columns);
    Uncertain delta;
    double delta_magnitude = 0;
    for (std::size_t s = 0; s < scores.columns; ++s) {
      const std::size_t at = (head * scores.columns + s) * scores.value_width;
      double magnitude = 0, underflow = 0;
      for (std::size_t e = 0; e < scores.value_width; ++e) {
        const double cotangent = dy[row * scores.value_width + e], v = value.values[at + e];
        dp[s].value += cotangent * v;
        magnitude += std::abs(cotangent * v);
        underflow += kUnderflow * (std::abs(cotangent) + std::abs(v) + 1);
      }
      dp[s].error = (static_cast<double>(scores.value_width) + 1) * kU * magnitude + underflow;
      if (!scores.Allowed(head, t, s)) continue;
      const Uncertain score = scores.ScoreAt(head, t, s);
      p[s].value = std::exp(score.value - log_sum_exp);
      p[s].error = p[s].value * (score.error + function + 2 * kU * (std::abs(score.value) + std::abs(log_sum_exp)));
      delta.value += dp[s].value * p[s].value;
      delta.error += dp[s].error * p[s].value + std::abs(dp[s].value) * p[s].error;
      delta_magnitude += std::abs(dp[s].value * p[s].value);
      // y is off by two roundings of each probability, and is rounded itself.
      if (fused) delta.error += magnitude * (3 * LowUnit(low) * p[s].value + 3 * LowUnderflow(low));
    }
    delta.error += (columns + 2) * kU * delta_magnitude;
    for (std::size_t s = 0; s < scores.columns; ++s) {
      if (!scores.Allowed(head, t, s)) continue;
      const double difference = dp[s].value - delta.value;
      const double scale = std::abs(scores.scale);
      Uncertain ds = Uncertain{scores.scale * p[s].value * difference,
                               scale * (p[s].error * std::abs(difference) + p[s].value * (dp[s].error + delta.error) +
                                        4 * kU * p[s].value * std::abs(difference)) +
                                   kUnderflow}
                         .Rounded(query.spec.dtype);
      // It may be rounded before the scale or behind it.
      if (fused) ds.error += 2 * (LowUnit(low) * std::abs(ds.value) + LowUnderflow(low) * std::max(1.0, scale));
      const Uncertain rounded = p[s].Rounded(value.spec.dtype);
      for (std::size_t e = 0; e < scores.value_width; ++e) {
        dvalue[(head * scores.columns + s) * scores.value_width + e] +=
            std::abs(dy[row * scores.value_width + e]) *
                (rounded.error + kUnderflow + (rows + 2) * kU * rounded.value) +
            kUnderflow;
      }
      for (std::size_t d = 0; d < scores.width; ++d) {
        const std::size_t q = row * scores.width + d;
        const std::size_t k = (head * scores.columns + s) * scores.width + d;
        dquery[q] +=
            std::abs(key.values[k]) * (ds.error + kUnderflow + (columns + 2) * kU * std::abs(ds.value)) + kUnderflow;
        dkey[k] +=
            std::abs(query.values[q]) * (ds.error + kUnderflow + (rows + 2) * kU * std::abs(ds.value)) + kUnderflow;
      }
    }
  }
  return {dquery, dkey, dvalue};
}

/// Errors of heads, where they lie in a tensor of shape `packed`.
static void PutHeads(const std::optional<ElementErrors>& from, const Shape& packed, std::int64_t heads,
                     std::int64_t parts, std::int64_t part, ElementErrors& to) {
  const std::vector<std::size_t> indices = reference::HeadIndices(packed, heads, parts, part);
  for (std::size_t i = 0; i < indices.size(); ++i) to[indices[i]] = (*from)[i];
}

Errors AttentionErrors(const OpCase& op_case, const Tensors& inputs, const Tensors& exact,
                       AttentionArithmetic arithmetic) {
  if (op_case.op == "attention") return ErrorsApart(op_case, inputs, exact, arithmetic);
  const std::int64_t heads = op_case.attributes.GetInt("heads");
  Tensors apart;
  for (std::int64_t part = 0; part < 3; ++part) apart.push_back(reference::HeadsOf(inputs[0], heads, 3, part));
  apart.insert(apart.end(), inputs.begin() + 1, inputs.end());
  Errors errors = ErrorsApart(op_case, apart, {reference::HeadsOf(exact[0], heads, 1, 0), exact[1]}, arithmetic);
  ElementErrors y(exact[0].values.size());
  PutHeads(errors[0], exact[0].spec.shape, heads, 1, 0, y);
  return {y, errors[1]};
}

Errors AttentionGradErrors(const OpCase& op_case, const Tensors& inputs, AttentionArithmetic arithmetic) {
  if (op_case.op == "attention_grad") return GradErrorsApart(op_case, inputs, arithmetic);
  const std::int64_t heads = op_case.attributes.GetInt("heads");
  const Tensor& qkv = inputs[1];
  Tensors apart = {reference::HeadsOf(inputs[0], heads, 1, 0)};
  for (std::int64_t part = 0; part < 3; ++part) apart.push_back(reference::HeadsOf(qkv, heads, 3, part));
  // The stored y, inputs[2], is within what kFused says of y.
  apart.insert(apart.end(), inputs.begin() + 3, inputs.end());
  const Errors errors = GradErrorsApart(op_case, apart, arithmetic);
  ElementErrors dqkv(qkv.values.size());
  for (std::int64_t part = 0; part < 3; ++part) {
    PutHeads(errors[static_cast<std::size_t>(part)], qkv.spec.shape, heads, 3, part, dqkv);
  }
  return {dqkv};
}

}  // namespace mpc::test
