// Choices among kernels that earlier runs measured, in a file.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "absl/status/status.h"

namespace mpc::runtime {

/// Lines of text, a key and a choice each, under a checksum. The file may be deleted at any time.
class ChoiceCache {
 public:
  /// Reads the file at `path`. A missing or damaged one counts as empty: Write makes it anew. "": kept in memory alone.
  explicit ChoiceCache(std::string path);

  /// Empty where there is none.
  std::string Find(const std::string& key) const;
  void Set(const std::string& key, const std::string& choice);
  /// Writes everything, with what other processes have written meanwhile; nothing where nothing was set since the last
  /// time. Errors: the path and the reason.
  absl::Status Write();
  /// Write, unless this object wrote or was made less than `interval` ago: for what is set one by one.
  absl::Status WriteEvery(std::chrono::seconds interval);

 private:
  using Clock = std::chrono::steady_clock;

  std::string path_;
  std::map<std::string, std::string> choices_;
  bool changed_ = false;
  Clock::time_point written_ = Clock::now();
};

}  // namespace mpc::runtime
