// The precision report as JSON.
#include "compiler/report/fusion_table.h"
#include "compiler/report/gpu_resources.h"
#include "compiler/report/memory_table.h"
#include "compiler/report/precision_table.h"
#include "compiler/report/report.h"
#include "compiler/target/targets.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace mpc::compiler {

using llvm::json::Array;
using llvm::json::Object;

static std::string print(llvm::json::Value Value) {
  std::string Text;
  llvm::raw_string_ostream(Text) << llvm::formatv("{0:2}", Value) << "\n";
  return Text;
}

static Array operations(const PrecisionTable &Table) {
  Array List;
  std::int64_t Ordinal = 0;
  for (const PrecisionRow &Row : Table.rows)
    List.push_back(Object{{"ordinal", ++Ordinal},
                          {"op", Row.op},
                          {"cell", Row.path},
                          {"reads", Row.inputs},
                          {"writes", Row.outputs},
                          {"compute", Row.compute},
                          {"why", Row.reason},
                          {"direction", Row.update     ? "update"
                                        : Row.backward ? "backward"
                                                       : "forward"},
                          {"bytes", Row.bytes},
                          {"flops", Row.flops}});
  return List;
}

static Array regions(const FusionTable &Table) {
  Array List;
  std::int64_t Number = 0;
  for (const FusionRow &Row : Table.rows)
    List.push_back(Object{{"number", ++Number},
                          {"operations", Array(Row.operations)},
                          {"cells", Array(Row.cells)},
                          {"cell", Row.path},
                          {"bytes", Row.bytes},
                          {"bytes_saved", Row.bytes_saved},
                          {"left_out", Array(Row.left_out)}});
  return List;
}

static Array casts(const PrecisionTable &Table) {
  Array List;
  for (const CastGroup &Group : Table.casts.groups())
    List.push_back(Object{{"kind", CastKindName(Group.kind)},
                          {"from", Group.from},
                          {"to", Group.to},
                          {"count", Group.count},
                          {"bytes", Group.bytes},
                          {"of", Array(Group.where)}});
  return List;
}

static Array arguments(const PrecisionTable &Table) {
  Array List;
  for (const ArgumentGroup &Group : Table.arguments)
    List.push_back(Object{{"role", std::string(RoleName(Group.role))},
                          {"tensors", Group.count},
                          {"elements", Group.elements},
                          {"bytes", Group.bytes}});
  return List;
}

static Object functionReport(const PrecisionTable &Table, const FusionTable &Regions) {
  double Flops = Table.matrix_flops(), Low = Table.low_matrix_flops();
  return Object{
      {"function", Table.function},
      {"operations", operations(Table)},
      {"regions", regions(Regions)},
      {"casts", casts(Table)},
      {"cast_count", Table.casts.count()},
      {"cast_bytes", Table.casts.bytes()},
      {"matrix_work", Object{{"flops", Flops}, {"low_flops", Low}, {"low_share", Flops > 0 ? Low / Flops : 0}}},
      {"arguments", arguments(Table)}};
}

static Object peak(const MemoryTable &Table) {
  Array Live;
  for (const MemoryRow &Row : Table.rows)
    Live.push_back(Object{{"use", StorageUseName(Row.use)},
                          {"op", Row.op},
                          {"cell", Row.path},
                          {"type", Row.type},
                          {"bytes", Row.bytes},
                          {"first", static_cast<std::int64_t>(Row.first)},
                          {"last", static_cast<std::int64_t>(Row.last)}});
  return Object{{"instruction", static_cast<std::int64_t>(Table.peak)},
                {"op", Table.peak_op},
                {"cell", Table.peak_path},
                {"bytes", Table.peak_bytes},
                {"live", std::move(Live)}};
}

static Object memory(const CompileResult &Result) {
  const runtime::Program &Program = Result.program;
  Array Copies;
  for (const StateCopy &Copy : StateCopies(Program))
    Copies.push_back(Object{{"state", Copy.state}, {"bytes", Copy.bytes}, {"reason", Copy.reason}});
  Object Memory{
      {"arena_bytes", static_cast<std::int64_t>(Program.arena_bytes)},
      {"state_bytes", static_cast<std::int64_t>(Program.state_bytes())},
      {"constant_bytes", static_cast<std::int64_t>(Program.constant_bytes())},
      {"filled_constant_bytes", static_cast<std::int64_t>(Program.constant_bytes() - Program.constants.size())},
      {"planned_bytes", static_cast<std::int64_t>(Program.planned_bytes())},
      {"state_copies", std::move(Copies)}};
  if (absl::StatusOr<MemoryTable> Table = TabulateMemory(Program, Result.final_ir); Table.ok()) {
    Memory["activation_bytes"] = Table->activation_bytes;
    Memory["peak"] = peak(*Table);
  }
  return Memory;
}

static Object resources(const GpuResources &Table) {
  Array Rows;
  for (const RegionResources &Row : Table.rows) {
    Object Region{{"region", static_cast<std::int64_t>(Row.region)},
                  {"architecture", Row.architecture},
                  {"kernels", Row.kernels},
                  {"instructions", Row.instructions}};
    if (Row.assembled) {
      Region["registers"] = Row.assembled->registers;
      Region["spill_bytes"] = Row.assembled->spill_bytes;
      Region["stack_bytes"] = Row.assembled->stack_bytes;
      Region["shared_bytes"] = Row.assembled->shared_bytes;
    }
    Rows.push_back(std::move(Region));
  }
  Object Failures;
  for (const auto &[Architecture, Reason] : Table.not_assembled)
    Failures[Architecture] = Reason;
  return Object{{"regions", std::move(Rows)}, {"no_ptxas", Table.no_ptxas}, {"not_assembled", std::move(Failures)}};
}

template <typename Value> static llvm::json::Value json(const Value &Given) {
  if constexpr (std::is_same_v<Value, std::vector<std::string>>)
    return Array(Given);
  else
    return Given;
}
template <typename Value> static llvm::json::Value json(const std::optional<Value> &Given) {
  return Given ? llvm::json::Value(*Given) : nullptr;
}
static llvm::json::Value json(const PrecisionMap &Given) {
  Object Slots;
  for (const auto &[Slot, Type] : Given)
    Slots[Slot] = Type;
  return Slots;
}

/// The options that the Program was made with. Members are keyed by name, members of structures by their path.
static Object options(const CompileOptions &Given) {
  Object Result;
  visitOptions(Given, [&](const OptionInfo &Info, const auto &Member) {
    if (Info.kind != OptionKind::kOfCompilation)
      Result[Info.name] = json(Member);
  });
  return Result;
}

std::string PrecisionReportJson(const CompileResult &Result) {
  absl::StatusOr<PrecisionTable> Table = TabulatePrecision(Result.final_ir, Result.program.name);
  if (!Table.ok())
    return print(Object{{"error", std::string(Table.status().message())}});
  absl::StatusOr<FusionTable> Regions = TabulateFusion(Result.final_ir, Result.program.name);
  if (!Regions.ok())
    return print(Object{{"error", std::string(Regions.status().message())}});
  Object Report = functionReport(*Table, *Regions);
  Report["device"] = Result.program.device;
  Report["options"] = options(Result.options);
  if (generatesPtx(Result.program.device)) {
    absl::StatusOr<GpuResources> Gpu = TabulateGpuResources(Result.final_ir, Result.program.name, Result.program.arch);
    if (!Gpu.ok())
      return print(Object{{"error", std::string(Gpu.status().message())}});
    Report["generated_kernels"] = resources(*Gpu);
  }
  Report["memory"] = memory(Result);
  Report["remarks"] = Array(Result.remarks);
  return print(std::move(Report));
}

std::string ModuleReportJson(const Module &Target) {
  Array Functions;
  for (const std::string &Name : FunctionNames(Target))
    if (absl::StatusOr<PrecisionTable> Table = TabulatePrecision(Target, Name); Table.ok())
      Functions.push_back(functionReport(*Table, *TabulateFusion(Target, Name)));
  return print(std::move(Functions));
}

} // namespace mpc::compiler
