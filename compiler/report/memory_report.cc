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
std::string place(const std::string &op, const std::string &path) {
  return path.empty() ? op : absl::StrCat(op, " in ", path);
}

/// "forward 1.4 GiB, gradients 97.5 MiB": what there is, in the order of the enumerators.
std::string uses(const MemoryTable &table) {
  std::vector<std::string> parts;
  for (const StorageUse use : {StorageUse::Input, StorageUse::Forward, StorageUse::Backward, StorageUse::Gradient,
                               StorageUse::Update, StorageUse::Workspace}) {
    if (const std::int64_t bytes = table.bytes(use); bytes > 0)
      parts.push_back(absl::StrCat(StorageUseName(use), " ", FormatBytes(bytes)));
  }
  return absl::StrJoin(parts, ", ");
}

std::string liveAtPeak(const MemoryTable &table) {
  TextTable text({"for", "op", "Cell", "type", "bytes", "from", "to"});
  for (const MemoryRow &row : table.rows) {
    if (&row - table.rows.data() == kListed)
      break;
    text.add({StorageUseName(row.use), row.op, row.path.empty() ? "-" : row.path, row.type.empty() ? "-" : row.type,
              FormatCount(row.bytes), absl::StrCat(row.first), absl::StrCat(row.last)});
  }
  return absl::StrCat("live at the peak (", FormatCounted(static_cast<std::int64_t>(table.rows.size()), "buffer"), ", ",
                      FormatBytes(table.peak_bytes), " at instruction ", table.peak, " of ", table.instructions, ", ",
                      place(table.peak_op, table.peak_path), ")\n  ", uses(table), "\n", text.print());
}

/// " (147.2 MiB of it one element throughout)" or nothing.
std::string filledConstants(const runtime::Program &program) {
  const std::size_t filled = program.constant_bytes() - program.constants.size();
  return filled == 0 ? "" : absl::StrCat(" (", FormatBytes(filled), " of it one element throughout)");
}

std::string stateCopies(const runtime::Program &program) {
  if (program.step().copies.empty())
    return "  state copies: none, every update is in place\n";
  std::string text = absl::StrCat("  state copies: ", program.step().copies.size(), "\n");
  for (const StateCopy &copy : StateCopies(program))
    absl::StrAppend(&text, "    ", copy.state, " (", FormatBytes(copy.bytes), "): ", copy.reason, "\n");
  return text;
}

} // namespace

std::string MemoryReport(const CompileResult &result) {
  const runtime::Program &program = result.program;
  const absl::StatusOr<MemoryTable> table = TabulateMemory(program, result.final_ir);
  if (!table.ok())
    return absl::StrCat("no memory report: ", table.status().message(), "\n");
  return absl::StrCat("memory\n  planned arena peak: ", FormatBytes(program.arena_bytes),
                      " (temporaries, inputs, workspaces)\n  activations: ", FormatBytes(table->activation_bytes),
                      " (most of it that is live at once, gradients of parameters aside)\n  state: ",
                      FormatBytes(program.state_bytes()), " in ", FormatCounted(program.state.size(), "tensor"),
                      "\n  constants: ", FormatBytes(program.constant_bytes()), filledConstants(program),
                      "\n  arena, state and constants: ", FormatBytes(program.planned_bytes()), "\n",
                      stateCopies(program), "\n", liveAtPeak(*table));
}

} // namespace mpc::compiler
