// The calls of Cells in a step. Not part of the public API.
#pragma once

#include <cstdint>
#include <vector>

#include "frontend/graph/tensor.h"

namespace mpc::nn {
class Cell;
}  // namespace mpc::nn

namespace mpc::internal {

/// A Cell call in the outermost function.
struct CellCall {
  const nn::Cell* cell = nullptr;
  std::vector<Tensor> inputs;
  std::vector<Tensor> outputs;
  std::int64_t first_call_site = 0;  ///< call site that the first random use inside has, if there is one
  std::size_t number = 0;            ///< counted from 1
  std::size_t last = 0;              ///< calls `number` to `last` are this call and those inside it; 0 before its end
  bool replaced = false;             ///< a differentiated call has taken its place

  /// Whether it is a call of `called` on `given` that has not been replaced. Inputs are compared as values of the graph
  /// (SameValue), not by their elements.
  bool IsPlainCallOf(const nn::Cell* called, const std::vector<Tensor>& given) const;
};

/// The calls in the order of their beginnings. A call of a network that the step differentiates later on the same
/// inputs is found here.
class CellCalls {
 public:
  /// Returns the number of the call.
  std::size_t Begin(const nn::Cell* cell, const std::vector<Tensor>& inputs, std::int64_t first_call_site);
  /// Gives the call `number`, which began last of those without an end, its outputs.
  void End(std::size_t number, const std::vector<Tensor>& outputs);

  /// The first plain call of `cell` on `inputs`; null if there is none, or no Cell. A call without an end counts. The
  /// pointer holds until the next Begin.
  const CellCall* Find(const nn::Cell* cell, const std::vector<Tensor>& inputs) const;
  std::vector<CellCall>::iterator begin() { return calls_.begin(); }
  std::vector<CellCall>::iterator end() { return calls_.end(); }

 private:
  std::vector<CellCall> calls_;
};

}  // namespace mpc::internal
