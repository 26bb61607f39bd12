#include "frontend/state/weights_file.h"

#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "frontend/state/checkpoint_file.h"
#include "frontend/state/pickle.h"
#include "runtime/file_content.h"

namespace mpc::internal {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr char kIndexEnd[] = ".index.json";
constexpr char kWeightMap[] = "weight_map";
/// What transformers wrote before safetensors.
constexpr char kPickleName[] = "pytorch_model.bin";

bool Exists(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

/// By the path alone: links inside the folder may lead elsewhere, as those of Hugging Face's cache do.
bool LeavesFolder(const std::string& name) {
  const fs::path path(name);
  return name.empty() || name.find('\0') != std::string::npos || path.is_absolute() ||
         *path.lexically_normal().begin() == "..";
}

/// Reads the shards of one index and collects what is wrong with them.
class ShardReader {
 public:
  explicit ShardReader(const std::string& index_path) : index_path_(index_path) {}

  absl::StatusOr<Safetensors> Read() {
    if (absl::Status status = ReadIndex(); !status.ok()) return status;
    Safetensors all;
    for (const auto& [shard, names] : shards_) ReadShard(shard, names, all);
    if (problems_.empty()) return all;
    return absl::InvalidArgumentError(
        absl::StrCat(index_path_, " cannot be read:\n  ", absl::StrJoin(problems_, "\n  ")));
  }

 private:
  absl::Status Error(const std::string& message) const {
    return absl::InvalidArgumentError(absl::StrCat(index_path_, ": ", message));
  }

  absl::Status ReadIndex() {
    const absl::StatusOr<std::vector<std::uint8_t>> text = runtime::ReadFileContent(index_path_);
    if (!text.ok()) return text.status();
    const Json index = Json::parse(text->begin(), text->end(), nullptr, /*allow_exceptions=*/false);
    if (index.is_discarded()) return Error("not valid JSON");
    if (!index.is_object() || !index.contains(kWeightMap) || !index[kWeightMap].is_object()) {
      return Error(absl::StrCat("not an object with \"", kWeightMap, "\", which says in which file each entry is"));
    }
    for (const auto& [name, shard] : index[kWeightMap].items()) {
      if (!shard.is_string()) return Error(absl::StrCat("the file of '", name, "' is not a string"));
      shards_[shard.get<std::string>()].insert(name);
    }
    return absl::OkStatus();
  }

  /// Adds the entries of a shard, which should be `names`, to `all`.
  void ReadShard(const std::string& shard, const std::set<std::string>& names, Safetensors& all) {
    if (LeavesFolder(shard)) {
      problems_.push_back(absl::StrCat("'", shard, "' leaves the folder of the index"));
      return;
    }
    absl::StatusOr<Safetensors> content = ReadCheckpointFile((fs::path(index_path_).parent_path() / shard).string());
    if (!content.ok()) {
      problems_.emplace_back(content.status().message());
      return;
    }
    std::set<std::string> found;
    for (auto& [name, tensor] : content->tensors) {
      found.insert(name);
      if (!names.contains(name)) {
        problems_.push_back(absl::StrCat("'", name, "' is in ", shard, ", where the index does not have it"));
      }
      all.tensors.emplace_back(name, std::move(tensor));
    }
    for (const std::string& name : names) {
      if (!found.contains(name)) problems_.push_back(absl::StrCat("'", name, "' is not in ", shard));
    }
  }

  const std::string& index_path_;
  std::map<std::string, std::set<std::string>> shards_;  ///< the entries of each
  std::vector<std::string> problems_;
};

}  // namespace

absl::StatusOr<Safetensors> ReadWeightsFile(const std::string& path) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) {
    const fs::path folder(path);
    for (const char* name : {kWeightsName, kIndexName}) {
      if (Exists(folder / name)) return ReadWeightsFile((folder / name).string());
    }
    if (Exists(folder / kPickleName)) {
      return absl::InvalidArgumentError(PickleAdvice((folder / kPickleName).string()));
    }
    return absl::NotFoundError(absl::StrCat(path, " has neither ", kWeightsName, " nor ", kIndexName));
  }
  if (absl::EndsWith(path, kIndexEnd)) return ShardReader(path).Read();
  return ReadCheckpointFile(path);
}

}  // namespace mpc::internal
