// What a Model says on std::cerr. Not part of the public API.
#pragma once

#include <set>
#include <string>

namespace mpc::internal {

/// The lines that a Model writes to std::cerr, and which of them are said only once. Of several processes rank 0 alone
/// speaks; all of them keep the same account.
class Remarks {
 public:
  explicit Remarks(bool speaks) : speaks_(speaks) {}

  void Say(const std::string& line) const;
  /// Says `line`, unless a line was said as `topic` before.
  void SayOnce(const std::string& topic, const std::string& line);
  bool has_said(const std::string& topic) const { return said_.contains(topic); }
  /// Lets a line be said as `topic` once more.
  void Forget(const std::string& topic) { said_.erase(topic); }

 private:
  bool speaks_;
  std::set<std::string> said_;  ///< topics
};

}  // namespace mpc::internal
