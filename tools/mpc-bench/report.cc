#include "tools/mpc-bench/report.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/mpc-bench/peer.h"

namespace mpc::tools {
namespace {

std::string Row(const std::string& run, const std::string& name, const Percentiles& seconds) {
  return absl::StrFormat("%-6s %-18s %10.3f %10.3f %10.3f\n", run, name, 1e3 * seconds.median, 1e3 * seconds.p5,
                         1e3 * seconds.p95);
}

std::string Mebibytes(std::size_t bytes) { return absl::StrFormat("%.1f MiB", static_cast<double>(bytes) / (1 << 20)); }

/// Samples a second, the slowest and the fastest steps by the percentiles of their times.
Percentiles SamplesPerSecond(const BenchOptions& row, const Percentiles& seconds) {
  const auto samples = static_cast<double>(row.batch);
  return {.p5 = samples / seconds.p95, .median = samples / seconds.median, .p95 = samples / seconds.p5};
}

/// "mpc: 24581 samples/s (p5 23900, p95 25010); first step after 0.210 s, in later runs 0.060 s: trace 0.010, ...".
std::string Rates(const BenchOptions& row, const Contestant& contestant) {
  const Percentiles rate = SamplesPerSecond(row, PercentilesOf(AllSteps(contestant)));
  std::string text =
      absl::StrFormat("%s: %.6g samples/s (p5 %.6g, p95 %.6g)", contestant.name, rate.median, rate.p5, rate.p95);
  const FirstStep first = FirstStepOf(contestant);
  if (first.cold > 0) absl::StrAppendFormat(&text, "; first step after %.3f s", first.cold);
  if (first.cached > 0) absl::StrAppendFormat(&text, ", in later runs %.3f s", first.cached);
  std::string phases;
  for (const auto& [phase, seconds] : contestant.runs.front().compile_seconds) {
    absl::StrAppendFormat(&phases, "%s %s %.3f", phases.empty() ? ":" : ",", phase, seconds);
  }
  return text + phases + "\n";
}

/// "mpc: planned 3.2 MiB; resident memory grew by 5.0 MiB in the steps, 40.1 MiB with compiling"; empty: not known.
std::string Memory(const BenchOptions& row, const Contestant& contestant) {
  const RunResult& last = contestant.runs.back();
  std::string text;
  if (last.peak_bytes > 0) {
    const char* const what = row.device == "cuda" ? "peak" : "planned";
    absl::StrAppend(&text, what, " ", Mebibytes(last.peak_bytes));
  }
  if (last.resident.has_value()) {
    absl::StrAppend(&text, text.empty() ? "" : "; ", "resident memory grew by ", Mebibytes(last.resident->steps),
                    " in the steps, ", Mebibytes(last.resident->process), " with compiling");
  }
  return text.empty() ? "" : absl::StrCat(contestant.name, ": ", text, "\n");
}

std::string Ratio(const Contestant& mpc, const Contestant& peer) {
  const std::vector<double> ratios = RatiosByRun(mpc, peer);
  const auto [lowest, highest] = std::minmax_element(ratios.begin(), ratios.end());
  return absl::StrFormat("ratio %s / mpc: %.2f (median of the runs' ratios, %.2f .. %.2f; above 1 mpc is faster)\n",
                         peer.name, PercentilesOf(ratios).median, *lowest, *highest);
}

/// The title says what was measured, and where: "lenet5, batch 32, f32, 2 threads, 5 runs of 200 steps after 50 to warm
/// up; <processor>".
std::string Title(const BenchOptions& row) {
  const std::string device = row.device == "cpu" ? "" : absl::StrCat("device ", row.device, ", ");
  const std::string limit = row.seconds > 0 && row.device == "cpu" ? absl::StrCat(" or ", row.seconds, " s") : "";
  const std::string ranks = row.ranks == 1 ? "" : absl::StrCat(row.ranks, " ranks of ");
  return absl::StrCat(NetworkName(row), ", batch ", row.batch, ", ", ModeName(row), ", ", device, ranks, row.threads,
                      row.threads == 1 ? " thread, " : " threads, ",
                      row.busy == 0 ? "" : absl::StrCat("beside ", row.busy, " busy processes, "), row.runs,
                      row.runs == 1 ? " run" : " runs", " of ", row.steps, " steps", limit, " after ", row.warmup,
                      " to warm up; ", ProcessorName(), ", ", std::thread::hardware_concurrency(), " processors");
}

/// "what ranks send each other: 0.24 MiB a rank, alone 0.031 ms a step (p5 ..)", and what a step has beside that.
std::string Ranks(const BenchOptions& row, const std::vector<Contestant>& contestants) {
  if (row.ranks == 1) return "";
  std::vector<double> all;
  for (const RunResult& run : contestants[0].runs) {
    all.insert(all.end(), run.reduction_seconds.begin(), run.reduction_seconds.end());
  }
  if (all.empty()) return "";
  const Percentiles seconds = PercentilesOf(all);
  std::string text = absl::StrFormat(
      "what ranks send each other: %s a rank, alone %.3f ms a step (p5 %.3f, p95 %.3f)\n",
      Mebibytes(contestants[0].runs.back().reduction_bytes), 1e3 * seconds.median, 1e3 * seconds.p5, 1e3 * seconds.p95);
  const std::vector<double> overheads = OverheadsByRun(row, contestants);
  if (overheads.empty()) return text;
  const auto [lowest, highest] = std::minmax_element(overheads.begin(), overheads.end());
  return text + absl::StrFormat("a step of the ranks / (a rank's step alone + that): %.3f (%.3f .. %.3f)\n",
                                PercentilesOf(overheads).median, *lowest, *highest);
}

std::string Losses(const Contestant& mpc, const Contestant& peer) {
  const std::optional<LossDistance> distance = IsTorch(peer.name) ? LossDifference(mpc, peer) : std::nullopt;
  if (!distance.has_value()) return "";
  return absl::StrFormat("losses of mpc and %s are at most %.3g apart over %d steps\n", peer.name, distance->largest,
                         distance->steps);
}

}  // namespace

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  std::string line;
  while (std::getline(file, line)) {
    const std::size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown processor";
}

std::string ModeName(const BenchOptions& row) {
  std::string mode = "f32";
  if (row.amp_level != "O0") mode = absl::StrCat(row.amp_level, " ", row.dtype.empty() ? "f16" : row.dtype);
  if (!row.loss_scale.empty()) absl::StrAppend(&mode, ", loss scale ", row.loss_scale);
  return mode;
}

std::string NetworkName(const BenchOptions& row) {
  std::string name = row.model;
  const char* separator = " with ";
  for (const SizeFlag& flag : SizeFlags()) {
    if (row.sizes.*flag.size == 0) continue;
    absl::StrAppend(&name, separator, flag.name, " ", row.sizes.*flag.size);
    separator = ", ";
  }
  return name;
}

std::vector<double> AllSteps(const Contestant& contestant) {
  std::vector<double> samples;
  for (const RunResult& run : contestant.runs) {
    samples.insert(samples.end(), run.step_seconds.begin(), run.step_seconds.end());
  }
  return samples;
}

std::vector<double> RatiosByRun(const Contestant& mpc, const Contestant& peer) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < std::min(mpc.runs.size(), peer.runs.size()); ++i) {
    ratios.push_back(PercentilesOf(peer.runs[i].step_seconds).median / PercentilesOf(mpc.runs[i].step_seconds).median);
  }
  return ratios;
}

std::vector<double> OverheadsByRun(const BenchOptions& row, const std::vector<Contestant>& contestants) {
  std::vector<double> overheads;
  if (row.ranks == 1) return overheads;
  const auto alone = std::find_if(contestants.begin(), contestants.end(), [](const Contestant& contestant) {
    return contestant.name == RankPeerNames().front();
  });
  if (alone == contestants.end()) return overheads;
  for (std::size_t run = 0; run < std::min(alone->runs.size(), contestants[0].runs.size()); ++run) {
    const RunResult& together = contestants[0].runs[run];
    if (together.reduction_seconds.empty()) return {};
    overheads.push_back(
        PercentilesOf(together.step_seconds).median /
        (PercentilesOf(alone->runs[run].step_seconds).median + PercentilesOf(together.reduction_seconds).median));
  }
  return overheads;
}

std::optional<LossDistance> LossDifference(const Contestant& mpc, const Contestant& peer) {
  const RunResult& own = mpc.runs.back();
  const RunResult& other = peer.runs.back();
  const std::size_t first = std::max(own.steps_before, other.steps_before);
  const std::size_t end = std::min(own.steps_before + own.losses.size(), other.steps_before + other.losses.size());
  if (first >= end) return std::nullopt;
  LossDistance distance{.largest = 0, .steps = end - first};
  for (std::size_t step = first; step < end; ++step) {
    const double apart = std::abs(own.losses[step - own.steps_before] - other.losses[step - other.steps_before]);
    distance.largest = std::max(distance.largest, apart);
  }
  return distance;
}

FirstStep FirstStepOf(const Contestant& contestant) {
  FirstStep first = {.cold = contestant.runs.front().first_step_seconds};
  std::vector<double> later;
  for (std::size_t i = 1; i < contestant.runs.size(); ++i) later.push_back(contestant.runs[i].first_step_seconds);
  if (!later.empty()) first.cached = PercentilesOf(later).median;
  return first;
}

std::string FormatTable(const BenchOptions& row, const std::vector<Contestant>& contestants) {
  std::string text = Title(row) + "\n" + RanksRemark(row);
  for (const Contestant& contestant : contestants) {
    const RunResult& last = contestant.runs.back();
    absl::StrAppendFormat(&text, "%s: %s, loss of the first step %.5f, of the last %.5f%s%s\n", contestant.name,
                          last.version, last.first_loss, last.final_loss, last.settings.empty() ? "" : "; ",
                          last.settings);
  }
  absl::StrAppendFormat(&text, "%-6s %-18s %10s %10s %10s   ms a step\n", "run", "", "median", "p5", "p95");
  for (std::size_t run = 0; run < contestants[0].runs.size(); ++run) {
    for (const Contestant& contestant : contestants) {
      text += Row(absl::StrCat(run + 1), contestant.name, PercentilesOf(contestant.runs[run].step_seconds));
    }
  }
  for (const Contestant& contestant : contestants) {
    text += Row("all", contestant.name, PercentilesOf(AllSteps(contestant)));
  }
  for (const Contestant& contestant : contestants) text += Rates(row, contestant);
  for (const Contestant& contestant : contestants) text += Memory(row, contestant);
  for (std::size_t i = 1; i < contestants.size(); ++i) text += Ratio(contestants[0], contestants[i]);
  for (std::size_t i = 1; i < contestants.size(); ++i) text += Losses(contestants[0], contestants[i]);
  return text + Ranks(row, contestants);
}

}  // namespace mpc::tools
