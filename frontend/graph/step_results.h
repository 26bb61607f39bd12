// What the steps of a CompiledStep leave behind. Not part of the public API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "absl/status/status.h"
#include "frontend/graph/tensor.h"

namespace mpc::internal {

/// Records that hold what the user taps and prints: the prefix, then the user's words.
inline constexpr char kTapPrefix[] = "tap|";
inline constexpr char kPrintPrefix[] = "print|";

class CompiledStep;

/// What one step that a CompiledStep has started leaves behind, for as long as its Executable keeps it. Reading waits
/// for that step alone.
class StepResults {
 public:
  /// The results of step number `number` of `step`, counted from 0.
  StepResults(const CompiledStep& step, std::uint64_t number) : step_(&step), number_(number) {}

  const CompiledStep& step() const { return *step_; }
  /// Errors: what the step failed with, or that it is no longer kept.
  absl::Status status() const;
  /// A copy of an output; it carries the error where there is one.
  Tensor Output(std::size_t index) const;
  /// An output by name, or null: records of loss scaling ("finite", "first_bad", "loss_scale") and on request.
  std::optional<double> Record(std::string_view name) const;
  /// The record "state_hash", which no double holds; none where it was not asked for.
  std::optional<std::uint64_t> StateHash() const;
  /// What mpc::Tap named `name`; undefined if there is none.
  Tensor Tap(std::string_view name) const;
  /// Writes what the step prints to std::cout.
  void Print() const;

 private:
  const CompiledStep* step_;
  std::uint64_t number_;
};

}  // namespace mpc::internal
