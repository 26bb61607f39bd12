#include <vector>

#include "runtime/program_check.h"
#include "runtime/program_encoding.h"
#include "runtime/program_file.h"
#include "tests/fuzz/program_tables.h"
#include "tests/fuzz/readers.h"
#include "tests/fuzz/verdict.h"
#include "tests/runtime/package_equality.h"

namespace mpc::fuzz {
namespace {

/// A checked Program's indices lead nowhere else.
void RequireUsable(const runtime::Package& package) {
  for (const runtime::Program& program : package.programs) {
    Require(runtime::FindStateUses(program).size() == program.state.size(), "a state has no use");
  }
}

}  // namespace

void ReadProgram(absl::Span<const std::uint8_t> input) {
  const absl::StatusOr<runtime::Package> file = runtime::ParsePackage(input, kOrigin);
  if (!file.ok()) RequireRefusal(file.status());
  const std::vector<std::uint8_t> tables = TablesOf(input);
  if (tables.empty()) return;
  const absl::StatusOr<runtime::Package> package = runtime::file::Decode(tables);
  if (!package.ok()) return RequireRefusal(package.status(), "");
  if (absl::Status status = runtime::CheckPackage(*package); !status.ok()) return RequireRefusal(status, "");
  RequireUsable(*package);
  const absl::StatusOr<std::vector<std::uint8_t>> written = runtime::SerializePackage(*package);
  Require(written.ok(), "what was accepted cannot be written: " + written.status().ToString());
  const absl::StatusOr<runtime::Package> again = runtime::ParsePackage(*written, kOrigin);
  Require(again.ok(), "what was written cannot be read: " + again.status().ToString());
  Require(runtime::SamePackage(*package, *again), "a package changes when it is written and read");
}

}  // namespace mpc::fuzz
