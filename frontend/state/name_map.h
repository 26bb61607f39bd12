// What another framework calls the parameters of a network.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mpc {

/// Maps the names of a network's Parameters ("bn.gamma") to those in a file ("bn.weight"). Both loading and saving ask
/// for the file's name of each Parameter.
class NameMap {
 public:
  /// Names stay as they are.
  NameMap() = default;

  /// PyTorch's: gamma -> weight, beta -> bias, moving_mean -> running_mean, moving_variance -> running_var; weights and
  /// biases keep their names. `num_batches_tracked` entries are ignored.
  static NameMap PyTorch();

  /// Parameters below the path `own` have `foreign` in its place: Rename("conv1", "features.0"). An empty `own` stands
  /// for the whole network, an empty `foreign` for nothing. The longest path that fits wins.
  NameMap& Rename(std::string own, std::string foreign);

  /// The file's name of the Parameter `own`.
  std::string Foreign(std::string_view own) const;
  /// True if the file's entry `foreign` means nothing to a network here and is ignored.
  bool Ignores(std::string_view foreign) const;
  /// The value of "format" in the metadata of a file with these names: "mpc", "pt".
  const std::string& format() const { return format_; }

 private:
  std::string format_ = "mpc";
  std::vector<std::pair<std::string, std::string>> members_;  ///< last part of a name: own, foreign
  std::vector<std::pair<std::string, std::string>> paths_;    ///< first parts: own, foreign
  std::vector<std::string> ignored_;                          ///< last parts
};

}  // namespace mpc
