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
  std::string times;   ///< "f32 winograd 612.0 us, f32 nhwc 1204.3 us": of everything that was timed, for reports

  friend bool operator==(const MeasuredChoice&, const MeasuredChoice&) = default;
};

/// Lines of text, a key with its choice and the times each, under a checksum. None of them has tabs or line ends. The
/// file may be deleted at any time.
class ChoiceCache {
 public:
  /// Reads the file at `path`. A missing or damaged one counts as empty: Write makes it anew. "": kept in memory alone.
  explicit ChoiceCache(std::string path);

  /// Empty where there is none.
  MeasuredChoice Find(const std::string& key) const;
  void Set(const std::string& key, MeasuredChoice choice);
  /// Writes everything, with what other processes have written meanwhile; nothing where nothing was set since the last
  /// time. Errors: the path and the reason.
  absl::Status Write();
  /// Write, unless this object wrote or was made less than `interval` ago: for what is set one by one.
  absl::Status WriteEvery(std::chrono::seconds interval);

 private:
  using Clock = std::chrono::steady_clock;

  std::string path_;
  std::map<std::string, MeasuredChoice> choices_;
  bool changed_ = false;
  Clock::time_point written_ = Clock::now();
};

}  // namespace mpc::runtime
