// Command lines of the tools: `--name=value` or `--name value`, `--switch`, `--switch=false`, and positional arguments.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "tools/support/option_flag.h"

namespace mpc::tools {

/// The maximum of a flag that has none.
inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

/// A whole number in [minimum, maximum]; "true" or "false". Errors (INVALID_ARGUMENT): the text and what is accepted.
absl::StatusOr<std::int64_t> ParseInteger(const std::string& value, std::int64_t minimum, std::int64_t maximum);
absl::StatusOr<bool> ParseSwitch(const std::string& value);

/// Declares flags, parses a command line, prints the help. The last of several values of a flag wins; `_` in a name is
/// read as `-`. After `--` everything is positional. Targets must outlive the set; their values when a flag is declared
/// are the defaults that the help shows.
class FlagSet {
 public:
  /// `usage` is what follows the program's name, `description` a paragraph.
  FlagSet(std::string program, std::string usage, std::string description);

  void Text(std::string name, std::string placeholder, std::string help, std::string* target);
  /// One of `choices`.
  void Choice(std::string name, std::vector<std::string> choices, std::string help, std::string* target);
  /// A whole number in [minimum, maximum].
  void Integer(std::string name, std::int64_t minimum, std::int64_t maximum, std::string help, std::int64_t* target);
  /// As above, where a default depends on other flags: the help has to tell it.
  void Integer(std::string name, std::int64_t minimum, std::int64_t maximum, std::string help,
               std::optional<std::int64_t>* target);
  /// A finite number of at least `minimum`.
  void Number(std::string name, double minimum, std::string help, std::optional<double>* target);
  void Switch(std::string name, std::string help, bool* target);
  void Switch(std::string name, std::string help, std::optional<bool>* target);

  /// A flag whose value `set` understands; `is_switch`: it may stand without a value, which is then "true".
  void Custom(std::string name, std::string placeholder, std::string help, bool is_switch,
              std::function<absl::Status(const std::string& value)> set);

  /// The flag of one of `options`, which outlive the set.
  template <typename Options>
  void Add(const OptionFlag<Options>& flag, Options& options) {
    Custom(flag.name, flag.placeholder, flag.help, flag.is_switch,
           [set = flag.set, &options](const std::string& value) { return set(value, options); });
    // A switch whose default depends on other options is given when it is false, too.
    flags_.back().false_is_absent = flag.placeholder.empty();
  }

  /// Says which modes of a tool read the flags `names`, which are declared before. Each mode has a bit. `dimension`
  /// holds the bits of modes that exclude each other, such as kinds of data. Of these bits, the flags keep those in
  /// `readers`. Their other bits stay. A flag without a limit is read in every mode.
  void Limit(unsigned dimension, unsigned readers, std::initializer_list<std::string_view> names);

  /// The positional arguments. Errors (INVALID_ARGUMENT): an unknown flag, with the nearest ones; a value that is
  /// missing or not accepted, with what is.
  absl::StatusOr<std::vector<std::string>> Parse(int argc, const char* const* argv);

  /// Whether the command line had the flag. A switch that was set to false counts as left out where that is its
  /// default.
  bool Given(std::string_view name) const;
  /// "--trace", the first flag that was given and that no mode of `readers` reads; empty: there is none.
  std::string FirstUnread(unsigned readers) const;

  /// True if the command line asked for `--help` or `--version`; nothing after it was read.
  bool help_requested() const { return help_requested_; }
  /// What was asked for: the help, or after `--version` the program's name and version.
  std::string Help() const;

 private:
  struct Flag {
    std::string name;
    std::string placeholder;  ///< "N", "O0|O2|O3"
    std::string help;
    std::string default_value;  ///< empty: none to show
    bool is_switch = false;     ///< may stand without a value
    std::function<absl::Status(const std::string& value)> set;
    bool false_is_absent = false;
    unsigned readers = ~0u;
    bool given = false;
  };

  Flag* Find(std::string_view name);
  /// "; did you mean --epochs?", or nothing.
  std::string Suggestion(std::string_view unknown) const;

  std::string program_;
  std::string usage_;
  std::string description_;
  std::vector<Flag> flags_;
  bool help_requested_ = false;
  bool version_requested_ = false;
};

}  // namespace mpc::tools
