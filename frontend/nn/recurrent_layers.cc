#include "frontend/nn/recurrent_layers.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/graph/emit.h"
#include "frontend/graph/scalar_ops.h"
#include "frontend/graph/sequence_ops.h"
#include "frontend/nn/uniform_below.h"

namespace mpc::nn {
namespace {

using mpc::internal::FailWith;

Tensor ReadOrNone(const Parameter& parameter) { return parameter.defined() ? parameter.Read() : Tensor(); }

Tensor ProductOf(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  return matmul(x, weight, bias, {.transpose_b = true});
}

/// h' of a gated recurrent unit by what its weights make of x and of h, both [N, 3 H].
Tensor GatedUnit(const Tensor& of_x, const Tensor& of_h, const Tensor& h) {
  const std::vector<std::int64_t> parts(3, h.dim(-1));
  const std::vector<Tensor> i = split(of_x, parts, 1), j = split(of_h, parts, 1);
  const Tensor reset = sigmoid(i[0] + j[0]);
  const Tensor update = sigmoid(i[1] + j[1]);
  const Tensor proposed = tanh(i[2] + reset * j[2]);
  return proposed + update * (h - proposed);
}

// Empty, or why `nonlinearity` is none.
std::string NonlinearityError(std::string_view layer, const std::string& nonlinearity) {
  if (nonlinearity == "tanh" || nonlinearity == "relu") return "";
  return absl::StrCat(std::string(layer), " does not know the nonlinearity '", nonlinearity, "'; known are tanh, relu");
}

Tensor Nonlinear(const std::string& nonlinearity, const Tensor& x) {
  return nonlinearity == "relu" ? relu(x) : tanh(x);
}

// Whether lengths stand behind x and its states.
bool HasLengths(const std::vector<Tensor>& inputs) {
  return inputs.size() > 1 && (inputs.back().dtype() == DType::kI32 || inputs.back().dtype() == DType::kI64);
}

// [T, N, 1], true where a step is one of its sample's.
Tensor StepsOf(const Tensor& lengths, std::int64_t length) {
  const Tensor steps = arange(0, length, 1, lengths.dtype());
  return less(reshape(steps, {length, 1, 1}), reshape(lengths, {1, lengths.dim(0), 1}));
}

std::string SpecTexts(const std::vector<Tensor>& tensors) {
  return absl::StrJoin(tensors, ", ",
                       [](std::string* out, const Tensor& x) { absl::StrAppend(out, x.spec().ToString()); });
}

}  // namespace

GRUCell::GRUCell(std::int64_t input_size, std::int64_t hidden_size, const GRUCellOptions& options)
    : weight_ih({3 * hidden_size, input_size}, UniformBelow(hidden_size)),
      weight_hh({3 * hidden_size, hidden_size}, UniformBelow(hidden_size)),
      input_size_(input_size),
      hidden_size_(hidden_size) {
  if (!options.has_bias) return;
  bias_ih = Parameter({3 * hidden_size}, UniformBelow(hidden_size));
  bias_hh = Parameter({3 * hidden_size}, UniformBelow(hidden_size));
}

Tensor GRUCell::Construct(const Tensor& x, const Tensor& h) {
  const std::int64_t rows = x.dim(0);
  if (x.shape() != Shape{rows, input_size_} || h.shape() != Shape{rows, hidden_size_}) {
    return FailWith(absl::StrCat("GRUCell expects x [N, ", input_size_, "] and state h [N, ", hidden_size_, "], got ",
                                 x.spec().ToString(), " and ", h.spec().ToString()),
                    {rows, hidden_size_});
  }
  return GatedUnit(ProductOf(x, weight_ih, ReadOrNone(bias_ih)), ProductOf(h, weight_hh, ReadOrNone(bias_hh)), h);
}

RNNCell::RNNCell(std::int64_t input_size, std::int64_t hidden_size, const RNNCellOptions& options)
    : weight_ih({hidden_size, input_size}, UniformBelow(hidden_size)),
      weight_hh({hidden_size, hidden_size}, UniformBelow(hidden_size)),
      input_size_(input_size),
      hidden_size_(hidden_size),
      nonlinearity_(options.nonlinearity) {
  if (!options.has_bias) return;
  bias_ih = Parameter({hidden_size}, UniformBelow(hidden_size));
  bias_hh = Parameter({hidden_size}, UniformBelow(hidden_size));
}

Tensor RNNCell::Construct(const Tensor& x, const Tensor& h) {
  std::string error = NonlinearityError(TypeName(), nonlinearity_);
  const std::int64_t rows = x.rank() == 2 ? x.dim(0) : 1;
  if (x.shape() != Shape{rows, input_size_} || h.shape() != Shape{rows, hidden_size_}) {
    error = absl::StrCat("RNNCell expects x [N, ", input_size_, "] and state h [N, ", hidden_size_, "], got ",
                         x.spec().ToString(), " and ", h.spec().ToString());
  }
  if (!error.empty()) return FailWith(error, {rows, hidden_size_});
  return Nonlinear(nonlinearity_,
                   ProductOf(x, weight_ih, ReadOrNone(bias_ih)) + ProductOf(h, weight_hh, ReadOrNone(bias_hh)));
}

RecurrentLayer::RecurrentLayer(std::int64_t gates, std::int64_t input_size, std::int64_t hidden_size,
                               const RecurrentOptions& options)
    : input_size_(input_size), hidden_size_(hidden_size), options_(options) {
  const std::int64_t directions = options.bidirectional ? 2 : 1;
  const std::int64_t rows = gates * hidden_size;
  for (std::int64_t layer = 0; layer < options.num_layers; ++layer) {
    for (std::int64_t direction = 0; direction < directions; ++direction) {
      const std::int64_t width = layer == 0 ? input_size : directions * hidden_size;
      Weights weights{.suffix = absl::StrCat("_l", layer, direction == 0 ? "" : "_reverse"),
                      .weight_ih = Parameter({rows, width}, UniformBelow(hidden_size)),
                      .weight_hh = Parameter({rows, hidden_size}, UniformBelow(hidden_size)),
                      .bias_ih = {},
                      .bias_hh = {}};
      if (options.has_bias) {
        weights.bias_ih = Parameter({rows}, UniformBelow(hidden_size));
        weights.bias_hh = Parameter({rows}, UniformBelow(hidden_size));
      }
      weights_.push_back(std::move(weights));
    }
  }
}

void RecurrentLayer::VisitMembers(internal::MemberVisitor& visitor) {
  for (Weights& weights : weights_) {
    visitor.Visit(absl::StrCat("weight_ih", weights.suffix), weights.weight_ih);
    visitor.Visit(absl::StrCat("weight_hh", weights.suffix), weights.weight_hh);
    visitor.Visit(absl::StrCat("bias_ih", weights.suffix), weights.bias_ih);
    visitor.Visit(absl::StrCat("bias_hh", weights.suffix), weights.bias_hh);
  }
}

std::string RecurrentLayer::InputError(const std::vector<Tensor>& inputs, std::size_t states) const {
  if (options_.num_layers < 1) return absl::StrCat(TypeName(), " takes 1 layer or more, got ", options_.num_layers);
  const bool has_lengths = HasLengths(inputs);
  const auto states_end = inputs.end() - (has_lengths ? 1 : 0);
  const auto given = static_cast<std::size_t>(states_end - inputs.begin());
  bool fits = given == 1 || given == 1 + states;
  fits = fits && inputs[0].rank() == 3 && inputs[0].dim(2) == input_size_;
  if (fits) {
    const std::int64_t samples = inputs[0].dim(options_.batch_first ? 0 : 1);
    const Shape state = {static_cast<std::int64_t>(weights_.size()), samples, hidden_size_};
    fits = std::all_of(inputs.begin() + 1, states_end, [&](const Tensor& given) { return given.shape() == state; });
    fits = fits && (!has_lengths || inputs.back().shape() == Shape{samples});
  }
  if (fits) {
    const std::int64_t length = inputs[0].dim(options_.batch_first ? 1 : 0);
    if (length >= 1) return "";
    return absl::StrCat(TypeName(), " takes sequences of length 1 or more, got T = ", length, " of x ",
                        inputs[0].spec().ToString());
  }
  return absl::StrCat(TypeName(), " expects x ", options_.batch_first ? "[N, T, " : "[T, N, ", input_size_,
                      "], alone or with ", states == 1 ? "h" : "h and c", " [", weights_.size(), ", N, ", hidden_size_,
                      "]", has_lengths ? " and lengths [N] behind them" : "", ", got ", SpecTexts(inputs));
}

Tensor RecurrentLayer::Pass(const Weights& weights, const Tensor& steps, std::int64_t length, bool reverse,
                            const Tensor& read, std::vector<Tensor>& states) {
  const Tensor projected = ProductOf(steps, weights.weight_ih, ReadOrNone(weights.bias_ih));
  const Tensor weight_hh = weights.weight_hh, bias_hh = ReadOrNone(weights.bias_hh);
  const std::vector<std::int64_t> sizes(static_cast<std::size_t>(length), projected.dim(0) / length);
  const std::vector<Tensor> rows = split(projected, sizes, 0);
  std::vector<Tensor> hidden(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t step = reverse ? rows.size() - 1 - i : i;
    std::vector<Tensor> next = Step(rows[step], states, weight_hh, bias_hh);
    hidden[step] = next[0];
    if (read.defined()) {
      const std::int64_t samples = rows[step].dim(0);
      const Tensor has = reshape(slice(read, {static_cast<std::int64_t>(step), 0, 0}, {1, samples, 1}), {samples, 1});
      hidden[step] = where(has, next[0], 0);
      for (std::size_t s = 0; s < next.size(); ++s) next[s] = where(has, next[s], states[s]);
    }
    states = std::move(next);
  }
  return concat(hidden, 0);
}

std::vector<Tensor> RecurrentLayer::Unroll(const std::vector<Tensor>& inputs, std::size_t states) {
  if (const std::string error = InputError(inputs, states); !error.empty()) {
    return std::vector<Tensor>(1 + states, FailWith(error, {1, 1, 1}));
  }
  Tensor x = options_.batch_first ? transpose(inputs[0], {1, 0, 2}) : inputs[0];
  const std::int64_t length = x.dim(0), samples = x.dim(1);
  Tensor read;
  const bool has_lengths = HasLengths(inputs), has_states = inputs.size() > (has_lengths ? 2u : 1u);
  if (has_lengths) {
    read = StepsOf(inputs.back(), length);
    // What a step that is not read holds, such as NaN, must reach no derivative either.
    x = where(read, x, 0);
  }
  const std::size_t directions = options_.bidirectional ? 2 : 1;
  const Shape state = {samples, hidden_size_};
  // The last states of each layer and direction, in the order of weights_.
  std::vector<std::vector<Tensor>> last(states);
  Tensor steps = reshape(x, {length * samples, input_size_});
  for (std::size_t i = 0; i < weights_.size(); i += directions) {
    if (i > 0 && options_.dropout != 0 && training()) steps = dropout(steps, options_.dropout);
    std::vector<Tensor> ways;
    for (std::size_t way = 0; way < directions; ++way) {
      std::vector<Tensor> current;
      for (std::size_t s = 0; s < states; ++s) {
        const auto index = static_cast<std::int64_t>(i + way);
        current.push_back(has_states ? reshape(slice(inputs[1 + s], {index, 0, 0}, {1, samples, hidden_size_}), state)
                                     : ops::Fill(DType::kF32, state, 0));
      }
      ways.push_back(Pass(weights_[i + way], steps, length, /*reverse=*/way == 1, read, current));
      for (std::size_t s = 0; s < states; ++s) last[s].push_back(reshape(current[s], {1, samples, hidden_size_}));
    }
    steps = directions == 1 ? ways[0] : concat(ways, 1);
  }
  const Tensor output = reshape(steps, {length, samples, -1});
  std::vector<Tensor> results = {options_.batch_first ? transpose(output, {1, 0, 2}) : output};
  for (const std::vector<Tensor>& each : last) results.push_back(concat(each, 0));
  return results;
}

LSTM::LSTM(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options)
    : RecurrentLayer(4, input_size, hidden_size, options) {}

std::vector<Tensor> LSTM::Construct(const std::vector<Tensor>& inputs) { return Unroll(inputs, 2); }

std::vector<Tensor> LSTM::Step(const Tensor& projected, const std::vector<Tensor>& states, const Tensor& weight_hh,
                               const Tensor& bias_hh) {
  const auto [h, c] = lstm_cell(projected + ProductOf(states[0], weight_hh, bias_hh), states[1]);
  return {h, c};
}

GRU::GRU(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options)
    : RecurrentLayer(3, input_size, hidden_size, options) {}

std::vector<Tensor> GRU::Construct(const std::vector<Tensor>& inputs) { return Unroll(inputs, 1); }

std::vector<Tensor> GRU::Step(const Tensor& projected, const std::vector<Tensor>& states, const Tensor& weight_hh,
                              const Tensor& bias_hh) {
  return {GatedUnit(projected, ProductOf(states[0], weight_hh, bias_hh), states[0])};
}

RNN::RNN(std::int64_t input_size, std::int64_t hidden_size, const RNNOptions& options)
    : RecurrentLayer(1, input_size, hidden_size,
                     {.num_layers = options.num_layers,
                      .has_bias = options.has_bias,
                      .batch_first = options.batch_first,
                      .dropout = options.dropout,
                      .bidirectional = options.bidirectional}),
      nonlinearity_(options.nonlinearity) {}

std::vector<Tensor> RNN::Construct(const std::vector<Tensor>& inputs) {
  if (const std::string error = NonlinearityError(TypeName(), nonlinearity_); !error.empty()) {
    return std::vector<Tensor>(2, FailWith(error, {1, 1, 1}));
  }
  return Unroll(inputs, 1);
}

std::vector<Tensor> RNN::Step(const Tensor& projected, const std::vector<Tensor>& states, const Tensor& weight_hh,
                              const Tensor& bias_hh) {
  return {Nonlinear(nonlinearity_, projected + ProductOf(states[0], weight_hh, bias_hh))};
}

}  // namespace mpc::nn
