#include "runtime/generated_call.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace mpc::runtime {
namespace {

constexpr std::int64_t kMostThreads = 1024;
constexpr std::int64_t kMostSharedBytes = 227 << 10;  // a block of compute capability 9.0
constexpr std::int64_t kMostBlocks = (std::int64_t{1} << 31) - 1;

std::string Describe(const std::vector<std::int64_t>& numbers) {
  return absl::StrCat("[", absl::StrJoin(numbers, ", "), "]");
}

bool AllWithin(const std::vector<std::int64_t>& numbers, std::int64_t least, std::int64_t most) {
  for (std::int64_t number : numbers) {
    if (number < least || number > most) return false;
  }
  return true;
}

}  // namespace

bool IsGenerated(std::string_view kernel) { return kernel.substr(0, kGeneratedPrefix.size()) == kGeneratedPrefix; }

absl::StatusOr<std::vector<GeneratedStage>> StagesOf(const Instruction& instruction) {
  const std::vector<std::int64_t> blocks = instruction.attributes.GetInts(kBlocksAttribute);
  const std::vector<std::int64_t> threads = instruction.attributes.GetInts(kThreadsAttribute);
  const std::vector<std::int64_t> shared_bytes = instruction.attributes.GetInts(kSharedBytesAttribute);
  const bool equal_lengths = blocks.size() == threads.size() && blocks.size() == shared_bytes.size();
  if (blocks.empty() || !equal_lengths || !AllWithin(blocks, 1, kMostBlocks) || !AllWithin(threads, 1, kMostThreads) ||
      !AllWithin(shared_bytes, 0, kMostSharedBytes)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a generated kernel takes, for each of its stages, 1 to ", kMostBlocks, " blocks, 1 to ", kMostThreads,
        " threads and 0 to ", kMostSharedBytes, " shared_bytes; got blocks = ", Describe(blocks),
        ", threads = ", Describe(threads), ", shared_bytes = ", Describe(shared_bytes)));
  }
  const std::string name = instruction.kernel.substr(kGeneratedPrefix.size());
  std::vector<GeneratedStage> stages;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    stages.push_back({absl::StrCat(name, "_", i), blocks[i], threads[i], shared_bytes[i]});
  }
  return stages;
}

bool GeneratedMayAlias(const Instruction& instruction, std::size_t output, std::size_t input) {
  const std::vector<std::int64_t> pairs = instruction.attributes.GetInts(kAliasesAttribute);
  for (std::size_t i = 0; i + 1 < pairs.size(); i += 2) {
    if (pairs[i] == static_cast<std::int64_t>(output) && pairs[i + 1] == static_cast<std::int64_t>(input)) return true;
  }
  return false;
}

}  // namespace mpc::runtime
