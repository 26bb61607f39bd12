#include "tools/mpc-bench/data_peer.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tools/mpc-bench/peer.h"
#include "tools/mpc-bench/subprocess.h"
#include "tools/support/json_file.h"

namespace mpc::tools {
namespace {

constexpr char kScript[] = "torchvision_data.py";

/// The object that the script prints, which has a number for each of `numbers`. Errors: those of running it; another
/// text, quoted.
absl::StatusOr<Json> RunScript(const DataOptions& options, const std::string& folder,
                               const std::vector<std::string>& flags, const std::vector<const char*>& numbers) {
  absl::StatusOr<std::string> script = PeerScript(kScript, options.peer_script);
  if (!script.ok()) return script.status();
  std::vector<std::string> command = {options.python, *std::move(script), absl::StrCat("--pictures=", folder)};
  command.insert(command.end(), flags.begin(), flags.end());
  const absl::StatusOr<std::string> output = RunAndCapture(command);
  if (!output.ok()) return output.status();
  Json json = Json::parse(*output, nullptr, /*allow_exceptions=*/false);
  bool whole = json.is_object();
  for (const char* number : numbers) whole = whole && json.contains(number) && json[number].is_number();
  if (!whole) {
    return absl::InvalidArgumentError(
        absl::StrCat("torchvision's script printed no result but '", output->substr(0, 200), "'"));
  }
  return json;
}

std::string TextIn(const Json& json, const char* key) {
  return json.contains(key) && json[key].is_string() ? json[key].get<std::string>() : std::string();
}

}  // namespace

absl::Status CheckTorchvision(const DataOptions& options) {
  if (absl::Status status = PeerScript(kScript, options.peer_script).status(); !status.ok()) return status;
  return CheckModules(options.python, "torch, torchvision, PIL", "torchvision");
}

absl::StatusOr<PeerReading> MeasureTorchvision(const DataOptions& options, const std::string& folder,
                                               std::int64_t workers) {
  const absl::StatusOr<Json> json =
      RunScript(options, folder,
                {absl::StrCat("--batch=", options.batch), absl::StrCat("--threads=", options.threads),
                 absl::StrCat("--warmup=", options.warmup), absl::StrCat("--steps=", options.steps),
                 absl::StrCat("--workers=", workers)},
                {"pictures_per_second"});
  if (!json.ok()) return json.status();
  return PeerReading{.rate = (*json)["pictures_per_second"].get<double>(),
                     .version = TextIn(*json, "version"),
                     .settings = TextIn(*json, "settings")};
}

absl::StatusOr<PixelDifference> ComparePixels(const DataOptions& options, const std::string& folder,
                                              const std::string& pixels) {
  const absl::StatusOr<Json> json =
      RunScript(options, folder, {absl::StrCat("--compare=", pixels)}, {"pictures", "largest", "mean"});
  if (!json.ok()) return json.status();
  return PixelDifference{.pictures = (*json)["pictures"].get<std::int64_t>(),
                         .largest = (*json)["largest"].get<double>(),
                         .mean = (*json)["mean"].get<double>()};
}

}  // namespace mpc::tools
