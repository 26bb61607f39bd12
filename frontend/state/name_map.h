// What another framework calls the parameters of a network, and how it lays them out.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace mpc {

/// How a file holds one Parameter.
struct ForeignLayout {
  /// The file's entries. Several hold its rows one behind the other, in this order.
  std::vector<std::string> entries;
  /// The Parameters whose rows the one entry holds, in this order, this one among them. Empty: the entry is its own.
  std::vector<std::string> sharers;
  /// The axes of matrices are exchanged in the file. Parameters of another rank are as they are here.
  bool transposed = false;
};

/// Maps the names of a network's Parameters ("bn.gamma") to those in a file ("bn.weight"). Both loading and saving ask
/// for the file's name of each Parameter. Paths are dotted; a part `*` of a path stands for any one part. A path ends
/// where a name ends, and may be written with a dot behind it: "layer" and "layer." have no part in "layer1". Both ways
/// refuse a path of the network, of Rename, Join, Split and Transpose, at or below which it has no Parameter.
class NameMap {
 public:
  /// Names stay as they are.
  NameMap() = default;

  /// PyTorch's: gamma -> weight, beta -> bias, moving_mean -> running_mean, moving_variance -> running_var; weights and
  /// biases keep their names. `num_batches_tracked` entries are ignored. At any depth self_attn.in_proj.weight is
  /// self_attn.in_proj_weight, as are multihead_attn's and biases.
  static NameMap PyTorch();

  /// The names of a published network: "torchvision/resnet18", "torchvision/resnet50", "huggingface/gpt2",
  /// "huggingface/bert", "timm/vit". The networks of models/ have the other side's layout after it. Errors (NOT_FOUND):
  /// what exists.
  static absl::StatusOr<NameMap> Preset(std::string_view name);
  /// Every name that Preset takes, sorted.
  static std::vector<std::string> PresetNames();

  /// Parameters below the path `own` have `foreign` in its place: Rename("conv1", "features.0"). Each `*` of `foreign`
  /// takes what that of `own` stands for: Rename("blocks.*.ln1", "h.*.ln_1"). An empty `own` stands for the whole
  /// network, an empty `foreign` for nothing. An `own` that is a Parameter's whole name gives it the name `foreign`.
  /// The path with most parts wins, then the one with fewest `*`, then the later one. This holds for Join and Split
  /// too.
  NameMap& Rename(std::string own, std::string foreign);
  /// As Rename, but each Parameter is several entries of the file, whose rows stand one behind the other in it:
  /// Join("in_proj", {"query", "key", "value"}). Loading joins them; saving cuts it into equal parts. Without an entry
  /// both are an error.
  NameMap& Join(std::string own, std::vector<std::string> foreign);
  /// The other way: one entry of the file holds the rows of several Parameters: Split({"query", "key"}, "in_proj").
  /// Transpose takes all of their matrices or none: another map is refused.
  NameMap& Split(const std::vector<std::string>& own, const std::string& foreign);
  /// The file has matrices at and below the path `own` with their axes exchanged.
  NameMap& Transpose(const std::string& own);
  /// Every name in the file begins with the path `foreign`, as "module" of DistributedDataParallel.
  NameMap& Prefix(std::string foreign);
  /// A file whose names all lack the first part `foreign`, which renamed paths have, is read as well. Saving writes it.
  NameMap& OptionalPrefix(std::string foreign);
  /// Entries at and below the path `foreign` mean nothing to a network here.
  NameMap& Ignore(const std::string& foreign);
  /// The entry `foreign` is the entry `of` once more, as a head that is its network's token table. A file may have
  /// either or both; different values are an error. Saving writes `of`.
  NameMap& Repeat(std::string foreign, std::string of);
  /// Files may write the last parts `written` of a name for `meant`: Alias("norm.gamma", "norm.weight"). Saving writes
  /// `meant`.
  NameMap& Alias(std::string written, std::string meant);

  /// How the file holds the Parameter `own`.
  ForeignLayout LayoutOf(std::string_view own) const;
  /// The file's name of the Parameter `own`; the first of several; empty where Join was given none.
  std::string Foreign(std::string_view own) const;
  /// True if the file's entry `foreign` means nothing to a network here and is ignored.
  bool Ignores(std::string_view foreign) const;
  /// What the entries of one file mean, by the names that LayoutOf gives: aliases and optional prefixes are resolved.
  std::vector<std::string> Meanings(const std::vector<std::string>& entries) const;
  /// Entries that repeat another one: the entry and that other one.
  std::vector<std::pair<std::string, std::string>> Repeats() const;
  /// The paths of Rename, Join, Split and Transpose at or below which none of `own` lies. Those of a Preset are left
  /// out.
  std::vector<std::string> PathsWithout(const std::vector<std::string>& own) const;
  /// The value of "format" in the metadata of a file with these names: "mpc", "pt".
  const std::string& format() const { return format_; }

 private:
  using Path = std::vector<std::string>;
  /// Where the Parameters below one path are in the file.
  struct Rule {
    Path own;
    std::vector<std::string> foreign;  ///< several: joined
    std::vector<std::string> sharers;  ///< paths here; several: split
  };

  const Rule* FindRule(const Path& own) const;
  std::string ForeignMember(const std::string& own) const;
  std::string Prefixed(const std::string& foreign) const;
  std::string_view Unprefixed(std::string_view foreign) const;
  bool IsOfAnotherFirstPart(std::string_view foreign) const;

  std::string format_ = "mpc";
  std::vector<std::pair<std::string, std::string>> members_;  ///< last part of a name: own, foreign
  std::vector<Rule> rules_;
  std::vector<Path> transposed_;                              ///< paths here
  std::size_t preset_rules_ = 0;                              ///< the first of rules_, which a preset has
  std::size_t preset_transposed_ = 0;                         ///< the first of transposed_, which a preset has
  std::vector<std::string> ignored_members_;                  ///< last parts
  std::vector<Path> ignored_;                                 ///< paths in the file
  std::string prefix_;                                        ///< in front of every name; empty: none
  std::string optional_prefix_;                               ///< a first part that a file may lack; empty: none
  std::vector<std::pair<std::string, std::string>> repeats_;  ///< entry, what it repeats
  std::vector<std::pair<std::string, std::string>> aliases_;  ///< last parts: written, meant
};

}  // namespace mpc
