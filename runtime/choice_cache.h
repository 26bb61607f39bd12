// Choices among kernels that earlier runs measured, in a file.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "absl/status/status.h"

namespace mpc::runtime {

/// A choice and what it was chosen from.
struct MeasuredChoice {
  std::string choice;  ///< empty: there is none
  std::string times;   ///< "f32 winograd 612.0 us, f32 nhwc 1204.3 us": the time of every candidate, for reports

  friend bool operator==(const MeasuredChoice&, const MeasuredChoice&) = default;
};

/// A text file under a checksum. Each line has a key with its choice and times. None of these contains a tab or a line
/// end. The file may be deleted at any time.
class ChoiceCache {
 public:
  /// Reads the file at `path`. A missing or damaged one counts as empty: Write makes it anew. "": kept in memory alone.
  explicit ChoiceCache(std::string path);

  /// The stored choice for `key`; an empty one where there is none.
  MeasuredChoice Find(const std::string& key) const;
  void Set(const std::string& key, MeasuredChoice choice);
  /// Writes all choices, together with those that other processes have written meanwhile. Writes nothing where nothing
  /// was set since the last time. Errors: the path and the reason; FAILED_PRECONDITION where the file is of another
  /// kind.
  absl::Status Write();
  /// Calls Write unless this object wrote, or was made, less than `interval` ago. For callers that set choices one by
  /// one.
  absl::Status WriteEvery(std::chrono::seconds interval);

 private:
  using Clock = std::chrono::steady_clock;

  std::string path_;
  std::map<std::string, MeasuredChoice> choices_;
  bool changed_ = false;
  Clock::time_point written_ = Clock::now();
};

}  // namespace mpc::runtime
