#include "compiler/report/memory_report.h"

#include <cstdint>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/report/memory_table.h"
#include "compiler/report/text_table.h"

namespace mpc::compiler {
namespace {

/// How many of the largest values at the peak are listed.
constexpr std::size_t kListed = 12;

/// "conv2d in net/conv1".
std::string place(const std::string &Op, const std::string &Path) {
  return Path.empty() ? Op : absl::StrCat(Op, " in ", Path);
}

/// "forward 1.4 GiB, gradients 97.5 MiB": what there is, in the order of the enumerators.
std::string uses(const MemoryTable &Table) {
  std::vector<std::string> Parts;
  for (const StorageUse Use : {StorageUse::kInput, StorageUse::kForward, StorageUse::kBackward, StorageUse::kGradient,
                               StorageUse::kUpdate, StorageUse::kWorkspace}) {
    if (const std::int64_t Bytes = Table.bytes(Use); Bytes > 0)
      Parts.push_back(absl::StrCat(StorageUseName(Use), " ", FormatBytes(Bytes)));
  }
  return absl::StrJoin(Parts, ", ");
}

std::string liveAtPeak(const MemoryTable &Table) {
  TextTable Text({"for", "op", "Cell", "type", "bytes", "from", "to"});
  for (const MemoryRow &Row : Table.rows) {
    if (&Row - Table.rows.data() == kListed)
      break;
    Text.add({StorageUseName(Row.use), Row.op, Row.path.empty() ? "-" : Row.path, Row.type.empty() ? "-" : Row.type,
              FormatCount(Row.bytes), absl::StrCat(Row.first), absl::StrCat(Row.last)});
  }
  return absl::StrCat("live at the peak (", FormatCounted(static_cast<std::int64_t>(Table.rows.size()), "buffer"), ", ",
                      FormatBytes(Table.peak_bytes), " at instruction ", Table.peak, " of ", Table.instructions, ", ",
                      place(Table.peak_op, Table.peak_path), ")\n  ", uses(Table), "\n", Text.print());
}

/// " (147.2 MiB of it one element throughout)" or nothing.
std::string filledConstants(const runtime::Program &Program) {
  const std::size_t Filled = Program.constant_bytes() - Program.constants.size();
  return Filled == 0 ? "" : absl::StrCat(" (", FormatBytes(Filled), " of it one element throughout)");
}

std::string stateCopies(const runtime::Program &Program) {
  if (Program.step().copies.empty())
    return "  state copies: none, every update is in place\n";
  std::string Text = absl::StrCat("  state copies: ", Program.step().copies.size(), "\n");
  for (const StateCopy &Copy : StateCopies(Program))
    absl::StrAppend(&Text, "    ", Copy.state, " (", FormatBytes(Copy.bytes), "): ", Copy.reason, "\n");
  return Text;
}

} // namespace

std::string MemoryReport(const CompileResult &Result) {
  const runtime::Program &Program = Result.program;
  const absl::StatusOr<MemoryTable> Table = TabulateMemory(Program, Result.final_ir);
  if (!Table.ok())
    return absl::StrCat("no memory report: ", Table.status().message(), "\n");
  return absl::StrCat("memory\n  planned arena peak: ", FormatBytes(Program.arena_bytes),
                      " (temporaries, inputs, workspaces)\n  activations: ", FormatBytes(Table->activation_bytes),
                      " (most of it that is live at once, gradients of parameters aside)\n  state: ",
                      FormatBytes(Program.state_bytes()), " in ", FormatCounted(Program.state.size(), "tensor"),
                      "\n  constants: ", FormatBytes(Program.constant_bytes()), filledConstants(Program),
                      "\n  arena, state and constants: ", FormatBytes(Program.planned_bytes()), "\n",
                      stateCopies(Program), "\n", liveAtPeak(*Table));
}

} // namespace mpc::compiler
