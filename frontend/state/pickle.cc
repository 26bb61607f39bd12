#include "frontend/state/pickle.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>

#include "absl/strings/str_cat.h"

namespace mpc::internal {
namespace {

constexpr std::array<std::uint8_t, 4> kZip = {'P', 'K', 3, 4};
constexpr std::uint8_t kProtocolOpcode = 0x80;
constexpr std::uint8_t kFirstBinaryProtocol = 2;
constexpr std::uint8_t kLastProtocol = 5;
/// Where the JSON of a safetensors file begins, with a brace.
constexpr std::size_t kJsonBegin = 8;

/// A string of Python.
std::string PythonText(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "\"";
}

}  // namespace

bool IsPickle(absl::Span<const std::uint8_t> content) {
  if (content.size() < kZip.size()) return false;
  if (content.size() > kJsonBegin && content[kJsonBegin] == '{') return false;
  return std::equal(kZip.begin(), kZip.end(), content.begin()) ||
         (content[0] == kProtocolOpcode && content[1] >= kFirstBinaryProtocol && content[1] <= kLastProtocol);
}

std::string PickleAdvice(const std::string& path) {
  const std::string converted = std::filesystem::path(path).replace_extension(".safetensors").string();
  return absl::StrCat(path, " is a pickle, as torch.save writes it. mpc reads none, for reading one can run any code. ",
                      "Two lines of Python make a file that mpc reads:\n",
                      "  import torch; from safetensors.torch import save_file\n",
                      "  save_file({k: v.clone().contiguous() for k, v in torch.load(", PythonText(path),
                      ", map_location=\"cpu\", weights_only=True).items()}, ", PythonText(converted), ")");
}

}  // namespace mpc::internal
