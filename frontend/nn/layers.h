// The layers. Names and defaults are MindSpore's.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "frontend/graph/cell.h"
#include "frontend/graph/initializer.h"
#include "frontend/graph/ops.h"

namespace mpc::nn {

/// One extent for both axes, or (height, width).
struct Size2d {
  Size2d(std::int64_t both) : height(both), width(both) {}  // NOLINT
  Size2d(std::int64_t height, std::int64_t width) : height(height), width(width) {}
  std::vector<std::int64_t> values() const { return {height, width}; }
  std::int64_t height;
  std::int64_t width;
};

struct Conv2dOptions {
  Size2d stride = 1;
  std::string pad_mode = "same";            ///< same, valid, pad
  std::vector<std::int64_t> padding = {0};  ///< for "pad": one value, or top, bottom, left, right
  Size2d dilation = 1;
  std::int64_t group = 1;
  bool has_bias = false;
  std::optional<Initializer> weight_init;  ///< HeUniform(sqrt(5))
  std::optional<Initializer> bias_init;    ///< U(-1/sqrt(fan_in), 1/sqrt(fan_in))
};

/// 2-D convolution: [N, in, H, W] -> [N, out, H', W']. weight [out, in / group, kh, kw], bias [out].
class Conv2d : public Cell {
 public:
  MPC_CELL(Conv2d, weight, bias)
  Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2d kernel_size, const Conv2dOptions& options = {});
  Tensor Construct(const Tensor& x);
  Parameter weight;
  Parameter bias;

 private:
  std::int64_t in_channels_;
  Conv2dOpOptions options_;
};

struct DenseOptions {
  bool has_bias = true;
  std::string activation = "none";         ///< none, relu, sigmoid, tanh, gelu (the erf form), gelu_tanh
  std::optional<Initializer> weight_init;  ///< HeUniform(sqrt(5))
  std::optional<Initializer> bias_init;    ///< U(-1/sqrt(fan_in), 1/sqrt(fan_in))
};

/// Fully connected: [..., in] -> [..., out] of rank 2 or more, y = activation(x weight^T + bias). weight [out, in],
/// bias [out].
class Dense : public Cell {
 public:
  MPC_CELL(Dense, weight, bias)
  Dense(std::int64_t in_channels, std::int64_t out_channels, const DenseOptions& options = {});
  Tensor Construct(const Tensor& x);
  Parameter weight;
  Parameter bias;

 private:
  std::int64_t in_channels_;
  std::string activation_;
};

struct BatchNormOptions {
  double eps = 1e-5;
  double momentum = 0.9;  ///< weight of the *old* running statistic, in [0, 1]
  bool affine = true;     ///< gamma and beta are trained
  Initializer gamma_init = Ones();
  Initializer beta_init = Zeros();
  Initializer moving_mean_init = Zeros();
  Initializer moving_var_init = Ones();
};

/// Normalises each channel: by batch statistics while training (and moves the running ones), else by the running ones.
/// Errors: another rank or number of channels; a momentum outside [0, 1]; an eps below 0 or not finite.
class BatchNorm : public Cell {
 public:
  MPC_CELL(BatchNorm, gamma, beta, moving_mean, moving_variance)
  /// `rank` is that of the input, 2 or 4; 0 takes both. With 2 it may be 3 too, as [N, C, L].
  BatchNorm(std::int64_t num_features, int rank, const BatchNormOptions& options);
  Tensor Construct(const Tensor& x);
  /// From now on batch statistics are those of the rows of all processes, as SyncBatchNorm has them.
  void Synchronize();
  bool synchronized() const { return synchronized_; }
  std::string variant() const override { return synchronized_ ? "synchronized" : ""; }
  Parameter gamma;
  Parameter beta;
  Parameter moving_mean;
  Parameter moving_variance;

 private:
  /// The result for [N, C] or [N, C, H, W] of the right channels.
  Tensor Normalised(const Tensor& x);
  /// y, mean and unbiased variance by the rows of `processes` processes, of which there are several.
  std::vector<Tensor> NormaliseByAll(const Tensor& x, std::int64_t processes);

  std::int64_t num_features_;
  int rank_;
  double eps_;
  double momentum_;
  bool synchronized_ = false;
};

/// Batch normalisation of [N, C] or [N, C, L].
class BatchNorm1d : public BatchNorm {
 public:
  MPC_CELL(BatchNorm1d)
  explicit BatchNorm1d(std::int64_t num_features, const BatchNormOptions& options = {})
      : BatchNorm(num_features, 2, options) {}
  Tensor Construct(const Tensor& x) { return BatchNorm::Construct(x); }
};

/// Batch normalisation of [N, C, H, W].
class BatchNorm2d : public BatchNorm {
 public:
  MPC_CELL(BatchNorm2d)
  explicit BatchNorm2d(std::int64_t num_features, const BatchNormOptions& options = {})
      : BatchNorm(num_features, 4, options) {}
  Tensor Construct(const Tensor& x) { return BatchNorm::Construct(x); }
};

struct DropoutOptions {
  double p = 0.5;  ///< probability of zero
};

/// Zeroes elements while training and scales the rest by 1 / (1 - p); identity otherwise.
class Dropout : public Cell {
 public:
  MPC_CELL(Dropout)
  explicit Dropout(const DropoutOptions& options = {}) : p_(options.p) {}
  Tensor Construct(const Tensor& x) { return training() ? dropout(x, p_) : x; }

 private:
  double p_;
};

/// [N, ...] -> [N, the rest].
class Flatten : public Cell {
 public:
  MPC_CELL(Flatten)
  Tensor Construct(const Tensor& x) { return flatten(x); }
};

/// x where x > 0, else 0.
class ReLU : public Cell {
 public:
  MPC_CELL(ReLU)
  Tensor Construct(const Tensor& x) { return relu(x); }
};

/// 1 / (1 + exp(-x)).
class Sigmoid : public Cell {
 public:
  MPC_CELL(Sigmoid)
  Tensor Construct(const Tensor& x) { return sigmoid(x); }
};

/// The hyperbolic tangent.
class Tanh : public Cell {
 public:
  MPC_CELL(Tanh)
  Tensor Construct(const Tensor& x) { return tanh(x); }
};

/// exp(x) / sum(exp(x)) along `axis`.
class Softmax : public Cell {
 public:
  MPC_CELL(Softmax)
  explicit Softmax(std::int64_t axis = -1) : axis_(axis) {}
  Tensor Construct(const Tensor& x) { return softmax(x, axis_); }

 private:
  std::int64_t axis_;
};

struct Pool2dOptions {
  Size2d kernel_size = 1;
  Size2d stride = 1;
  std::string pad_mode = "valid";           ///< same, valid, pad
  std::vector<std::int64_t> padding = {0};  ///< for "pad": one value, or top, bottom, left, right
  bool count_include_pad = true;            ///< AvgPool2d only
};

/// The largest element of each window of an image [N, C, H, W]. MindSpore's dilation, return_indices and ceil_mode are
/// not there.
class MaxPool2d : public Cell {
 public:
  MPC_CELL(MaxPool2d)
  explicit MaxPool2d(const Pool2dOptions& options = {});
  Tensor Construct(const Tensor& x) { return max_pool2d(x, options_); }

 private:
  Pool2dOpOptions options_;
};

/// The mean of each window of an image [N, C, H, W]. MindSpore's ceil_mode and divisor_override are not there.
class AvgPool2d : public Cell {
 public:
  MPC_CELL(AvgPool2d)
  explicit AvgPool2d(const Pool2dOptions& options = {});
  Tensor Construct(const Tensor& x) { return avg_pool2d(x, options_); }

 private:
  Pool2dOpOptions options_;
};

/// A Cell of any type from Tensor to Tensor, owned.
class AnyCell {
 public:
  template <CellType C>
  AnyCell(C&& cell) {  // NOLINT: lists of cells are written as cells
    auto owned = std::make_shared<std::decay_t<C>>(std::forward<C>(cell));
    call_ = [raw = owned.get()](const Tensor& x) { return Tensor((*raw)(x)); };
    cell_ = std::move(owned);
  }
  Tensor operator()(const Tensor& x) const { return call_(x); }
  Cell& cell() const { return *cell_; }

 private:
  std::shared_ptr<Cell> cell_;
  std::function<Tensor(const Tensor&)> call_;
};

/// Cells by index: paths are "0", "1", ...
class CellList : public Cell {
 public:
  MPC_CELL(CellList)
  CellList() = default;
  explicit CellList(std::vector<AnyCell> cells) : cells_(std::move(cells)) {}
  CellList& Append(AnyCell cell);
  std::size_t size() const { return cells_.size(); }
  const AnyCell& operator[](std::size_t index) const { return cells_[index]; }
  std::vector<AnyCell>::const_iterator begin() const { return cells_.begin(); }
  std::vector<AnyCell>::const_iterator end() const { return cells_.end(); }
  void VisitMembers(internal::MemberVisitor& visitor) override;
  /// A list is not a function: calling it is an error that says to loop over it.
  Tensor Construct(const Tensor& x);

 protected:
  std::vector<AnyCell> cells_;
};

/// Cells applied one after the other.
class SequentialCell : public CellList {
  /// A cell in braces. Another list alone in them is copied or moved, not held.
  struct Listed {
    template <CellType C>
    requires(!std::is_base_of_v<SequentialCell, std::decay_t<C>>)
        Listed(C&& held)  // NOLINT: lists of cells are written as cells
        : cell(std::forward<C>(held)) {}
    AnyCell cell;
  };

 public:
  MPC_CELL(SequentialCell)
  explicit SequentialCell(std::vector<AnyCell> cells) : CellList(std::move(cells)) {}
  /// A list of one list is `SequentialCell(std::vector<AnyCell>{list})`.
  SequentialCell(std::initializer_list<Listed> cells) {
    for (const Listed& each : cells) cells_.push_back(each.cell);
  }
  template <CellType Only>
  requires(!std::is_base_of_v<SequentialCell, std::decay_t<Only>>) explicit SequentialCell(Only&& only)
      : CellList({AnyCell(std::forward<Only>(only))}) {}
  template <CellType First, CellType Second, CellType... Rest>
  SequentialCell(First&& first, Second&& second, Rest&&... rest)
      : CellList({AnyCell(std::forward<First>(first)), AnyCell(std::forward<Second>(second)),
                  AnyCell(std::forward<Rest>(rest))...}) {}
  Tensor Construct(const Tensor& x);
};

}  // namespace mpc::nn
