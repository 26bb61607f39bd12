// Scaled-dot-product attention and its derivatives. Scores and softmax are exact; probabilities and the cotangents of
// scores are rounded to a low storage type before their products, as the operation says.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/known_attributes.h"
#include "kernels/reference/functions.h"

namespace mpc::reference {
namespace {

// Extents and masks of query [B, H, T, D], key [B, H, S, D], value [B, H, S, E].
class Attention {
 public:
  Attention(const Attributes& attributes, const Tensor& query, const Tensor& key, const Tensor& value,
            const Tensor* mask)
      : heads(Extent(query, 0) * Extent(query, 1)),
        rows(Extent(query, 2)),
        columns(Extent(key, 2)),
        width(Extent(query, 3)),
        value_width(Extent(value, 3)),
        query_(query.values),
        key_(key.values),
        scale_(FloatAttribute(attributes, attribute::kScale)),
        causal_(attributes.GetBool("causal")),
        mask_(mask) {
    if (mask != nullptr) {
      mask_indices_ = BroadcastIndices(
          mask->spec.shape, {query.spec.shape[0], query.spec.shape[1], query.spec.shape[2], key.spec.shape[2]});
    }
  }

  bool Allowed(std::size_t head, std::size_t t, std::size_t s) const {
    if (causal_ && s + rows > t + columns) return false;
    return mask_ == nullptr || mask_->values[mask_indices_[(head * rows + t) * columns + s]] != 0;
  }

  double Score(std::size_t head, std::size_t t, std::size_t s) const {
    double sum = 0;
    for (std::size_t d = 0; d < width; ++d) {
      sum += query_[(head * rows + t) * width + d] * key_[(head * columns + s) * width + d];
    }
    return scale_ * sum;
  }

  double scale() const { return scale_; }

  const std::size_t heads, rows, columns, width, value_width;

 private:
  static std::size_t Extent(const Tensor& tensor, std::size_t axis) {
    return static_cast<std::size_t>(tensor.spec.shape[axis]);
  }

  const std::vector<double>& query_;
  const std::vector<double>& key_;
  double scale_;
  bool causal_;
  const Tensor* mask_;
  std::vector<std::size_t> mask_indices_;
};

// The score of what may not be read, and the logarithm of the sum over nothing.
constexpr double kNoScore = -std::numeric_limits<double>::infinity();

// The value that a low-precision product reads.
double RoundedIfLow(DType dtype, double value) { return IsLowPrecision(dtype) ? RoundTo(dtype, value) : value; }

void Forward(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const Tensor& value = inputs[2];
  const Attention attention(attributes, inputs[0], inputs[1], value, HasOperand(inputs, 3) ? &inputs[3] : nullptr);
  std::vector<double>& y = outputs[0].values;
  std::fill(y.begin(), y.end(), 0.0);
  std::vector<double> scores(attention.columns);
  for (std::size_t head = 0; head < attention.heads; ++head) {
    for (std::size_t t = 0; t < attention.rows; ++t) {
      const std::size_t row = head * attention.rows + t;
      double largest = kNoScore;
      for (std::size_t s = 0; s < attention.columns; ++s) {
        if (!attention.Allowed(head, t, s)) continue;
        scores[s] = attention.Score(head, t, s);
        largest = std::max(largest, scores[s]);
      }
      // A row that may read nothing, or has scores of -infinity alone, has the sum 0. A row with a NaN has the sum NaN.
      const double shift = largest == kNoScore ? 0 : largest;
      double sum = 0;
      for (std::size_t s = 0; s < attention.columns; ++s) {
        if (attention.Allowed(head, t, s)) sum += std::exp(scores[s] - shift);
      }
      const double log_sum_exp = shift + std::log(sum);
      outputs[1].values[row] = log_sum_exp;
      if (log_sum_exp == kNoScore) continue;
      for (std::size_t s = 0; s < attention.columns; ++s) {
        if (!attention.Allowed(head, t, s)) continue;
        const double p = RoundedIfLow(value.spec.dtype, std::exp(scores[s] - log_sum_exp));
        for (std::size_t e = 0; e < attention.value_width; ++e) {
          y[row * attention.value_width + e] +=
              p * value.values[(head * attention.columns + s) * attention.value_width + e];
        }
      }
    }
  }
}

void Backward(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::vector<double>& dy = inputs[0].values;
  const Tensor& query = inputs[1];
  const Tensor& key = inputs[2];
  const Tensor& value = inputs[3];
  const Attention attention(attributes, query, key, value, HasOperand(inputs, 5) ? &inputs[5] : nullptr);
  for (Tensor& output : outputs) std::fill(output.values.begin(), output.values.end(), 0.0);
  std::vector<double> p(attention.columns), dp(attention.columns);
  for (std::size_t head = 0; head < attention.heads; ++head) {
    for (std::size_t t = 0; t < attention.rows; ++t) {
      const std::size_t row = head * attention.rows + t;
      if (inputs[4].values[row] == kNoScore) continue;
      double delta = 0;
      for (std::size_t s = 0; s < attention.columns; ++s) {
        if (!attention.Allowed(head, t, s)) continue;
        p[s] = std::exp(attention.Score(head, t, s) - inputs[4].values[row]);
        const double rounded = RoundedIfLow(value.spec.dtype, p[s]);
        dp[s] = 0;
        for (std::size_t e = 0; e < attention.value_width; ++e) {
          const std::size_t from = row * attention.value_width + e;
          const std::size_t to = (head * attention.columns + s) * attention.value_width + e;
          dp[s] += dy[from] * value.values[to];
          outputs[2].values[to] += rounded * dy[from];
        }
        delta += dp[s] * p[s];
      }
      for (std::size_t s = 0; s < attention.columns; ++s) {
        if (!attention.Allowed(head, t, s)) continue;
        const double ds = RoundedIfLow(query.spec.dtype, attention.scale() * p[s] * (dp[s] - delta));
        for (std::size_t d = 0; d < attention.width; ++d) {
          const std::size_t q = row * attention.width + d;
          const std::size_t k = (head * attention.columns + s) * attention.width + d;
          outputs[0].values[q] += ds * key.values[k];
          outputs[1].values[k] += ds * query.values[q];
        }
      }
    }
  }
}

// query, key and value of qkv [B, T, 3 * H * D].
std::vector<Tensor> Apart(const Tensor& qkv, std::int64_t heads) {
  return {HeadsOf(qkv, heads, 3, 0), HeadsOf(qkv, heads, 3, 1), HeadsOf(qkv, heads, 3, 2)};
}

void PutHeads(const Tensor& from, std::int64_t heads, std::int64_t parts, std::int64_t part, Tensor& packed) {
  const std::vector<std::size_t> indices = HeadIndices(packed.spec.shape, heads, parts, part);
  for (std::size_t i = 0; i < indices.size(); ++i) packed.values[indices[i]] = from.values[i];
}

void PackedForward(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::int64_t heads = attributes.GetInt("heads");
  std::vector<Tensor> operands = Apart(inputs[0], heads);
  if (HasOperand(inputs, 1)) operands.push_back(inputs[1]);
  std::vector<Tensor> results = {HeadsOf(outputs[0], heads, 1, 0), outputs[1]};
  Forward(attributes, operands, absl::MakeSpan(results));
  PutHeads(results[0], heads, 1, 0, outputs[0]);
  outputs[1] = results[1];
}

// delta is computed as it is defined, and not from the stored y.
void PackedBackward(const Attributes& attributes, Inputs inputs, Outputs outputs) {
  const std::int64_t heads = attributes.GetInt("heads");
  std::vector<Tensor> results = Apart(inputs[1], heads);
  std::vector<Tensor> operands = {HeadsOf(inputs[0], heads, 1, 0), results[0], results[1], results[2], inputs[3]};
  if (HasOperand(inputs, 4)) operands.push_back(inputs[4]);
  Backward(attributes, operands, absl::MakeSpan(results));
  for (std::int64_t part = 0; part < 3; ++part) {
    PutHeads(results[static_cast<std::size_t>(part)], heads, 3, part, outputs[0]);
  }
}

constexpr NamedFunction kTable[] = {{"attention", Forward},
                                    {"attention_grad", Backward},
                                    {"packed_attention", PackedForward},
                                    {"packed_attention_grad", PackedBackward}};

}  // namespace

std::vector<std::size_t> HeadIndices(const Shape& packed, std::int64_t heads, std::int64_t parts, std::int64_t part) {
  const std::int64_t samples = packed[0], rows = packed[1], row_width = packed[2];
  const std::int64_t joined = row_width / parts, width = joined / heads;
  std::vector<std::size_t> indices;
  indices.reserve(static_cast<std::size_t>(samples * rows * joined));
  for (std::int64_t sample = 0; sample < samples; ++sample) {
    for (std::int64_t head = 0; head < heads; ++head) {
      for (std::int64_t row = 0; row < rows; ++row) {
        const std::int64_t first = (sample * rows + row) * row_width + part * joined + head * width;
        for (std::int64_t d = 0; d < width; ++d) indices.push_back(static_cast<std::size_t>(first + d));
      }
    }
  }
  return indices;
}

Tensor HeadsOf(const Tensor& packed, std::int64_t heads, std::int64_t parts, std::int64_t part) {
  const Shape& shape = packed.spec.shape;
  Tensor result{{packed.spec.dtype, {shape[0], heads, shape[1], shape[2] / parts / heads}}, {}};
  for (std::size_t index : HeadIndices(shape, heads, parts, part)) result.values.push_back(packed.values[index]);
  return result;
}

FunctionTable AttentionFunctions() { return kTable; }

}  // namespace mpc::reference
