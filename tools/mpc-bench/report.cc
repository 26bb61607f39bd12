#include "tools/mpc-bench/report.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace mpc::tools {
namespace {

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string PrecisionName(const BenchOptions& options) {
  if (options.amp_level == "O0") return "O0 (f32)";
  return absl::StrCat(options.amp_level, " (", options.dtype.empty() ? "f16" : options.dtype, ")");
}

std::vector<double> AllSteps(const Contestant& contestant) {
  std::vector<double> samples;
  for (const RunResult& run : contestant.runs) {
    samples.insert(samples.end(), run.step_seconds.begin(), run.step_seconds.end());
  }
  return samples;
}

std::string Row(const std::string& run, const std::string& name, const Percentiles& seconds) {
  return absl::StrFormat("%-6s %-6s %10.3f %10.3f %10.3f\n", run, name, 1e3 * seconds.median, 1e3 * seconds.p5,
                         1e3 * seconds.p95);
}

/// Samples a second, the slowest and the fastest steps by the percentiles of their times.
Percentiles SamplesPerSecond(const BenchOptions& options, const Percentiles& seconds) {
  const auto samples = static_cast<double>(options.batch);
  return {.p5 = samples / seconds.p95, .median = samples / seconds.median, .p95 = samples / seconds.p5};
}

/// "mpc: 24581 samples/s (p5 23900, p95 25010), peak 3.2 MiB; 0.21 s to the first step: trace 0.01, passes 0.15".
std::string Rates(const BenchOptions& options, const Contestant& contestant) {
  const Percentiles rate = SamplesPerSecond(options, PercentilesOf(AllSteps(contestant)));
  const RunResult& last = contestant.runs.back();
  std::string text =
      absl::StrFormat("%s: %.6g samples/s (p5 %.6g, p95 %.6g)", contestant.name, rate.median, rate.p5, rate.p95);
  if (last.peak_bytes > 0) {
    absl::StrAppendFormat(&text, ", peak %.1f MiB", static_cast<double>(last.peak_bytes) / (1 << 20));
  }
  double total = 0;
  std::string phases;
  for (const auto& [phase, seconds] : last.compile_seconds) {
    total += seconds;
    absl::StrAppendFormat(&phases, "%s %s %.3f", phases.empty() ? ":" : ",", phase, seconds);
  }
  if (total > 0) absl::StrAppendFormat(&text, "; %.3f s to the first step%s", total, phases);
  return text + "\n";
}

Json ToJson(const Percentiles& seconds) {
  return {{"median", seconds.median}, {"p5", seconds.p5}, {"p95", seconds.p95}};
}

}  // namespace

std::vector<double> RatiosByRun(const Contestant& mpc, const Contestant& peer) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(mpc.runs.size(), peer.runs.size()); ++i) {
    ratios.push_back(PercentilesOf(peer.runs[i].step_seconds).median / PercentilesOf(mpc.runs[i].step_seconds).median);
  }
  return ratios;
}

std::string Title(const BenchOptions& options) {
  std::string sizes;
  if (options.image_size > 0) absl::StrAppend(&sizes, " of ", options.image_size, "x", options.image_size, " pixels");
  if (options.tokens > 0) absl::StrAppend(&sizes, " of ", options.tokens, " tokens");
  const std::string device = options.device == "cpu" ? "" : absl::StrCat("device ", options.device, ", ");
  return absl::StrCat(options.model, ", batch ", options.batch, sizes, ", ", PrecisionName(options), ", ", device,
                      options.threads, options.threads == 1 ? " thread, " : " threads, ", options.runs,
                      options.runs == 1 ? " run" : " runs", " of ", options.steps, " steps after ", options.warmup,
                      " to warm up; ", ProcessorName(), ", ", std::thread::hardware_concurrency(), " processors");
}

std::string FormatTable(const BenchOptions& options, const std::vector<Contestant>& contestants) {
  std::string text = Title(options) + "\n";
  for (const Contestant& contestant : contestants) {
    const RunResult& last = contestant.runs.back();
    absl::StrAppendFormat(&text, "%s: %s, loss of the last step %.4f%s%s\n", contestant.name, last.version,
                          last.final_loss, last.settings.empty() ? "" : "; ", last.settings);
  }
  absl::StrAppendFormat(&text, "%-6s %-6s %10s %10s %10s   ms a step\n", "run", "", "median", "p5", "p95");
  for (std::size_t run = 0; run < contestants[0].runs.size(); ++run) {
    for (const Contestant& contestant : contestants) {
      text += Row(absl::StrCat(run + 1), contestant.name, PercentilesOf(contestant.runs[run].step_seconds));
    }
  }
  for (const Contestant& contestant : contestants) {
    text += Row("all", contestant.name, PercentilesOf(AllSteps(contestant)));
  }
  for (const Contestant& contestant : contestants) text += Rates(options, contestant);
  if (contestants.size() == 2) {
    const std::vector<double> ratios = RatiosByRun(contestants[0], contestants[1]);
    const auto [lowest, highest] = std::minmax_element(ratios.begin(), ratios.end());
    absl::StrAppendFormat(&text,
                          "ratio %s / mpc: %.2f (median of the runs' ratios, %.2f .. %.2f; above 1 mpc is faster)\n",
                          contestants[1].name, PercentilesOf(ratios).median, *lowest, *highest);
  }
  return text;
}

Json TableToJson(const BenchOptions& options, const std::vector<Contestant>& contestants) {
  Json json;
  json["title"] = Title(options);
  json["model"] = options.model;
  json["batch"] = options.batch;
  json["precision"] = PrecisionName(options);
  json["threads"] = options.threads;
  json["warmup"] = options.warmup;
  json["steps"] = options.steps;
  json["device"] = options.device;
  json["processor"] = ProcessorName();
  for (const Contestant& contestant : contestants) {
    Json& entry = json["contestants"][contestant.name];
    entry["version"] = contestant.runs.back().version;
    entry["settings"] = contestant.runs.back().settings;
    const Percentiles seconds = PercentilesOf(AllSteps(contestant));
    entry["step_seconds"] = ToJson(seconds);
    entry["samples_per_second"] = ToJson(SamplesPerSecond(options, seconds));
    entry["peak_bytes"] = contestant.runs.back().peak_bytes;
    for (const auto& [phase, spent] : contestant.runs.back().compile_seconds) {
      entry["compile_seconds"][phase] = spent;
    }
    entry["runs"] = Json::array();
    for (const RunResult& run : contestant.runs) entry["runs"].push_back(ToJson(PercentilesOf(run.step_seconds)));
  }
  if (contestants.size() == 2) {
    const std::vector<double> ratios = RatiosByRun(contestants[0], contestants[1]);
    json["ratios"] = ratios;
    json["ratio"] = PercentilesOf(ratios).median;
  }
  return json;
}

}  // namespace mpc::tools
