#include "tools/mpc-bisect/options.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/support/flag_set.h"

namespace mpc::tools {
namespace {

constexpr std::int64_t kMostThreads = 1024;

}  // namespace

absl::StatusOr<BisectCommandLine> ParseBisectCommandLine(int argc, const char* const* argv) {
  BisectCommandLine line;
  FlagSet flags("mpc-bisect", "A B [flags]",
                "Compares one step of two runs. A and B are capsules, which `mpc-train --capsule=FILE --capsule-at=N`\n"
                "writes. Says what the steps begin with, replays both, and names the first operation whose result\n"
                "differs. The exit status is 0 without a difference, 1 with one, 2 where they cannot be compared.");
  flags.Integer("threads", 0, kMostThreads,
                "Threads of both replays. By default each has as many as its capsule was made with.",
                &line.options.threads);
  const absl::StatusOr<std::vector<std::string>> arguments = flags.Parse(argc, argv);
  if (!arguments.ok()) return arguments.status();
  if (flags.help_requested()) {
    line.help = flags.Help();
    return line;
  }
  if (arguments->size() != 2) {
    const std::string given =
        arguments->empty() ? ""
                           : absl::StrCat(", not ", arguments->size(), ": '", absl::StrJoin(*arguments, "', '"), "'");
    return absl::InvalidArgumentError(
        absl::StrCat("two capsules", given, "; `mpc-train MODEL --capsule=FILE --capsule-at=N` writes one"));
  }
  line.options.first_path = arguments->front();
  line.options.second_path = arguments->back();
  return line;
}

}  // namespace mpc::tools
