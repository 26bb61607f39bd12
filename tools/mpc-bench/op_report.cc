#include "tools/mpc-bench/op_report.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "runtime/cpu/cpu_features.h"
#include "tools/mpc-bench/machine_limits.h"
#include "tools/mpc-bench/report.h"

namespace mpc::tools {
namespace {

constexpr double kGiga = 1e9;
constexpr double kMebi = 1 << 20;

std::string FormatLimits(const OpOptions& options, const MachineLimits& limits) {
  std::string text = absl::StrFormat(
      "copy: %.1f GB/s (p5 %.1f, p95 %.1f), read and written, %s, %.0f MiB in turn; last-level cache %.0f MiB\n",
      limits.copy_bytes.median / kGiga, limits.copy_bytes.p5 / kGiga, limits.copy_bytes.p95 / kGiga, limits.copy_form,
      static_cast<double>(limits.copy_footprint) / kMebi, static_cast<double>(runtime::LastLevelCacheBytes()) / kMebi);
  if (limits.gemm.median > 0) {
    absl::StrAppendFormat(&text,
                          "%s: %.1f GFLOP/s of multiply-adds on registers (%s), %.1f of a 1024x1024x1024 matmul\n",
                          DTypeName(options.dtype), limits.multiply_adds.median / kGiga,
                          limits.multiply_add_instructions, limits.gemm.median / kGiga);
  }
  return text;
}

std::string NameOf(const OpResult& result) {
  return result.kernel_choice.empty() ? result.name : absl::StrCat(result.name, ": ", result.kernel_choice);
}

}  // namespace

std::string FormatOpTable(const OpOptions& options, const OpTable& table) {
  std::string text = absl::StrCat(std::string(DTypeName(options.dtype)), ", ", options.threads,
                                  options.threads == 1 ? " thread" : " threads",
                                  options.fusion ? ", fused regions; " : "; ", ProcessorName(), "\n");
  text += FormatLimits(options, table.limits);
  absl::StrAppendFormat(&text, "%-22s %-20s %10s %10s %10s %8s %9s %7s %7s  %s\n", "op", "shape", "ms", "p5", "p95",
                        "GB/s", "GFLOP/s", "of it", "limit", "instructions, sets of tensors");
  for (const OpResult& result : table.results) {
    const double seconds = result.seconds.median;
    absl::StrAppendFormat(&text, "%-22s %-20s %10.4f %10.4f %10.4f %8.1f %9s %6.1f%% %7s  %d, %d (%.0f MiB)\n",
                          NameOf(result), ShapeToString(result.shape), 1e3 * seconds, 1e3 * result.seconds.p5,
                          1e3 * result.seconds.p95, result.bytes / seconds / kGiga,
                          result.flops > 0 ? absl::StrFormat("%.1f", result.flops / seconds / kGiga) : "-",
                          100 * result.fraction.median, result.memory_bound ? "copy" : "compute", result.instructions,
                          result.sets, static_cast<double>(result.footprint) / kMebi);
  }
  return text;
}

Json OpTableToJson(const OpOptions& options, const OpTable& table) {
  const MachineLimits& limits = table.limits;
  Json json = {{"threads", options.threads},
               {"fusion", options.fusion},
               {"processor", ProcessorName()},
               {"limits",
                {{"copy_bytes_per_second", ToJson(limits.copy_bytes)},
                 {"copy_form", std::string(limits.copy_form)},
                 {"copy_footprint_bytes", limits.copy_footprint},
                 {"last_level_cache_bytes", runtime::LastLevelCacheBytes()}}},
               {"rows", Json::array()}};
  if (limits.gemm.median > 0) {
    json["limits"]["multiply_add_flops_per_second"] = ToJson(limits.multiply_adds);
    json["limits"]["multiply_add_instructions"] = std::string(limits.multiply_add_instructions);
    json["limits"]["matmul_flops_per_second"] = ToJson(limits.gemm);
  }
  for (const OpResult& result : table.results) {
    json["rows"].push_back(
        {{"op", result.name},
         {"choice", result.kernel_choice.empty() ? Json() : Json(result.kernel_choice)},
         {"shape", result.shape},
         {"dtype", std::string(DTypeName(options.dtype))},
         {"seconds", ToJson(result.seconds)},
         {"bytes_per_second", result.bytes / result.seconds.median},
         {"flops_per_second", result.flops > 0 ? Json(result.flops / result.seconds.median) : Json()},
         {"limit", result.memory_bound ? "copy" : "compute"},
         {"fraction", ToJson(result.fraction)},
         {"instructions", result.instructions},
         {"sets", result.sets},
         {"footprint_bytes", result.footprint}});
  }
  return json;
}

}  // namespace mpc::tools
