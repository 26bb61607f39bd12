// Rows that a Map leaves out because its operations fail on them.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace mpc::data {

/// Counts the rows that Map leaves out: MapOptions::skipped_rows. Safe to use from several threads. MindSpore has no
/// counterpart.
class SkippedRows {
 public:
  /// Errors that are kept.
  static constexpr std::size_t kMostErrors = 16;

  /// Rows of all epochs. A row counts when it is read, and Prefetch and workers read ahead. Dataset::size reads an
  /// epoch too, where only a run can tell.
  std::int64_t count() const;
  /// The first errors, at most kMostErrors. Workers may exchange neighbours.
  std::vector<std::string> errors() const;

  void Add(const absl::Status& error);

 private:
  mutable std::mutex mutex_;
  std::int64_t count_ = 0;           ///< guarded by mutex_
  std::vector<std::string> errors_;  ///< guarded by mutex_
};

}  // namespace mpc::data
