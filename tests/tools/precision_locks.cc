// The precision locks of the shipped models at every level, against goldens.
//
//   precision_locks FOLDER            the models that are made in a moment
//   precision_locks --all FOLDER      every model
//   precision_locks --update FOLDER   writes what differs anew, of every model
//
// The folder holds MODEL.LEVEL.lock. Level auto has f16: by default it asks what the processor is best at. Exit status:
// 0 where nothing differs or --update wrote it, 1 where something does, 2 for bad usage.
#include <algorithm>
#include <array>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include "compiler/report/precision_lock_file.h"
#include "tools/mpc-opt/network_source.h"

namespace mpc {
namespace {

constexpr std::array<const char*, 5> kLockedLevels = {"O0", "O1", "O2", "O3", "auto"};
/// State of gigabytes is made for these, which takes seconds.
constexpr std::array<const char*, 4> kLargeModels = {"bert", "gpt2", "vit_base_patch16_224", "vit_large_patch16_224"};

struct LockCount {
  int checked = 0;
  int written = 0;
  int failed = 0;
};

opt::ModelRequest RequestAt(const std::string& model, const std::string& level) {
  opt::ModelRequest request;
  request.model = model;
  request.train = true;
  request.batch = 8;
  request.amp.level = level;
  request.amp.verbosity = 0;
  if (level == "auto") request.amp.dtype = DType::kF16;
  return request;
}

void HandleLock(const opt::MadeNetwork& network, const opt::ModelRequest& request, const std::string& path, bool update,
                LockCount& count) {
  const absl::StatusOr<compiler::PrecisionLock> lock = opt::LockNetwork(network, request);
  absl::Status status = lock.status();
  if (lock.ok() && update) {
    const absl::StatusOr<bool> written = compiler::WritePrecisionLock(path, *lock, /*update=*/true);
    status = written.status();
    if (written.ok() && *written) ++count.written;
  } else if (lock.ok()) {
    status = compiler::CheckPrecisionLock(path, *lock);
  }
  ++count.checked;
  if (status.ok()) return;
  ++count.failed;
  std::cout << request.model << " at " << request.amp.level << ": " << status.message() << "\n";
}

/// Files of models or levels that do not exist. `known` are those that do.
void FindForeignLocks(const std::string& folder, const std::set<std::string>& known, LockCount& count) {
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (known.count(entry.path().filename().string()) > 0) continue;
    ++count.failed;
    std::cout << entry.path().string() << ": there is no such model or level\n";
  }
}

int CheckLocks(const std::string& folder, bool all, bool update) {
  LockCount count;
  std::set<std::string> known;
  for (const std::string& model : models::WorkloadNames()) {
    const bool large = std::find(kLargeModels.begin(), kLargeModels.end(), model) != kLargeModels.end();
    for (const char* level : kLockedLevels) known.insert(model + "." + level + ".lock");
    if (large && !all) continue;
    const absl::StatusOr<opt::MadeNetwork> network = opt::MakeNetwork(model);
    if (!network.ok()) {
      ++count.failed;
      std::cout << model << ": " << network.status().message() << "\n";
      continue;
    }
    for (const char* level : kLockedLevels) {
      HandleLock(*network, RequestAt(model, level), folder + "/" + model + "." + level + ".lock", update, count);
    }
  }
  FindForeignLocks(folder, known, count);
  std::cout << count.checked << " locks, " << count.written << " written, " << count.failed << " fail\n";
  if (count.failed == 0) return 0;
  std::cout << "where the change is meant: cmake --build <folder> --target mpc-precision-locks\n";
  return 1;
}

int RunOn(const std::vector<std::string>& arguments) {
  bool all = false, update = false;
  std::string folder;
  for (const std::string& argument : arguments) {
    if (argument == "--all") {
      all = true;
    } else if (argument == "--update") {
      all = update = true;
    } else {
      folder = argument;
    }
  }
  if (!std::filesystem::is_directory(folder)) {
    std::cerr << "precision_locks: [--all|--update] FOLDER, with an existing folder; got '" << folder << "'\n";
    return 2;
  }
  return CheckLocks(folder, all, update);
}

}  // namespace
}  // namespace mpc

int main(int argc, char** argv) { return mpc::RunOn({argv + 1, argv + argc}); }
