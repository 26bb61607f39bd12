// When Model::Fit evaluates.
#pragma once

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"

namespace mpc {

/// After which epochs to evaluate. A number: after every so many, counted from epoch 1. A list: after those epochs.
class ValidFrequency {
 public:
  template <std::integral Number>
  ValidFrequency(Number every) : every_(static_cast<std::int64_t>(every)) {}  // NOLINT: a number stands for it
  ValidFrequency(std::initializer_list<std::int64_t> epochs) : epochs_(epochs), listed_(true) {}
  explicit ValidFrequency(std::vector<std::int64_t> epochs) : epochs_(std::move(epochs)), listed_(true) {}

  /// Whether `epoch`, from 1, is followed by an evaluation. Only after Validate has returned no error.
  bool Includes(std::int64_t epoch) const;
  /// "every 2 epochs", or "epochs 1, 5".
  std::string Description() const;
  /// Errors (INVALID_ARGUMENT): a number below 1; a list that is empty or holds one.
  absl::Status Validate() const;

 private:
  std::int64_t every_ = 1;
  std::vector<std::int64_t> epochs_;
  bool listed_ = false;
};

/// MindSpore's options of `Model.fit`. Its `initial_epoch` is what Model::LoadCheckpoint does; its options of sinking
/// have no counterpart: every data set is sunk.
struct FitOptions {
  /// `{.valid_frequency = 2}`: after epochs 2, 4, ... `{.valid_frequency = {1, 5}}`: after epochs 1 and 5.
  ValidFrequency valid_frequency = 1;
};

}  // namespace mpc
