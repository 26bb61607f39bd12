#include "kernels/cpu/onednn_layout.h"

#include <dnnl_debug.h>

#include <algorithm>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/onednn_api.h"

namespace mpc::cpu {
namespace {

struct Tag {
  dnnl::memory::format_tag tag;
  std::string_view name;  ///< "ABcd16b16a"
  std::size_t rank;

  std::string_view blocks() const { return name.substr(rank); }
};

/// Whether `letters` are those of so many dimensions, each once.
bool AreDimensions(std::string_view letters) {
  std::string sorted(letters);
  absl::AsciiStrToLower(&sorted);
  std::sort(sorted.begin(), sorted.end());
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    if (sorted[i] != static_cast<char>('a' + i)) return false;
  }
  return !sorted.empty();
}

std::vector<Tag> MakeTags() {
  std::vector<Tag> tags;
  for (int value = dnnl_format_tag_any + 1; value < dnnl_format_tag_last; ++value) {
    const std::string_view name = dnnl_fmt_tag2str(static_cast<dnnl_format_tag_t>(value));
    const std::size_t rank = std::min(name.find_first_of("0123456789"), name.size());
    if (!AreDimensions(name.substr(0, rank))) continue;
    tags.push_back({static_cast<dnnl::memory::format_tag>(value), name, rank});
  }
  return tags;
}

/// All layouts that have a name. The public interface of oneDNN 3 makes blocked layouts from these alone.
const std::vector<Tag>& Tags() {
  static const std::vector<Tag> tags = MakeTags();
  return tags;
}

}  // namespace

std::string LayoutName(const dnnl::memory::desc& layout) {
  if (!IsBlocked(layout)) return "";
  std::string blocks;
  for (const LayoutBlock& block : BlocksOf(layout)) {
    absl::StrAppend(&blocks, block.size, std::string(1, static_cast<char>('a' + block.dimension)));
  }
  const dnnl::memory::dims extents = ExtentsOf(layout);
  for (const Tag& tag : Tags()) {
    if (tag.rank != extents.size() || tag.blocks() != blocks) continue;
    const dnnl::memory::desc named(extents, DataTypeOf(layout), tag.tag, /*allow_empty=*/true);
    if (named == layout) return std::string(tag.name);
  }
  return "";
}

absl::StatusOr<dnnl::memory::desc> NamedLayout(const dnnl::memory::dims& extents, dnnl::memory::data_type type,
                                               std::string_view name) {
  const auto invalid = [&] {
    return absl::InvalidArgumentError(absl::StrCat("\"", std::string(name), "\" names no layout of ", extents.size(),
                                                   " dimensions, as \"ABcd16b16a\" does of 4"));
  };
  if (std::any_of(extents.begin(), extents.end(), [](std::int64_t extent) { return extent < 1; })) return invalid();
  for (const Tag& tag : Tags()) {
    if (tag.rank != extents.size() || tag.name != name) continue;
    dnnl::memory::desc layout(extents, type, tag.tag, /*allow_empty=*/true);
    if (!layout) return invalid();
    return layout;
  }
  return invalid();
}

}  // namespace mpc::cpu
