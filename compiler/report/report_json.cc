// The precision report as JSON.
#include "compiler/report/fusion_table.h"
#include "compiler/report/gpu_resources.h"
#include "compiler/report/memory_table.h"
#include "compiler/report/message_table.h"
#include "compiler/report/precision_table.h"
#include "compiler/report/report.h"
#include "compiler/target/targets.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

namespace mpc::compiler {

using llvm::json::Array;
using llvm::json::Object;

static std::string print(llvm::json::Value value) {
  std::string text;
  llvm::raw_string_ostream(text) << llvm::formatv("{0:2}", value) << "\n";
  return text;
}

static Array operationsJson(const PrecisionTable &table) {
  Array list;
  std::int64_t ordinal = 0;
  for (const PrecisionRow &row : table.rows) {
    Object object{{"ordinal", ++ordinal},  {"op", row.op},
                  {"cell", row.path},      {"reads", row.inputs},
                  {"writes", row.outputs}, {"compute", row.compute},
                  {"why", row.reason},     {"direction", DirectionName(row.backward, row.update)},
                  {"bytes", row.bytes},    {"flops", row.flops}};
    if (!row.loop.empty()) {
      object["loop"] = row.loop;
      object["runs"] = row.runs;
    }
    list.push_back(std::move(object));
  }
  return list;
}

static Array regionRows(const FusionTable &table) {
  Array list;
  std::int64_t number = 0;
  for (const FusionRow &row : table.rows)
    list.push_back(Object{{"number", ++number},
                          {"operations", Array(row.operations)},
                          {"cells", Array(row.cells)},
                          {"cell", row.path},
                          {"bytes", row.bytes},
                          {"bytes_saved", row.bytes_saved},
                          {"left_out", Array(row.left_out)}});
  return list;
}

static Array messageRows(const MessageTable &table) {
  Array list;
  std::int64_t number = 0;
  for (const MessageRow &row : table.rows)
    list.push_back(Object{{"number", ++number},
                          {"processes", table.processes},
                          {"operations", Array(row.operations)},
                          {"bytes", row.bytes}});
  return list;
}

static Array castsJson(const PrecisionTable &table) {
  Array list;
  for (const CastGroup &group : table.casts.groups())
    list.push_back(Object{{"kind", CastKindName(group.kind)},
                          {"from", group.from},
                          {"to", group.to},
                          {"count", group.count},
                          {"bytes", group.bytes},
                          {"of", Array(group.where)}});
  return list;
}

static Array argumentsJson(const PrecisionTable &table) {
  Array list;
  for (const ArgumentGroup &group : table.arguments)
    list.push_back(Object{{"role", std::string(RoleName(group.role))},
                          {"tensors", group.count},
                          {"elements", group.elements},
                          {"bytes", group.bytes}});
  return list;
}

static Object functionJson(const PrecisionTable &table, const FusionTable &regions, const MessageTable &sent) {
  double flops = table.matrix_flops(), low = table.low_matrix_flops();
  return Object{
      {"function", table.function},
      {"operations", operationsJson(table)},
      {"regions", regionRows(regions)},
      {"messages", messageRows(sent)},
      {"casts", castsJson(table)},
      {"cast_count", table.casts.count()},
      {"cast_bytes", table.casts.bytes()},
      {"matrix_work", Object{{"flops", flops}, {"low_flops", low}, {"low_share", flops > 0 ? low / flops : 0}}},
      {"arguments", argumentsJson(table)}};
}

static Object peakJson(const MemoryTable &table) {
  Array live;
  for (const MemoryRow &row : table.rows)
    live.push_back(Object{{"use", StorageUseName(row.use)},
                          {"op", row.op},
                          {"cell", row.path},
                          {"type", row.type},
                          {"bytes", row.bytes},
                          {"first", static_cast<std::int64_t>(row.first)},
                          {"last", static_cast<std::int64_t>(row.last)}});
  return Object{{"instruction", static_cast<std::int64_t>(table.peak)},
                {"op", table.peak_op},
                {"cell", table.peak_path},
                {"bytes", table.peak_bytes},
                {"live", std::move(live)}};
}

static Object memoryJson(const CompileResult &result) {
  const runtime::Program &program = result.program;
  Array copies;
  for (const StateCopy &copy : StateCopies(program))
    copies.push_back(Object{{"state", copy.state}, {"bytes", copy.bytes}, {"reason", copy.reason}});
  Object memory{
      {"arena_bytes", static_cast<std::int64_t>(program.arena_bytes)},
      {"state_bytes", static_cast<std::int64_t>(program.state_bytes())},
      {"constant_bytes", static_cast<std::int64_t>(program.constant_bytes())},
      {"filled_constant_bytes", static_cast<std::int64_t>(program.constant_bytes() - program.constants.size())},
      {"planned_bytes", static_cast<std::int64_t>(program.planned_bytes())},
      {"state_copies", std::move(copies)}};
  if (absl::StatusOr<MemoryTable> table = TabulateMemory(program, result.final_ir); table.ok()) {
    memory["activation_bytes"] = table->activation_bytes;
    memory["peak"] = peakJson(*table);
  }
  return memory;
}

static Object resourcesJson(const GpuResources &table) {
  Array rows;
  for (const FusionResources &row : table.rows) {
    Object region{{"region", static_cast<std::int64_t>(row.region)},
                  {"architecture", row.architecture},
                  {"kernels", row.kernels},
                  {"instructions", row.instructions}};
    if (row.assembled) {
      region["registers"] = row.assembled->registers;
      region["spill_bytes"] = row.assembled->spill_bytes;
      region["stack_bytes"] = row.assembled->stack_bytes;
      region["shared_bytes"] = row.assembled->shared_bytes;
    }
    rows.push_back(std::move(region));
  }
  Object failures;
  for (const auto &[architecture, reason] : table.not_assembled)
    failures[architecture] = reason;
  return Object{{"regions", std::move(rows)}, {"no_ptxas", table.no_ptxas}, {"not_assembled", std::move(failures)}};
}

template <typename Value> static llvm::json::Value json(const Value &given) {
  if constexpr (std::is_same_v<Value, std::vector<std::string>>)
    return Array(given);
  else
    return given;
}
template <typename Value> static llvm::json::Value json(const std::optional<Value> &given) {
  return given ? llvm::json::Value(*given) : nullptr;
}
static llvm::json::Value json(const PrecisionMap &given) {
  Object slots;
  for (const auto &[slot, type] : given)
    slots[slot] = type;
  return slots;
}

/// The options that the Program was made with. Members are keyed by name, members of structures by their path.
static Object optionsJson(const CompileOptions &given) {
  Object result;
  visitOptions(given, [&](const OptionInfo &info, const auto &member) {
    if (info.kind != OptionKind::OfCompilation)
      result[info.name] = json(member);
  });
  return result;
}

std::string PrecisionReportJson(const CompileResult &result) {
  absl::StatusOr<PrecisionTable> table = TabulatePrecision(result.final_ir, result.program.name);
  if (!table.ok())
    return print(Object{{"error", std::string(table.status().message())}});
  absl::StatusOr<FusionTable> regions = TabulateFusion(result.final_ir, result.program.name);
  if (!regions.ok())
    return print(Object{{"error", std::string(regions.status().message())}});
  absl::StatusOr<MessageTable> sent = TabulateMessages(result.final_ir, result.program.name);
  if (!sent.ok())
    return print(Object{{"error", std::string(sent.status().message())}});
  Object report = functionJson(*table, *regions, *sent);
  report["device"] = result.program.device;
  report["options"] = optionsJson(result.options);
  if (generatesPtx(result.program.device)) {
    absl::StatusOr<GpuResources> gpu = TabulateGpuResources(result.final_ir, result.program.name, result.program.arch);
    if (!gpu.ok())
      return print(Object{{"error", std::string(gpu.status().message())}});
    report["generated_kernels"] = resourcesJson(*gpu);
  }
  report["memory"] = memoryJson(result);
  report["remarks"] = Array(result.remarks);
  return print(std::move(report));
}

std::string ModuleReportJson(const Module &target) {
  Array functions;
  for (const std::string &name : FunctionNames(target))
    if (absl::StatusOr<PrecisionTable> table = TabulatePrecision(target, name); table.ok())
      functions.push_back(functionJson(*table, *TabulateFusion(target, name), *TabulateMessages(target, name)));
  return print(std::move(functions));
}

} // namespace mpc::compiler
