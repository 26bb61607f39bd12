#include "frontend/state/checkpoint_file.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "runtime/checksum.h"

namespace mpc::internal {
namespace {

constexpr char kChecksum[] = "mpc_crc32";

}  // namespace

std::string ContentChecksum(const Safetensors& content) {
  std::vector<const std::pair<std::string, Tensor>*> ordered;
  for (const auto& entry : content.tensors) ordered.push_back(&entry);
  std::sort(ordered.begin(), ordered.end(), [](const auto* a, const auto* b) { return a->first < b->first; });
  runtime::Checksum checksum;
  for (const auto* entry : ordered) {
    checksum.Add(entry->first);
    checksum.Add(entry->second.spec().ToString());
    checksum.Add(entry->second.bytes().data(), entry->second.bytes().size());
  }
  for (const auto& [key, value] : content.metadata) {
    if (key == kChecksum) continue;
    checksum.Add(key);
    checksum.Add(value);
  }
  return checksum.Text();
}

absl::Status WriteCheckpointFile(const std::string& path, Safetensors content) {
  const bool writable = std::all_of(content.tensors.begin(), content.tensors.end(), [](const auto& entry) {
    return entry.second.defined() && entry.second.status().ok() && entry.second.concrete();
  });
  // What cannot be written has no checksum; saving it says why.
  if (writable) content.metadata[kChecksum] = ContentChecksum(content);
  return SaveSafetensors(path, content);
}

absl::StatusOr<Safetensors> ReadCheckpointFile(const std::string& path) {
  absl::StatusOr<Safetensors> content = LoadSafetensors(path);
  if (!content.ok()) return content.status();
  const auto stored = content->metadata.find(kChecksum);
  if (stored == content->metadata.end()) return content;
  const std::string computed = ContentChecksum(*content);
  if (stored->second != computed) {
    return absl::InvalidArgumentError(
        absl::StrCat(path, " is damaged: its checksum is ", stored->second, ", its content gives ", computed,
                     "; who edits a checkpoint removes \"", kChecksum, "\" from its metadata"));
  }
  return content;
}

}  // namespace mpc::internal
