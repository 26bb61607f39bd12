#include "frontend/nn/layers.h"

#include <cmath>

#include "absl/strings/str_cat.h"
#include "frontend/graph/context.h"
#include "frontend/graph/emit.h"

namespace mpc::nn {
namespace {

/// One value for all sides, or top, bottom, left, right.
std::vector<std::int64_t> FourSides(const std::vector<std::int64_t>& padding) {
  return padding.size() == 1 ? std::vector<std::int64_t>(4, padding[0]) : padding;
}

/// MindSpore's bias default: U(-1/sqrt(fan_in), 1/sqrt(fan_in)).
Initializer BiasDefault(std::int64_t fan_in) {
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  return UniformRange(-bound, bound);
}

/// An error with the Cell path while tracing.
Tensor Reject(const std::string& message, const Tensor& x) {
  if (auto* trace = mpc::internal::Trace::Current()) {
    trace->Fail(message);
    return trace->Poison(x.shape());
  }
  return x;
}

/// What to do where the axis of rows is missing.
constexpr char kBatchHint[] = "; is the data set batched? .Batch(n) makes batches of its rows";

Pool2dOpOptions PoolOptions(const Pool2dOptions& options) {
  return {.kernel_size = options.kernel_size.values(),
          .stride = options.stride.values(),
          .pad_mode = options.pad_mode,
          .padding = FourSides(options.padding),
          .count_include_pad = options.count_include_pad};
}

}  // namespace

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2d kernel_size, const Conv2dOptions& options)
    : in_channels_(in_channels),
      options_{.stride = options.stride.values(),
               .pad_mode = options.pad_mode,
               .padding = FourSides(options.padding),
               .dilation = options.dilation.values(),
               .group = options.group} {
  const std::int64_t group_channels = in_channels / std::max<std::int64_t>(1, options.group);
  weight = Parameter({out_channels, group_channels, kernel_size.height, kernel_size.width},
                     options.weight_init.value_or(HeUniform(std::sqrt(5.0))));
  if (options.has_bias) {
    const std::int64_t fan_in = group_channels * kernel_size.height * kernel_size.width;
    bias = Parameter({out_channels}, options.bias_init.value_or(BiasDefault(fan_in)));
  }
}

Tensor Conv2d::Construct(const Tensor& x) {
  if (x.rank() == 3) {
    return Reject(absl::StrCat("Conv2d expects images [N, C, H, W], got ", x.spec().ToString(), kBatchHint), x);
  }
  if (x.rank() == 4 && x.dim(1) != in_channels_) {
    return Reject(absl::StrCat("Conv2d expects ", in_channels_, " input channels, got ", x.dim(1), " (input ",
                               x.spec().ToString(), ")"),
                  x);
  }
  return conv2d(x, weight, bias.defined() ? bias.Read() : Tensor(), options_);
}

Dense::Dense(std::int64_t in_channels, std::int64_t out_channels, const DenseOptions& options)
    : in_channels_(in_channels), activation_(options.activation) {
  weight = Parameter({out_channels, in_channels}, options.weight_init.value_or(HeUniform(std::sqrt(5.0))));
  if (options.has_bias) bias = Parameter({out_channels}, options.bias_init.value_or(BiasDefault(in_channels)));
}

Tensor Dense::Construct(const Tensor& x) {
  if (x.rank() < 2 || x.dim(x.rank() - 1) != in_channels_) {
    return Reject(absl::StrCat("Dense expects ", in_channels_, " input features, got ",
                               x.rank() < 2 ? absl::StrCat("a tensor of rank ", x.rank(), ", not 2 or more")
                                            : absl::StrCat(x.dim(x.rank() - 1)),
                               " (input ", x.spec().ToString(), ")", x.rank() < 2 ? kBatchHint : ""),
                  x);
  }
  const Tensor rows = x.rank() == 2 ? x : reshape(x, {-1, in_channels_});
  const Tensor y =
      matmul(rows, weight, bias.defined() ? bias.Read() : Tensor(), {.transpose_b = true, .activation = activation_});
  if (x.rank() == 2) return y;
  Shape shape = x.shape();
  shape.back() = weight.shape()[0];
  return reshape(y, shape);
}

BatchNorm::BatchNorm(std::int64_t num_features, int rank, const BatchNormOptions& options)
    : gamma({num_features}, options.gamma_init, {.requires_grad = options.affine}),
      beta({num_features}, options.beta_init, {.requires_grad = options.affine}),
      moving_mean({num_features}, options.moving_mean_init, {.requires_grad = false, .role = Role::kStatistic}),
      moving_variance({num_features}, options.moving_var_init, {.requires_grad = false, .role = Role::kStatistic}),
      num_features_(num_features),
      rank_(rank),
      eps_(options.eps),
      momentum_(options.momentum) {}

Tensor BatchNorm::Construct(const Tensor& x) {
  if (!(momentum_ >= 0 && momentum_ <= 1)) {
    return Reject(absl::StrCat(TypeName(), " takes a momentum in [0, 1], got ", momentum_), x);
  }
  if (const std::string error = mpc::internal::EpsilonError(TypeName(), eps_); !error.empty()) return Reject(error, x);
  const bool is_line = rank_ == 2 && x.rank() == 3;
  const bool has_rank = rank_ == 0 ? x.rank() == 2 || x.rank() == 4 : x.rank() == rank_;
  if (!(has_rank || is_line) || x.dim(1) != num_features_) {
    const char* ranks = rank_ == 0 ? "2 or rank-4" : rank_ == 2 ? "2 or rank-3" : "4";
    return Reject(absl::StrCat(TypeName(), " expects a rank-", ranks, " tensor with ", num_features_,
                               " channels on axis 1, got ", x.spec().ToString()),
                  x);
  }
  if (!is_line) return Normalised(x);
  const Tensor y = Normalised(reshape(x, {x.dim(0), x.dim(1), 1, x.dim(2)}));
  return reshape(y, x.shape());
}

Tensor BatchNorm::Normalised(const Tensor& x) {
  auto* trace = mpc::internal::Trace::Current();
  if (!training()) {
    return trace->Emit("batch_norm_infer", {x, gamma, beta, moving_mean, moving_variance}, {{"epsilon", eps_}})[0];
  }
  const mpc::internal::StepProcesses& group = trace->processes();
  if (synchronized_ && group.accumulation_steps > 1) {
    return Reject(absl::StrCat("a synchronized ", TypeName(), " normalises by the rows of all ", group.count,
                               " processes at once, and each accumulates ", group.accumulation_steps,
                               " micro-batches of an update; take accumulation_steps = 1, or a BatchNorm that is not "
                               "synchronized"),
                  x);
  }
  const std::int64_t processes = synchronized_ ? group.count : 1;
  const std::int64_t count = x.size() / num_features_ * processes;
  if (count < 2) {
    return Reject(
        absl::StrCat(TypeName(), " needs more than one value a channel while training, got ", x.spec().ToString()), x);
  }
  const std::vector<Tensor> results = processes > 1
                                          ? NormaliseByAll(x, processes)
                                          : trace->Emit("batch_norm_train", {x, gamma, beta}, {{"epsilon", eps_}});
  // The variance of all processes is unbiased already, as that of one element would be.
  trace->state().DeferUpdate("batch_norm_running_update", {moving_mean, moving_variance}, {results[1], results[2]},
                             {{"momentum", momentum_}, {"count", processes > 1 ? 1 : count}});
  return results[0];
}

MaxPool2d::MaxPool2d(const Pool2dOptions& options) : options_(PoolOptions(options)) {}
AvgPool2d::AvgPool2d(const Pool2dOptions& options) : options_(PoolOptions(options)) {}

CellList& CellList::Append(AnyCell cell) {
  cells_.push_back(std::move(cell));
  mpc::internal::StructureChanged();
  return *this;
}

void CellList::VisitMembers(internal::MemberVisitor& visitor) {
  for (std::size_t i = 0; i < cells_.size(); ++i) visitor.Visit(absl::StrCat(i), cells_[i].cell());
}

Tensor CellList::Construct(const Tensor& x) {
  return Reject("a CellList is a list, not a function; call its cells, or use SequentialCell", x);
}

Tensor SequentialCell::Construct(const Tensor& x) {
  Tensor y = x;
  for (const AnyCell& cell : cells_) y = cell(y);
  return y;
}

}  // namespace mpc::nn
