#include "tools/mpc-bench/data_contest.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "runtime/version.h"
#include "tools/mpc-bench/data_pipeline.h"
#include "tools/mpc-bench/made_pictures.h"
#include "tools/mpc-bench/scratch_folder.h"

namespace mpc::tools {
namespace {

constexpr std::int64_t kPictures = 64;
constexpr std::int64_t kCompared = 16;
/// Both round to a level after each axis. Pillow may begin with the other axis, so that a sum close to a half may go
/// the other way. The weights of a place sum to 1 and are not negative, so that a level of the first axis stays at most
/// one. What normalising in f32 rounds is far below the rest.
constexpr double kLargestDifference = 1.01;

std::string WorkersText(std::int64_t workers) { return absl::StrCat(workers, workers == 1 ? " worker" : " workers"); }

absl::StatusOr<PixelDifference> Compare(const DataOptions& options, const ScratchFolder& scratch,
                                        const std::string& folder) {
  const std::string pixels = scratch.path() + "/pixels.safetensors";
  if (absl::Status status = WritePixels(folder, kCompared, pixels); !status.ok()) return status;
  absl::StatusOr<PixelDifference> difference = ComparePixels(options, folder, pixels);
  if (!difference.ok() || difference->largest <= kLargestDifference) return difference;
  return absl::FailedPreconditionError(absl::StrCat("torchvision's pixels are up to ", difference->largest,
                                                    " levels from mpc's; a comparison of rates needs the same work"));
}

}  // namespace

absl::StatusOr<DataTable> MeasureData(const DataOptions& options) {
  if (!options.peers.empty()) {
    if (absl::Status status = CheckTorchvision(options); !status.ok()) return status;
  }
  const absl::StatusOr<ScratchFolder> scratch = ScratchFolder::Make();
  if (!scratch.ok()) return scratch.status();
  const std::string folder = scratch->Subfolder("pictures");
  const absl::StatusOr<double> bytes = WriteMadePictures(folder, kPictures);
  if (!bytes.ok()) return bytes.status();
  DataTable table{.pictures = kPictures, .bytes = *bytes};
  table.readers.push_back(
      {.name = "mpc", .version = absl::StrCat("mpc ", MPC_VERSION), .settings = WorkersText(options.threads)});
  std::vector<std::int64_t> peer_workers;
  if (!options.peers.empty()) {
    const absl::StatusOr<PixelDifference> difference = Compare(options, *scratch, folder);
    if (!difference.ok()) return difference.status();
    table.difference = *difference;
    peer_workers = {0, 1, 2};
    for (const std::int64_t workers : peer_workers) {
      table.readers.push_back({.name = absl::StrCat("torchvision, ", WorkersText(workers))});
    }
  }
  for (std::int64_t run = 0; run < options.runs; ++run) {
    const absl::StatusOr<double> rate = MeasureReading(options, folder, kPictures);
    if (!rate.ok()) return rate.status();
    table.readers[0].rates.push_back(*rate);
    for (std::size_t peer = 0; peer < peer_workers.size(); ++peer) {
      absl::StatusOr<PeerReading> reading = MeasureTorchvision(options, folder, peer_workers[peer]);
      if (!reading.ok()) return reading.status();
      Reader& reader = table.readers[peer + 1];
      reader.rates.push_back(reading->rate);
      reader.version = std::move(reading->version);
      reader.settings = std::move(reading->settings);
    }
  }
  return table;
}

}  // namespace mpc::tools
