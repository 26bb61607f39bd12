// mpc-bisect: the first operation in which one step of two runs differs.
#include <iostream>

#include "tools/mpc-bisect/bisection.h"
#include "tools/mpc-bisect/options.h"
#include "tools/support/run_main.h"

namespace mpc::tools {
namespace {

constexpr char kProgram[] = "mpc-bisect";
/// As for cmp and diff, 1 says that there is a difference: errors have another status.
constexpr int kDiffers = 1;
constexpr int kCannotCompare = 2;

int Main(int argc, char** argv) {
  const absl::StatusOr<BisectCommandLine> line = ParseBisectCommandLine(argc, argv);
  if (!line.ok()) return Fail(kProgram, line.status(), kBadUsage);
  if (!line->help.empty()) {
    std::cout << line->help;
    return kSuccess;
  }
  const absl::StatusOr<Bisection> bisection = BisectFiles(line->options);
  if (!bisection.ok()) {
    std::cerr << kProgram << ": " << bisection.status().message() << "\n";
    return kCannotCompare;
  }
  std::cout << bisection->text;
  return bisection->differs ? kDiffers : kSuccess;
}

}  // namespace
}  // namespace mpc::tools

int main(int argc, char** argv) {
  return mpc::tools::RunMain(mpc::tools::kProgram, mpc::tools::Main, argc, argv, mpc::tools::kCannotCompare);
}
