// Which values of a graph hold the elements of an input. Not part of the public API.
#pragma once

#include <cstddef>
#include <map>
#include <optional>

#include "compiler/module/graph_builder.h"

namespace mpc::internal {

/// The values that hold all elements of an input of the step, in their order.
class InputElements {
 public:
  /// The next input of the step.
  void AddInput(compiler::ValueHandle value) { inputs_[value] = count_++; }
  /// Notes that `to` holds the elements of `from` in their order.
  void AddAlias(compiler::ValueHandle from, compiler::ValueHandle to) {
    if (const std::optional<std::size_t> input = Find(from)) inputs_[to] = *input;
  }
  /// The index of the input; none for other values.
  std::optional<std::size_t> Find(compiler::ValueHandle value) const {
    const auto found = inputs_.find(value);
    return found == inputs_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<compiler::ValueHandle, std::size_t> inputs_;
  std::size_t count_ = 0;
};

}  // namespace mpc::internal
