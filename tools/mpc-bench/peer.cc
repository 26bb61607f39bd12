#include "tools/mpc-bench/peer.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tools/mpc-bench/subprocess.h"

namespace mpc::tools {
namespace {

/// Beside an installed executable, else in the source tree that mpc was built from.
absl::StatusOr<std::string> FindScript(const BenchOptions& options) {
  const std::string script = PeerScriptOf(options.model);
  std::vector<std::string> places;
  std::error_code error;
  if (!options.peer_script.empty()) {
    places = {options.peer_script};
  } else {
    const std::filesystem::path executable = std::filesystem::read_symlink("/proc/self/exe", error);
    places.push_back((executable.parent_path().parent_path() / "share/mpc/peers" / script).string());
    places.push_back((std::filesystem::path(MPC_SOURCE_DIR) / "tools/peers" / script).string());
  }
  for (const std::string& place : places) {
    if (std::filesystem::is_regular_file(place, error)) return place;
  }
  return absl::NotFoundError(absl::StrCat("the peer's script is missing; tried ", absl::StrJoin(places, ", "),
                                          "; name it with --peer-script=FILE"));
}

}  // namespace

absl::Status CheckTorch(const BenchOptions& options) {
  if (absl::Status status = FindScript(options).status(); !status.ok()) return status;
  const absl::StatusOr<std::string> found = RunAndCapture(
      {options.python, "-c", "try:\n  import torch; print('ok')\nexcept Exception as error:\n  print(error)"});
  if (found.ok() && *found == "ok\n") return absl::OkStatus();
  std::string reason(found.ok() ? *found : std::string(found.status().message()));
  reason = reason.substr(0, reason.find('\n'));
  return absl::NotFoundError(
      absl::StrCat("no PyTorch for '", options.python, "' (", reason,
                   "); name an interpreter that has it with --python=PROGRAM, or leave --peer out"));
}

absl::StatusOr<RunResult> MeasureTorch(const BenchOptions& options) {
  absl::StatusOr<std::string> script = FindScript(options);
  if (!script.ok()) return script.status();
  std::vector<std::string> command = {options.python,
                                      *script,
                                      absl::StrCat("--batch=", options.batch),
                                      absl::StrCat("--threads=", options.threads),
                                      absl::StrCat("--warmup=", options.warmup),
                                      absl::StrCat("--steps=", options.steps),
                                      absl::StrCat("--device=", options.device),
                                      absl::StrCat("--mode=", options.peer_mode),
                                      absl::StrCat("--amp-level=", options.amp_level)};
  if (options.image_size > 0) command.push_back(absl::StrCat("--image-size=", options.image_size));
  if (options.tokens > 0) command.push_back(absl::StrCat("--tokens=", options.tokens));
  if (options.allow_tf32) command.emplace_back("--allow-tf32");
  if (!options.weights_path.empty()) command.push_back(absl::StrCat("--weights=", options.weights_path));
  if (!options.dtype.empty()) command.push_back(absl::StrCat("--dtype=", options.dtype));
  absl::StatusOr<std::string> output = RunAndCapture(command);
  if (!output.ok()) return output.status();
  return RunFromJson(*output);
}

}  // namespace mpc::tools
