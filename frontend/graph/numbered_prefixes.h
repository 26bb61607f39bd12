// Names of optimizers and loss scalers by the order of their first use. Not part of the public API.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "frontend/graph/parameter.h"

namespace mpc::internal {

/// Prefixes of state names: "optimizer" for the first one, then "optimizer2", ...
class NumberedPrefixes {
 public:
  /// `known` come first, in this order.
  explicit NumberedPrefixes(std::string base, const std::vector<Parameter>& known = {}) : base_(std::move(base)) {
    for (const Parameter& key : known) PrefixOf(key);
  }

  /// The prefix of what `key` stands for: an optimizer's step counter, a scaler's scale.
  std::string PrefixOf(const Parameter& key) {
    const auto found = std::find(known_.begin(), known_.end(), key);
    const auto index = found - known_.begin();
    if (found == known_.end()) known_.push_back(key);
    return index == 0 ? base_ : absl::StrCat(base_, index + 1);
  }

 private:
  std::string base_;
  std::vector<Parameter> known_;
};

}  // namespace mpc::internal
