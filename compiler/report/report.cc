#include "compiler/report/report.h"

#include <algorithm>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "compiler/report/fusion_table.h"
#include "compiler/report/gpu_resources.h"
#include "compiler/report/memory_report.h"
#include "compiler/report/precision_table.h"
#include "compiler/report/text_table.h"
#include "compiler/target/targets.h"

namespace mpc::compiler {
namespace {

/// "conv1.weight, fc1.weight (2)": repeated places are counted.
std::string places(const std::vector<std::string> &Where) {
  std::vector<std::pair<std::string, int>> Places;
  for (const std::string &Place : Where) {
    const auto Known =
        std::find_if(Places.begin(), Places.end(), [&](const auto &Entry) { return Entry.first == Place; });
    if (Known == Places.end()) {
      Places.emplace_back(Place, 1);
    } else {
      ++Known->second;
    }
  }
  return absl::StrJoin(Places, ", ", [](std::string *Out, const auto &Place) {
    absl::StrAppend(Out, Place.first);
    if (Place.second > 1)
      absl::StrAppend(Out, " (", Place.second, ")");
  });
}

std::string operations(const PrecisionTable &Table) {
  TextTable Text({"#", "op", "Cell", "reads", "writes", "compute", "why"});
  std::size_t Ordinal = 0;
  for (const PrecisionRow &Row : Table.rows) {
    Text.add({absl::StrCat(++Ordinal), Row.op, Row.path.empty() ? "-" : Row.path, Row.inputs.empty() ? "-" : Row.inputs,
              Row.outputs.empty() ? "-" : Row.outputs, Row.compute, Row.reason.empty() ? "-" : Row.reason});
  }
  return absl::StrCat("operations (", Table.rows.size(), ")\n", Text.print());
}

std::string casts(const PrecisionTable &Table) {
  if (Table.casts.count() == 0)
    return "casts: none\n";
  TextTable Text({"kind", "types", "count", "bytes", "of"});
  for (const CastGroup &Group : Table.casts.groups()) {
    Text.add({CastKindName(Group.kind), absl::StrCat(Group.from, " -> ", Group.to), FormatCount(Group.count),
              FormatCount(Group.bytes), places(Group.where)});
  }
  return absl::StrCat("casts (", Table.casts.count(), ", ", FormatBytes(Table.casts.bytes()), " moved a step)\n",
                      Text.print());
}

/// "matrix work: 98.5 % of 24.8 MFLOP a step reads a 16-bit type".
std::string matrixWork(const PrecisionTable &Table) {
  const double Flops = Table.matrix_flops();
  if (Flops == 0)
    return "matrix work: none\n";
  return absl::StrFormat("matrix work: %.1f %% of %s a step reads a 16-bit type\n",
                         100 * Table.low_matrix_flops() / Flops, FormatFlops(Flops));
}

std::string arguments(const PrecisionTable &Table) {
  if (Table.arguments.empty())
    return "arguments: none\n";
  TextTable Text({"role", "tensors", "elements", "bytes"});
  for (const ArgumentGroup &Group : Table.arguments) {
    Text.add({std::string(RoleName(Group.role)), FormatCount(Group.count), FormatCount(Group.elements),
              FormatCount(Group.bytes)});
  }
  return absl::StrCat("arguments\n", Text.print());
}

/// "1.5 MiB", or "-512 bytes" where fewer launches are worth more loads.
std::string signedBytes(std::int64_t Bytes) {
  return Bytes < 0 ? absl::StrCat("-", FormatBytes(-Bytes)) : FormatBytes(Bytes);
}

/// Nothing where there is no region.
std::string fusion(const FusionTable &Table) {
  if (Table.rows.empty())
    return "";
  TextTable Regions({"region", "operations", "Cell", "saves"}), LeftOut({"region", "left out, and why"});
  std::size_t Number = 0;
  for (const FusionRow &Row : Table.rows) {
    const std::string Name = absl::StrCat(++Number);
    Regions.add({Name, places(Row.operations), Row.path.empty() ? "-" : Row.path, signedBytes(Row.bytes_saved)});
    for (const std::string &Neighbour : Row.left_out)
      LeftOut.add({Name, Neighbour});
  }
  return absl::StrCat("fusion (", FormatCounted(Table.operations(), "operation"), " in ",
                      FormatCounted(Table.rows.size(), "region"), ", ", signedBytes(Table.bytes_saved()),
                      " less moved a step)\n", Regions.print(), LeftOut.print(), "\n");
}

/// "assembled by ptxas, no spills", or why not.
std::string assembly(const GpuResources &Table) {
  if (!Table.no_ptxas.empty())
    return absl::StrCat("not assembled: ", Table.no_ptxas);
  std::int64_t Assembled = 0, Spilling = 0;
  for (const RegionResources &Row : Table.rows) {
    Assembled += Row.assembled.has_value();
    Spilling += Row.assembled && Row.assembled->spill_bytes > 0;
  }
  std::vector<std::string> Parts;
  if (Assembled > 0 || Table.not_assembled.empty())
    Parts.push_back(Spilling == 0 ? "assembled by ptxas, no spills"
                                  : absl::StrCat("assembled by ptxas, ", Spilling, " with spills"));
  for (const auto &[Architecture, Reason] : Table.not_assembled)
    Parts.push_back(absl::StrCat("not assembled for ", Architecture, ": ", Reason));
  return absl::StrJoin(Parts, "; ");
}

/// The resources that the kernels of the regions take of a GPU; empty where there is no region.
std::string resources(const GpuResources &Table) {
  if (Table.rows.empty())
    return "";
  TextTable Text({"region", "for", "kernels", "registers", "spilled", "shared", "PTX instructions"});
  for (const RegionResources &Row : Table.rows) {
    const auto &Code = Row.assembled;
    Text.add({absl::StrCat(Row.region), Row.architecture, absl::StrCat(Row.kernels),
              Code ? absl::StrCat(Code->registers) : "?", Code ? FormatBytes(Code->spill_bytes) : "?",
              Code ? FormatBytes(Code->shared_bytes) : "?", FormatCount(Row.instructions)});
  }
  return absl::StrCat("generated kernels (", assembly(Table), ")\n", Text.print(), "\n");
}

std::string functionReport(const PrecisionTable &Table, const FusionTable &Regions, const GpuResources &Gpu = {}) {
  return absl::StrCat(operations(Table), "\n", fusion(Regions), resources(Gpu), casts(Table), "\n", matrixWork(Table),
                      "\n", arguments(Table));
}

const ArgumentGroup *findRole(const PrecisionTable &Table, Role Wanted) {
  for (const ArgumentGroup &Group : Table.arguments) {
    if (Group.role == Wanted)
      return &Group;
  }
  return nullptr;
}

std::string parameterText(const PrecisionTable &Table) {
  const ArgumentGroup *Parameters = findRole(Table, Role::kParameter);
  if (Parameters == nullptr)
    return "parameters: none";
  return absl::StrCat("parameters: ", FormatCount(Parameters->elements), " in ",
                      FormatCounted(Parameters->count, "tensor"), ", ", FormatBytes(Parameters->bytes));
}

std::string noReport(const absl::Status &Why) { return absl::StrCat("no report: ", Why.message(), "\n"); }

/// The text that \p Write makes of a result and its operations, or the reason why there is none.
std::string reportOf(const CompileResult &Result,
                     std::string (*Write)(const CompileResult &Result, const PrecisionTable &Table)) {
  const absl::StatusOr<PrecisionTable> Table = TabulatePrecision(Result.final_ir, Result.program.name);
  return Table.ok() ? Write(Result, *Table) : noReport(Table.status());
}

std::string wholeReport(const CompileResult &Result, const PrecisionTable &Table) {
  const runtime::Program &Program = Result.program;
  const absl::StatusOr<FusionTable> Regions = TabulateFusion(Result.final_ir, Program.name);
  if (!Regions.ok())
    return noReport(Regions.status());
  absl::StatusOr<GpuResources> Gpu = GpuResources();
  if (generatesPtx(Program.device))
    Gpu = TabulateGpuResources(Result.final_ir, Program.name, Program.arch);
  if (!Gpu.ok())
    return noReport(Gpu.status());
  std::string Text =
      absl::StrCat("precision report of @", Program.name, " on ", Program.device, "\n\n",
                   functionReport(Table, *Regions, *Gpu), "\n", parameterText(Table), "\n\n", MemoryReport(Result));
  if (!Result.remarks.empty())
    absl::StrAppend(&Text, "\nremarks\n  ", absl::StrJoin(Result.remarks, "\n  "), "\n");
  return Text;
}

std::string summary(const CompileResult &Result, const PrecisionTable &Table) {
  const runtime::Program &Program = Result.program;
  std::int64_t Low = 0;
  for (const PrecisionRow &Row : Table.rows) {
    Low += Row.inputs.find("f16") != std::string::npos || Row.outputs.find("f16") != std::string::npos;
  }
  return absl::StrCat("@", Program.name, " on ", Program.device, ": ", Low, " of ", Table.rows.size(),
                      " operations read or write a 16-bit type; ", FormatCounted(Table.casts.count(), "cast"), ", ",
                      FormatBytes(Table.casts.bytes()), " a step\n", parameterText(Table),
                      "; state: ", FormatBytes(Program.state_bytes()),
                      "; planned arena peak: ", FormatBytes(Program.arena_bytes),
                      "; constants: ", FormatBytes(Program.constant_bytes()), "; ",
                      Program.step().copies.empty() ? "no state copies"
                                                    : FormatCounted(Program.step().copies.size(), "tensor") + " copied",
                      "\n");
}

} // namespace

std::string PrecisionReport(const CompileResult &Result) { return reportOf(Result, wholeReport); }

std::string PrecisionSummary(const CompileResult &Result) { return reportOf(Result, summary); }

std::string ModuleReport(const Module &Target) {
  std::string Text;
  for (const std::string &Function : FunctionNames(Target)) {
    const absl::StatusOr<PrecisionTable> Table = TabulatePrecision(Target, Function);
    const absl::StatusOr<FusionTable> Regions = TabulateFusion(Target, Function);
    if (!Table.ok() || !Regions.ok())
      continue;
    absl::StrAppend(&Text, Text.empty() ? "" : "\n", "precision report of @", Function, "\n\n",
                    functionReport(*Table, *Regions), "\n", parameterText(*Table), "\n");
  }
  return Text.empty() ? "the module has no function with a body\n" : Text;
}

} // namespace mpc::compiler
