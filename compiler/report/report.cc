#include "compiler/report/report.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/report/fusion_table.h"
#include "compiler/report/gpu_resources.h"
#include "compiler/report/memory_report.h"
#include "compiler/report/message_table.h"
#include "compiler/report/precision_table.h"
#include "compiler/report/text_table.h"
#include "compiler/target/targets.h"

namespace mpc::compiler {
namespace {

/// "conv1.weight, fc1.weight (2)": repeated places are counted.
std::string places(const std::vector<std::string> &where) {
  std::vector<std::pair<std::string, int>> places;
  for (const std::string &place : where) {
    const auto known =
        std::find_if(places.begin(), places.end(), [&](const auto &entry) { return entry.first == place; });
    if (known == places.end()) {
      places.emplace_back(place, 1);
    } else {
      ++known->second;
    }
  }
  return absl::StrJoin(places, ", ", [](std::string *out, const auto &place) {
    absl::StrAppend(out, place.first);
    if (place.second > 1)
      absl::StrAppend(out, " (", place.second, ")");
  });
}

/// "lenet5/conv1", or "rnn/cell (@body, 5 runs)" in a loop.
std::string placeOf(const PrecisionRow &row) {
  const std::string path = row.path.empty() ? "-" : row.path;
  if (row.loop.empty())
    return path;
  return absl::StrCat(path, " (@", row.loop, ", ", FormatCounted(row.runs, "run"), ")");
}

std::string operations(const PrecisionTable &table) {
  TextTable text({"#", "op", "Cell", "reads", "writes", "compute", "why"});
  std::size_t ordinal = 0;
  for (const PrecisionRow &row : table.rows) {
    text.add({absl::StrCat(++ordinal), row.op, placeOf(row), row.inputs.empty() ? "-" : row.inputs,
              row.outputs.empty() ? "-" : row.outputs, row.compute, row.reason.empty() ? "-" : row.reason});
  }
  return absl::StrCat("operations (", table.rows.size(), ")\n", text.print());
}

std::string casts(const PrecisionTable &table) {
  if (table.casts.count() == 0)
    return "casts: none\n";
  TextTable text({"kind", "types", "count", "bytes", "of"});
  for (const CastGroup &group : table.casts.groups()) {
    text.add({CastKindName(group.kind), absl::StrCat(group.from, " -> ", group.to), FormatCount(group.count),
              FormatCount(group.bytes), places(group.where)});
  }
  return absl::StrCat("casts (", table.casts.count(), ", ", FormatBytes(table.casts.bytes()), " moved a step)\n",
                      text.print());
}

/// "matrix work: 98.5 % of 24.8 MFLOP a step reads a 16-bit type".
std::string matrixWork(const PrecisionTable &table) {
  const double flops = table.matrix_flops();
  if (flops == 0)
    return "matrix work: none\n";
  return absl::StrFormat("matrix work: %.1f %% of %s a step reads a 16-bit type\n",
                         100 * table.low_matrix_flops() / flops, FormatFlops(flops));
}

std::string arguments(const PrecisionTable &table) {
  if (table.arguments.empty())
    return "arguments: none\n";
  TextTable text({"role", "tensors", "elements", "bytes"});
  for (const ArgumentGroup &group : table.arguments) {
    text.add({std::string(RoleName(group.role)), FormatCount(group.count), FormatCount(group.elements),
              FormatCount(group.bytes)});
  }
  return absl::StrCat("arguments\n", text.print());
}

/// "1.5 MiB", or "-512 bytes" where fewer launches are worth more loads.
std::string signedBytes(std::int64_t bytes) {
  return bytes < 0 ? absl::StrCat("-", FormatBytes(-bytes)) : FormatBytes(bytes);
}

/// Nothing where there is no region.
std::string fusion(const FusionTable &table) {
  if (table.rows.empty())
    return "";
  TextTable regions({"region", "operations", "Cell", "saves"}), leftOut({"region", "left out, and why"});
  std::size_t number = 0;
  for (const FusionRow &row : table.rows) {
    const std::string name = absl::StrCat(++number);
    regions.add({name, places(row.operations), row.path.empty() ? "-" : row.path, signedBytes(row.bytes_saved)});
    for (const std::string &neighbour : row.left_out)
      leftOut.add({name, neighbour});
  }
  return absl::StrCat("fusion (", FormatCounted(table.operations(), "operation"), " in ",
                      FormatCounted(table.rows.size(), "region"), ", ", signedBytes(table.bytes_saved()),
                      " less moved a step)\n", regions.print(), leftOut.print(), "\n");
}

/// Nothing where the step sends no message.
std::string messages(const MessageTable &table) {
  if (table.rows.empty())
    return "";
  TextTable text({"message", "operations", "bytes"});
  for (const MessageRow &row : table.rows)
    text.add({absl::StrCat(&row - table.rows.data() + 1), places(row.operations), FormatCount(row.bytes)});
  return absl::StrCat("messages (", table.rows.size(), " a step between ", table.processes, " processes, ",
                      FormatBytes(table.bytes()), " of each)\n", text.print(), "\n");
}

/// "assembled by ptxas, no spills", or why not.
std::string assembly(const GpuResources &table) {
  if (!table.no_ptxas.empty())
    return absl::StrCat("not assembled: ", table.no_ptxas);
  std::int64_t assembled = 0, spilling = 0;
  for (const FusionResources &row : table.rows) {
    assembled += row.assembled.has_value();
    spilling += row.assembled && row.assembled->spill_bytes > 0;
  }
  std::vector<std::string> parts;
  if (assembled > 0 || table.not_assembled.empty())
    parts.push_back(spilling == 0 ? "assembled by ptxas, no spills"
                                  : absl::StrCat("assembled by ptxas, ", spilling, " with spills"));
  for (const auto &[architecture, reason] : table.not_assembled)
    parts.push_back(absl::StrCat("not assembled for ", architecture, ": ", reason));
  return absl::StrJoin(parts, "; ");
}

/// The resources that the kernels of the regions take of a GPU; empty where there is no region.
std::string resources(const GpuResources &table) {
  if (table.rows.empty())
    return "";
  TextTable text({"region", "for", "kernels", "registers", "spilled", "shared", "PTX instructions"});
  for (const FusionResources &row : table.rows) {
    const auto &code = row.assembled;
    text.add({absl::StrCat(row.region), row.architecture, absl::StrCat(row.kernels),
              code ? absl::StrCat(code->registers) : "?", code ? FormatBytes(code->spill_bytes) : "?",
              code ? FormatBytes(code->shared_bytes) : "?", FormatCount(row.instructions)});
  }
  return absl::StrCat("generated kernels (", assembly(table), ")\n", text.print(), "\n");
}

std::string functionReport(const PrecisionTable &table, const FusionTable &regions, const MessageTable &sent,
                           const GpuResources &gpu = {}) {
  return absl::StrCat(operations(table), "\n", fusion(regions), resources(gpu), messages(sent), casts(table), "\n",
                      matrixWork(table), "\n", arguments(table));
}

const ArgumentGroup *findRole(const PrecisionTable &table, Role wanted) {
  for (const ArgumentGroup &group : table.arguments) {
    if (group.role == wanted)
      return &group;
  }
  return nullptr;
}

std::string parameterText(const PrecisionTable &table) {
  const ArgumentGroup *parameters = findRole(table, Role::kParameter);
  if (parameters == nullptr)
    return "parameters: none";
  return absl::StrCat("parameters: ", FormatCount(parameters->elements), " in ",
                      FormatCounted(parameters->count, "tensor"), ", ", FormatBytes(parameters->bytes));
}

std::string noReport(const absl::Status &why) { return absl::StrCat("no report: ", why.message(), "\n"); }

/// The text that \p write makes of a result and its operations, or the reason why there is none.
std::string reportOf(const CompileResult &result,
                     std::string (*write)(const CompileResult &result, const PrecisionTable &table)) {
  const absl::StatusOr<PrecisionTable> table = TabulatePrecision(result.final_ir, result.program.name);
  return table.ok() ? write(result, *table) : noReport(table.status());
}

std::string wholeReport(const CompileResult &result, const PrecisionTable &table) {
  const runtime::Program &program = result.program;
  const absl::StatusOr<FusionTable> regions = TabulateFusion(result.final_ir, program.name);
  if (!regions.ok())
    return noReport(regions.status());
  const absl::StatusOr<MessageTable> sent = TabulateMessages(result.final_ir, program.name);
  if (!sent.ok())
    return noReport(sent.status());
  absl::StatusOr<GpuResources> gpu = GpuResources();
  if (generatesPtx(program.device))
    gpu = TabulateGpuResources(result.final_ir, program.name, program.arch);
  if (!gpu.ok())
    return noReport(gpu.status());
  std::string text = absl::StrCat("precision report of @", program.name, " on ", program.device, "\n\n",
                                  functionReport(table, *regions, *sent, *gpu), "\n", parameterText(table), "\n\n",
                                  MemoryReport(result));
  if (!result.remarks.empty())
    absl::StrAppend(&text, "\nremarks\n  ", absl::StrJoin(result.remarks, "\n  "), "\n");
  return text;
}

std::string summary(const CompileResult &result, const PrecisionTable &table) {
  const runtime::Program &program = result.program;
  std::int64_t low = 0;
  for (const PrecisionRow &row : table.rows) {
    low += row.inputs.find("f16") != std::string::npos || row.outputs.find("f16") != std::string::npos;
  }
  return absl::StrCat("@", program.name, " on ", program.device, ": ", low, " of ", table.rows.size(),
                      " operations read or write a 16-bit type; ", FormatCounted(table.casts.count(), "cast"), ", ",
                      FormatBytes(table.casts.bytes()), " a step\n", parameterText(table),
                      "; state: ", FormatBytes(program.state_bytes()),
                      "; planned arena peak: ", FormatBytes(program.arena_bytes),
                      "; constants: ", FormatBytes(program.constant_bytes()), "; ",
                      program.step().copies.empty() ? "no state copies"
                                                    : FormatCounted(program.step().copies.size(), "tensor") + " copied",
                      "\n");
}

} // namespace

std::string PrecisionReport(const CompileResult &result) { return reportOf(result, wholeReport); }

std::string PrecisionSummary(const CompileResult &result) { return reportOf(result, summary); }

std::string ModuleReport(const Module &target) {
  std::string text;
  for (const std::string &function : FunctionNames(target)) {
    const absl::StatusOr<PrecisionTable> table = TabulatePrecision(target, function);
    const absl::StatusOr<FusionTable> regions = TabulateFusion(target, function);
    const absl::StatusOr<MessageTable> sent = TabulateMessages(target, function);
    if (!table.ok() || !regions.ok() || !sent.ok())
      continue;
    absl::StrAppend(&text, text.empty() ? "" : "\n", "precision report of @", function, "\n\n",
                    functionReport(*table, *regions, *sent), "\n", parameterText(*table), "\n");
  }
  return text.empty() ? "the module has no function with a body\n" : text;
}

} // namespace mpc::compiler
