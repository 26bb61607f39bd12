#include "tools/mpc-bench/data_report.h"

#include <algorithm>
#include <thread>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "tools/mpc-bench/report.h"
#include "tools/support/percentiles.h"

namespace mpc::tools {
namespace {

Json ToJson(const Reader& reader) {
  Json json = ToJson(PercentilesOf(reader.rates));
  json["name"] = reader.name;
  json["version"] = reader.version;
  json["settings"] = reader.settings;
  json["runs"] = reader.rates;
  return json;
}

/// mpc's rate over the peer's in each round.
std::vector<double> RatiosOf(const DataTable& table, const Reader& peer) {
  std::vector<double> ratios;
  for (std::size_t run = 0; run < peer.rates.size(); ++run) {
    ratios.push_back(table.readers[0].rates[run] / peer.rates[run]);
  }
  return ratios;
}

/// The peer with the highest median; 0: there is none.
std::size_t BestPeer(const DataTable& table) {
  std::size_t best = 0;
  double highest = 0;
  for (std::size_t peer = 1; peer < table.readers.size(); ++peer) {
    const double median = PercentilesOf(table.readers[peer].rates).median;
    if (median <= highest) continue;
    best = peer;
    highest = median;
  }
  return best;
}

}  // namespace

std::string FormatDataTable(const DataOptions& options, const DataTable& table) {
  std::string text = absl::StrFormat(
      "%d JPEG pictures of 500 x 375 (%.0f KiB each) to 224 x 224 in f32, batch %d, %d %s of %d batches after %d to "
      "warm "
      "up; %s, %d processors\n",
      table.pictures, table.bytes / 1024, options.batch, options.runs, options.runs == 1 ? "run" : "runs",
      options.steps, options.warmup, ProcessorName(), std::thread::hardware_concurrency());
  for (const Reader& reader : table.readers) {
    absl::StrAppend(&text, reader.name, ": ", reader.version, ", ", reader.settings, "\n");
  }
  if (table.difference.has_value()) {
    absl::StrAppendFormat(&text, "pixels of %d pictures: at most %.3f levels apart, %.5f in the mean\n",
                          table.difference->pictures, table.difference->largest, table.difference->mean);
  }
  absl::StrAppendFormat(&text, "%-24s %10s %10s %10s   pictures a second\n", "", "median", "p5", "p95");
  for (const Reader& reader : table.readers) {
    const Percentiles rate = PercentilesOf(reader.rates);
    absl::StrAppendFormat(&text, "%-24s %10.1f %10.1f %10.1f\n", reader.name, rate.median, rate.p5, rate.p95);
  }
  const std::size_t best = BestPeer(table);
  if (best == 0) return text;
  const std::vector<double> ratios = RatiosOf(table, table.readers[best]);
  const auto [lowest, highest] = std::minmax_element(ratios.begin(), ratios.end());
  absl::StrAppendFormat(&text,
                        "ratio mpc / %s: %.2f (median of the runs' ratios, %.2f .. %.2f; above 1 mpc is faster)\n",
                        table.readers[best].name, PercentilesOf(ratios).median, *lowest, *highest);
  return text;
}

Json DataTableToJson(const DataOptions& options, const DataTable& table) {
  Json json = {{"pictures", table.pictures},
               {"bytes", table.bytes},
               {"batch", options.batch},
               {"processor", ProcessorName()},
               {"rows", Json::array()}};
  if (table.difference.has_value()) {
    json["pixels"] = {{"pictures", table.difference->pictures},
                      {"largest", table.difference->largest},
                      {"mean", table.difference->mean}};
  }
  const Json mpc = ToJson(table.readers[0]);
  if (table.readers.size() == 1) json["rows"].push_back({{"mpc", mpc}});
  const std::size_t best = BestPeer(table);
  for (std::size_t peer = 1; peer < table.readers.size(); ++peer) {
    json["rows"].push_back({{"mpc", mpc},
                            {"peer", ToJson(table.readers[peer])},
                            {"best", peer == best},
                            {"ratio", ToJson(PercentilesOf(RatiosOf(table, table.readers[peer])))}});
  }
  return json;
}

}  // namespace mpc::tools
