#include "compiler/report.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "compiler/precision_table.h"

namespace mpc::compiler {
namespace {

/// "246,824".
std::string count(std::int64_t Number) {
  std::string Digits = std::to_string(Number);
  for (std::size_t At = Digits.size(); At > 3; At -= 3)
    Digits.insert(At - 3, ",");
  return Digits;
}

/// "512 bytes", "241.0 KiB", "1.5 MiB".
std::string bytes(std::int64_t Bytes) {
  if (Bytes < 1024)
    return absl::StrCat(Bytes, Bytes == 1 ? " byte" : " bytes");
  static constexpr std::array<const char *, 4> Units = {"KiB", "MiB", "GiB", "TiB"};
  double Value = static_cast<double>(Bytes) / 1024;
  std::size_t Unit = 0;
  for (; Value >= 1024 && Unit + 1 < Units.size(); ++Unit)
    Value /= 1024;
  std::array<char, 48> Text;
  std::snprintf(Text.data(), Text.size(), "%.1f %s", Value, Units[Unit]);
  return Text.data();
}

std::string counted(std::int64_t Number, const char *Singular) {
  return absl::StrCat(count(Number), " ", Singular, Number == 1 ? "" : "s");
}

/// Left-aligned columns, two spaces apart.
class TextTable {
public:
  explicit TextTable(std::vector<std::string> Header) { add(std::move(Header)); }

  void add(std::vector<std::string> Row) {
    Widths.resize(std::max(Widths.size(), Row.size()), 0);
    for (std::size_t I = 0; I < Row.size(); ++I)
      Widths[I] = std::max(Widths[I], Row[I].size());
    Rows.push_back(std::move(Row));
  }

  std::string print() const {
    std::string Text;
    for (const std::vector<std::string> &Row : Rows) {
      std::string Line = " ";
      for (std::size_t I = 0; I < Row.size(); ++I) {
        absl::StrAppend(&Line, " ", Row[I], std::string(Widths[I] - Row[I].size() + 1, ' '));
      }
      Line.erase(Line.find_last_not_of(' ') + 1);
      absl::StrAppend(&Text, Line, "\n");
    }
    return Text;
  }

private:
  std::vector<std::vector<std::string>> Rows;
  std::vector<std::size_t> Widths;
};

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
  TextTable Text({"op", "Cell", "reads", "writes", "compute", "why"});
  for (const PrecisionRow &Row : Table.rows) {
    Text.add({Row.op, Row.path.empty() ? "-" : Row.path, Row.inputs.empty() ? "-" : Row.inputs,
              Row.outputs.empty() ? "-" : Row.outputs, Row.compute, Row.reason.empty() ? "-" : Row.reason});
  }
  return absl::StrCat("operations (", Table.rows.size(), ")\n", Text.print());
}

std::string casts(const PrecisionTable &Table) {
  std::int64_t Count = 0;
  std::int64_t Bytes = 0;
  TextTable Text({"kind", "types", "count", "bytes", "of"});
  for (const CastGroup &Group : Table.casts) {
    Count += Group.count;
    Bytes += Group.bytes;
    Text.add({CastKindName(Group.kind), absl::StrCat(Group.from, " -> ", Group.to), count(Group.count),
              count(Group.bytes), places(Group.where)});
  }
  if (Count == 0)
    return "casts: none\n";
  return absl::StrCat("casts (", Count, ", ", bytes(Bytes), " moved a step)\n", Text.print());
}

std::string arguments(const PrecisionTable &Table) {
  if (Table.arguments.empty())
    return "arguments: none\n";
  TextTable Text({"role", "tensors", "elements", "bytes"});
  for (const ArgumentGroup &Group : Table.arguments) {
    Text.add({Group.role, count(Group.count), count(Group.elements), count(Group.bytes)});
  }
  return absl::StrCat("arguments\n", Text.print());
}

std::string memory(const runtime::Program &Program) {
  std::string Text =
      absl::StrCat("memory\n  planned arena peak: ", bytes(Program.arena_bytes),
                   " (temporaries, inputs, workspaces)\n  state: ", bytes(Program.state_bytes()), " in ",
                   counted(Program.state.size(), "tensor"), "\n  constants: ", bytes(Program.constants.size()), "\n");
  if (Program.state_copies.empty())
    return absl::StrCat(Text, "  state copies: none, every update is in place\n");
  absl::StrAppend(&Text, "  state copies: ", Program.state_copies.size(), "\n");
  for (const runtime::StateCopy &Copy : Program.state_copies) {
    const runtime::StateBinding &State = Program.state[Program.values[Copy.to].index];
    absl::StrAppend(&Text, "    ", State.name, " (", bytes(State.spec.bytes()), "): ", Copy.reason, "\n");
  }
  return Text;
}

std::string functionReport(const PrecisionTable &Table) {
  return absl::StrCat(operations(Table), "\n", casts(Table), "\n", arguments(Table));
}

const ArgumentGroup *findRole(const PrecisionTable &Table, std::string_view Role) {
  for (const ArgumentGroup &Group : Table.arguments) {
    if (Group.role == Role)
      return &Group;
  }
  return nullptr;
}

std::string parameterText(const PrecisionTable &Table) {
  const ArgumentGroup *Parameters = findRole(Table, "parameter");
  if (Parameters == nullptr)
    return "parameters: none";
  return absl::StrCat("parameters: ", count(Parameters->elements), " in ", counted(Parameters->count, "tensor"), ", ",
                      bytes(Parameters->bytes));
}

} // namespace

std::string PrecisionReport(const CompileResult &Result) {
  const runtime::Program &Program = Result.program;
  const absl::StatusOr<PrecisionTable> Table = TabulatePrecision(Result.final_ir, Program.name);
  if (!Table.ok())
    return absl::StrCat("no report: ", Table.status().message(), "\n");
  std::string Text = absl::StrCat("precision report of @", Program.name, " on ", Program.device, "\n\n",
                                  functionReport(*Table), "\n", parameterText(*Table), "\n\n", memory(Program));
  if (!Result.remarks.empty())
    absl::StrAppend(&Text, "\nremarks\n  ", absl::StrJoin(Result.remarks, "\n  "), "\n");
  return Text;
}

std::string PrecisionSummary(const CompileResult &Result) {
  const runtime::Program &Program = Result.program;
  const absl::StatusOr<PrecisionTable> Table = TabulatePrecision(Result.final_ir, Program.name);
  if (!Table.ok())
    return absl::StrCat("no report: ", Table.status().message(), "\n");
  std::int64_t Low = 0;
  for (const PrecisionRow &Row : Table->rows) {
    Low += Row.inputs.find("f16") != std::string::npos || Row.outputs.find("f16") != std::string::npos;
  }
  std::int64_t Casts = 0;
  std::int64_t CastBytes = 0;
  for (const CastGroup &Group : Table->casts) {
    Casts += Group.count;
    CastBytes += Group.bytes;
  }
  return absl::StrCat("@", Program.name, " on ", Program.device, ": ", Low, " of ", Table->rows.size(),
                      " operations read or write a 16-bit type; ", counted(Casts, "cast"), ", ", bytes(CastBytes),
                      " a step\n", parameterText(*Table), "; state: ", bytes(Program.state_bytes()),
                      "; planned arena peak: ", bytes(Program.arena_bytes), "; ",
                      Program.state_copies.empty() ? "no state copies"
                                                   : counted(Program.state_copies.size(), "tensor") + " copied",
                      "\n");
}

std::string ModuleReport(const Module &Target) {
  std::string Text;
  for (const std::string &Function : FunctionNames(Target)) {
    const absl::StatusOr<PrecisionTable> Table = TabulatePrecision(Target, Function);
    if (!Table.ok())
      continue;
    absl::StrAppend(&Text, Text.empty() ? "" : "\n", "precision report of @", Function, "\n\n", functionReport(*Table),
                    "\n", parameterText(*Table), "\n");
  }
  return Text.empty() ? "the module has no function with a body\n" : Text;
}

} // namespace mpc::compiler
