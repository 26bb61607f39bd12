// The calls of Cells in a step. Not part of the public API.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frontend/graph/precision_scope.h"
#include "frontend/graph/tensor.h"
#include "kernels/dtype.h"

namespace mpc::nn {
class Cell;
}  // namespace mpc::nn

namespace mpc::internal {

/// The settings of a Cell that decide which operations a call of it traces.
struct CellSettings {
  bool training = false;
  std::optional<DType> to_float;
  friend bool operator==(const CellSettings&, const CellSettings&) = default;
};
/// Those of `cell` and of the Cells below it, in the order in which VisitMembers finds them.
std::vector<CellSettings> SettingsBelow(nn::Cell& cell);

/// What a call of a Cell is of, and what besides the state decides its operations. Equal requests trace the same.
struct CallRequest {
  const nn::Cell* cell = nullptr;
  std::vector<Tensor> inputs;
  std::vector<CellSettings> settings;  ///< settings of the Cell and of those below it
  SurroundingPrecision precision;

  /// Inputs are compared as values of the graph (SameValue), not by their elements.
  friend bool operator==(const CallRequest& a, const CallRequest& b);
};

/// A Cell call in the outermost function.
struct CellCall {
  CallRequest request;
  std::vector<Tensor> outputs;
  std::int64_t first_call_site = 0;  ///< call site that the first random use inside has, if there is one
  std::size_t first_state_use = 0;   ///< number of uses of state before it; see StepState::UsesHold
  std::size_t end_state_use = 0;     ///< the same at its end
  std::size_t number = 0;            ///< counted from 1
  std::size_t last = 0;              ///< calls `number` to `last` are this call and those inside it; 0 before its end
  bool replaced = false;             ///< a differentiated call has taken its place

  bool ended() const { return last != 0; }
};

/// The calls in the order of their beginnings. A call of a network that the step differentiates later on the same
/// inputs is found here.
class CellCalls {
 public:
  /// Returns the number of the call.
  std::size_t Begin(CallRequest request, std::int64_t first_call_site, std::size_t first_state_use);
  /// Gives the call `number`, which began last of those without an end, its outputs.
  void End(std::size_t number, const std::vector<Tensor>& outputs, std::size_t end_state_use);

  /// The plain calls that ask for what `request` does and have not been replaced, first to last. A call without an end
  /// counts. The pointers hold until the next Begin.
  std::vector<CellCall*> Find(const CallRequest& request);

 private:
  std::vector<CellCall> calls_;
};

}  // namespace mpc::internal
