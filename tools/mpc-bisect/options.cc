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
                "Compares two runs. A and B are files of `mpc-train --record-hashes=FILE`: it names the first step\n"
                "after which their states differ. Or they are capsules of one step, which `mpc-train --capsule=FILE\n"
                "--capsule-at=N` writes: it says what the steps begin with, replays both, and names the first\n"
                "operation whose result differs. The exit status is 0 without a difference, 1 with one, 2 where they\n"
                "cannot be compared.");
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
    return absl::InvalidArgumentError(absl::StrCat(
        "give two files of `mpc-train --record-hashes=FILE`, or two of `mpc-train --capsule=FILE`", given));
  }
  line.options.first_path = arguments->front();
  line.options.second_path = arguments->back();
  return line;
}

}  // namespace mpc::tools
