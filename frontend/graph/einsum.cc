#include "frontend/graph/einsum.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "frontend/graph/einsum_equation.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/ops.h"

namespace mpc {
namespace {

using internal::AxisLabel;
using internal::EinsumEquation;
using Labels = std::vector<AxisLabel>;

/// A tensor with a label for each axis.
struct Factor {
  Tensor x;
  Labels labels;
};

bool Has(const Labels& labels, AxisLabel label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

Labels Joined(Labels a, const Labels& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

// `x` with its axes in the order of `labels`, which are its own.
Tensor InOrder(const Factor& factor, const Labels& labels) {
  std::vector<std::int64_t> permutation;
  for (const AxisLabel label : labels) {
    permutation.push_back(std::find(factor.labels.begin(), factor.labels.end(), label) - factor.labels.begin());
  }
  return labels == factor.labels ? factor.x : transpose(factor.x, permutation);
}

// Drops axes of extent 1 that another operand stretches.
Factor WithoutStretched(const Factor& factor, const EinsumEquation& equation) {
  Factor rest;
  Shape shape;
  for (std::size_t axis = 0; axis < factor.labels.size(); ++axis) {
    const std::int64_t extent = factor.x.shape()[axis];
    if (extent == 1 && equation.extents.at(factor.labels[axis]) != 1) continue;
    rest.labels.push_back(factor.labels[axis]);
    shape.push_back(extent);
  }
  rest.x = shape == factor.x.shape() ? factor.x : reshape(factor.x, shape);
  return rest;
}

// Makes two axes of one label, `first` and `second`, their diagonal, which comes last. Of n rows with n elements each
// the diagonal is the first column of n rows with n + 1 elements each.
Factor Diagonal(Factor factor, std::size_t first, std::size_t second) {
  const auto rank = static_cast<std::int64_t>(factor.labels.size());
  const AxisLabel label = factor.labels[first];
  std::vector<std::int64_t> permutation(factor.labels.size());
  std::iota(permutation.begin(), permutation.end(), 0);
  for (const std::size_t axis : {second, first}) {
    factor.labels.erase(factor.labels.begin() + static_cast<std::ptrdiff_t>(axis));
    permutation.erase(permutation.begin() + static_cast<std::ptrdiff_t>(axis));
  }
  permutation.insert(permutation.end(), {static_cast<std::int64_t>(first), static_cast<std::int64_t>(second)});
  factor.labels.push_back(label);
  const std::int64_t n = factor.x.dim(static_cast<std::int64_t>(first));
  Shape shape(static_cast<std::size_t>(rank) - 1);
  for (std::size_t axis = 0; axis < shape.size(); ++axis) shape[axis] = factor.x.dim(permutation[axis]);
  const std::int64_t rest = factor.x.size() / (n * n);
  const Tensor flat = reshape(transpose(factor.x, permutation), {rest, n * n});
  const Tensor rows = reshape(pad(flat, {0, 0}, {0, n}), {rest * n, n + 1});
  factor.x = reshape(slice(rows, {0, 0}, {rest * n, 1}), shape);
  return factor;
}

Factor WithoutRepeats(Factor factor) {
  for (std::size_t second = 1; second < factor.labels.size(); ++second) {
    const auto first = std::find(factor.labels.begin(), factor.labels.end(), factor.labels[second]);
    const auto place = static_cast<std::size_t>(first - factor.labels.begin());
    if (place == second) continue;
    factor = Diagonal(std::move(factor), place, second);
    second = 0;
  }
  return factor;
}

// Sums over the labels that `keeps` refuses.
template <typename Keeps>
Factor Summed(const Factor& factor, const Keeps& keeps) {
  Factor rest;
  std::vector<std::int64_t> axes;
  for (std::size_t axis = 0; axis < factor.labels.size(); ++axis) {
    if (keeps(factor.labels[axis])) {
      rest.labels.push_back(factor.labels[axis]);
    } else {
      axes.push_back(static_cast<std::int64_t>(axis));
    }
  }
  rest.x = axes.empty() ? factor.x : reduce_sum(factor.x, axes);
  return rest;
}

/// The product of two factors, summed over the labels that both have and that nothing else needs.
class Product {
 public:
  template <typename Needed>
  Product(const Factor& a, const Factor& b, const EinsumEquation& equation, const Needed& needed)
      : a_(a), b_(b), equation_(equation) {
    for (const AxisLabel label : a.labels) {
      (!Has(b.labels, label) ? rows_ : needed(label) ? batch_ : summed_).push_back(label);
    }
    for (const AxisLabel label : b.labels) {
      if (!Has(a.labels, label)) columns_.push_back(label);
    }
  }

  Factor Compute() const {
    const Labels labels = Joined(Joined(batch_, rows_), columns_);
    Shape shape;
    for (const AxisLabel label : labels) shape.push_back(equation_.extents.at(label));
    return {reshape(summed_.empty() ? Outer() : Contraction(), shape), labels};
  }

 private:
  std::int64_t Size(const Labels& labels) const {
    std::int64_t size = 1;
    for (const AxisLabel label : labels) size *= equation_.extents.at(label);
    return size;
  }

  Tensor Outer() const {
    return reshape(InOrder(a_, Joined(batch_, rows_)), {Size(batch_), Size(rows_), 1}) *
           reshape(InOrder(b_, Joined(batch_, columns_)), {Size(batch_), 1, Size(columns_)});
  }

  Tensor Contraction() const {
    const bool transpose_a = a_.labels == Joined(Joined(batch_, summed_), rows_);
    const bool transpose_b = b_.labels == Joined(Joined(batch_, columns_), summed_);
    const Tensor a = transpose_a ? Matrices(a_, summed_, rows_) : Matrices(a_, rows_, summed_);
    const Tensor b = transpose_b ? Matrices(b_, columns_, summed_) : Matrices(b_, summed_, columns_);
    if (batch_.empty()) return matmul(a, b, {}, {.transpose_a = transpose_a, .transpose_b = transpose_b});
    return batch_matmul(a, b, {.transpose_a = transpose_a, .transpose_b = transpose_b});
  }

  // A matrix for each index of the batch labels, which are left out where there are none.
  Tensor Matrices(const Factor& factor, const Labels& rows, const Labels& columns) const {
    Shape shape = {Size(rows), Size(columns)};
    if (!batch_.empty()) shape.insert(shape.begin(), Size(batch_));
    return reshape(InOrder(factor, Joined(Joined(batch_, rows), columns)), shape);
  }

  const Factor& a_;
  const Factor& b_;
  const EinsumEquation& equation_;
  Labels batch_, rows_, columns_, summed_;
};

// Multiplies the operands from the left.
Tensor Evaluate(const EinsumEquation& equation, const std::vector<Tensor>& operands) {
  std::vector<Factor> factors;
  for (std::size_t i = 0; i < operands.size(); ++i) {
    factors.push_back(WithoutRepeats(WithoutStretched({operands[i], equation.operands[i]}, equation)));
  }
  const auto occurs_in = [&factors](std::size_t first, std::size_t skipped, AxisLabel label) {
    for (std::size_t i = first; i < factors.size(); ++i) {
      if (i != skipped && Has(factors[i].labels, label)) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < factors.size(); ++i) {
    factors[i] = Summed(
        factors[i], [&](AxisLabel label) { return Has(equation.result, label) || occurs_in(0, /*skipped=*/i, label); });
  }
  Factor product = factors[0];
  for (std::size_t i = 1; i < factors.size(); ++i) {
    const auto needed = [&](AxisLabel label) {
      return Has(equation.result, label) || occurs_in(i + 1, factors.size(), label);
    };
    product = Product(product, factors[i], equation, needed).Compute();
  }
  return InOrder(product, equation.result);
}

}  // namespace

Tensor einsum(const std::string& equation, const std::vector<Tensor>& operands) {
  if (operands.empty()) return internal::FailWith("einsum takes at least one operand", {});
  std::vector<Shape> shapes;
  for (const Tensor& operand : operands) shapes.push_back(operand.shape());
  const absl::StatusOr<EinsumEquation> read = internal::ReadEinsumEquation(equation, shapes);
  if (!read.ok()) return internal::FailWith(std::string(read.status().message()), {});
  return Evaluate(*read, operands);
}

}  // namespace mpc
