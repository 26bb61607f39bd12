// Recurrent layers that are made of products and cells: a step of GRU and RNN, and LSTM, GRU and RNN over sequences.
// Names and defaults are MindSpore's, names of Parameters PyTorch's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "frontend/graph/cell.h"
#include "frontend/graph/initializer.h"
#include "frontend/graph/ops.h"

namespace mpc::nn {

struct GRUCellOptions {
  bool has_bias = true;
};

/// One step of a gated recurrent unit (Cho et al. 2014): x [N, input_size], h [N, hidden_size] -> h'. Parameters are
/// weight_ih [3 H, I], weight_hh [3 H, H], bias_ih [3 H] and bias_hh [3 H]. Their gates stand in the order reset,
/// update, new. All are drawn from U(-1/sqrt(H), 1/sqrt(H)). With i = weight_ih x + bias_ih and
/// j = weight_hh h + bias_hh:
///
///     r = sigmoid(i_r + j_r)
///     z = sigmoid(i_z + j_z)
///     n = tanh(i_n + r * j_n)
///     h' = n + z * (h - n)
///
/// Products are Allow, splits Clear. The rest is Infer.
class GRUCell : public Cell {
 public:
  MPC_CELL(GRUCell, weight_ih, weight_hh, bias_ih, bias_hh)
  GRUCell(std::int64_t input_size, std::int64_t hidden_size, const GRUCellOptions& options = {});
  Tensor Construct(const Tensor& x, const Tensor& h);
  Parameter weight_ih;
  Parameter weight_hh;
  Parameter bias_ih;
  Parameter bias_hh;

 private:
  std::int64_t input_size_;
  std::int64_t hidden_size_;
};

struct RNNCellOptions {
  bool has_bias = true;
  std::string nonlinearity = "tanh";  ///< tanh, relu
};

/// One step of Elman's recurrent network: x [N, input_size], h [N, hidden_size] -> h'. It is
/// tanh(weight_ih x + bias_ih + weight_hh h + bias_hh), or relu of that sum. Parameters are weight_ih [H, I], weight_hh
/// [H, H], bias_ih [H] and bias_hh [H], all drawn from U(-1/sqrt(H), 1/sqrt(H)). Products are Allow, sum and tanh
/// Infer, relu is Clear. Errors: other shapes, another nonlinearity.
class RNNCell : public Cell {
 public:
  MPC_CELL(RNNCell, weight_ih, weight_hh, bias_ih, bias_hh)
  RNNCell(std::int64_t input_size, std::int64_t hidden_size, const RNNCellOptions& options = {});
  Tensor Construct(const Tensor& x, const Tensor& h);
  Parameter weight_ih;
  Parameter weight_hh;
  Parameter bias_ih;
  Parameter bias_hh;

 private:
  std::int64_t input_size_;
  std::int64_t hidden_size_;
  std::string nonlinearity_;
};

struct RecurrentOptions {
  std::int64_t num_layers = 1;
  bool has_bias = true;
  bool batch_first = false;    ///< x and output are [N, T, ...] instead of [T, N, ...]; states are as before
  double dropout = 0;          ///< probability that an output of a layer is zero while training; not of the last layer
  bool bidirectional = false;  ///< each layer also reads from the end, and its two outputs are joined
};

/// Base of recurrent layers: it has the Parameters, all drawn from U(-1/sqrt(H), 1/sqrt(H)), and unrolls sequences.
class RecurrentLayer : public Cell {
 public:
  void VisitMembers(internal::MemberVisitor& visitor) override;

 protected:
  RecurrentLayer(std::int64_t gates, std::int64_t input_size, std::int64_t hidden_size,
                 const RecurrentOptions& options);
  /// Output and last states of x, or of x and the first states, with lengths behind them or not. `states` is the number
  /// of states.
  std::vector<Tensor> Unroll(const std::vector<Tensor>& inputs, std::size_t states);
  /// The states after one step. `projected` is weight_ih x + bias_ih.
  virtual std::vector<Tensor> Step(const Tensor& projected, const std::vector<Tensor>& states, const Tensor& weight_hh,
                                   const Tensor& bias_hh) = 0;

 private:
  /// The Parameters of one layer in one direction.
  struct Weights {
    std::string suffix;
    Parameter weight_ih;
    Parameter weight_hh;
    Parameter bias_ih;
    Parameter bias_hh;
  };

  /// Hidden states [T N, H] of steps [T N, I] in their order, and at the end of `states` those after the last step.
  /// `read` [T, N, 1] is true for the steps of each sample; undefined: for all.
  Tensor Pass(const Weights& weights, const Tensor& steps, std::int64_t length, bool reverse, const Tensor& read,
              std::vector<Tensor>& states);
  /// Empty, or why `inputs` do not fit.
  std::string InputError(const std::vector<Tensor>& inputs, std::size_t states) const;

  std::int64_t input_size_;
  std::int64_t hidden_size_;
  RecurrentOptions options_;
  std::vector<Weights> weights_;
};

/// Long short-term memory over sequences: x [T, N, input_size] -> output [T, N, D H], h and c [num_layers D, N, H]
/// after the last step. H is hidden_size, and D is 2 where it is bidirectional, else 1. It takes x, or x, h and c:
/// states of the shapes that it returns, which else are zero. Behind them may stand lengths, integers [N]: how many
/// steps each sample has (MindSpore's seq_length). Gates are those of LSTMCell. Parameters of layer 0 are weight_ih_l0
/// [4 H, input_size], weight_hh_l0 [4 H, H], bias_ih_l0 and bias_hh_l0 [4 H]. Further layers have their number in place
/// of 0, and those of the way back end in _reverse. The steps of a sequence are unrolled: the graph and the time to
/// compile it grow with its length. Products with x are one product for all steps. Products and cells are Allow, sums
/// Infer and movement Clear; c is f32. Errors: another number of tensors or other shapes.
///
/// Steps from a sample's length on are not read, whatever they hold. Their output is 0, as in PyTorch's packed
/// sequences. Last states are those after the length, and the way back begins at its end. A length outside [0, T]
/// counts as the nearer of both. Choices are Clear.
class LSTM : public RecurrentLayer {
 public:
  MPC_CELL(LSTM)
  LSTM(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {});
  std::vector<Tensor> Construct(const std::vector<Tensor>& inputs);

 protected:
  std::vector<Tensor> Step(const Tensor& projected, const std::vector<Tensor>& states, const Tensor& weight_hh,
                           const Tensor& bias_hh) override;
};

/// Gated recurrent units over sequences: x [T, N, input_size] -> output [T, N, D H] and h [num_layers D, N, H] after
/// the last step. It takes x, or x and h, and lengths behind them. Gates are those of GRUCell. The rest is as in LSTM.
class GRU : public RecurrentLayer {
 public:
  MPC_CELL(GRU)
  GRU(std::int64_t input_size, std::int64_t hidden_size, const RecurrentOptions& options = {});
  std::vector<Tensor> Construct(const std::vector<Tensor>& inputs);

 protected:
  std::vector<Tensor> Step(const Tensor& projected, const std::vector<Tensor>& states, const Tensor& weight_hh,
                           const Tensor& bias_hh) override;
};

struct RNNOptions {
  std::int64_t num_layers = 1;
  std::string nonlinearity = "tanh";  ///< tanh, relu
  bool has_bias = true;
  bool batch_first = false;    ///< as in RecurrentOptions, and so are the two below
  double dropout = 0;          ///< probability
  bool bidirectional = false;  ///< both directions
};

/// Elman's recurrent network over sequences: x [T, N, input_size] -> output [T, N, D H] and h [num_layers D, N, H]
/// after the last step. It takes x, or x and h, and lengths behind them. A step is that of RNNCell. The rest is as in
/// LSTM. Errors: another nonlinearity, too.
class RNN : public RecurrentLayer {
 public:
  MPC_CELL(RNN)
  RNN(std::int64_t input_size, std::int64_t hidden_size, const RNNOptions& options = {});
  std::vector<Tensor> Construct(const std::vector<Tensor>& inputs);

 protected:
  std::vector<Tensor> Step(const Tensor& projected, const std::vector<Tensor>& states, const Tensor& weight_hh,
                           const Tensor& bias_hh) override;

 private:
  std::string nonlinearity_;
};

}  // namespace mpc::nn
