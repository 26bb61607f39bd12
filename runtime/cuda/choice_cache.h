// Choices among kernels that earlier runs measured, in a file.
#pragma once

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
  void Set(const std::string& key, const std::string& choice) { choices_[key] = choice; }
  /// Writes everything, with what other processes have written meanwhile. Errors: the path and the reason.
  absl::Status Write();

 private:
  std::string path_;
  std::map<std::string, std::string> choices_;
};

}  // namespace mpc::runtime
