// The fuzzers' corpora, replayed: what was found once stays found, in every build and under its sanitizers.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "runtime/file_content.h"
#include "tests/fuzz/readers.h"

namespace mpc::fuzz {
namespace {

struct Reader {
  const char* name;  ///< and its corpus
  void (*read)(absl::Span<const std::uint8_t>);
};

class Corpus : public ::testing::TestWithParam<Reader> {};

TEST_P(Corpus, IsReadOrRefused) {
  const std::filesystem::path folder = std::filesystem::path(MPC_FUZZ_CORPUS) / GetParam().name;
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    SCOPED_TRACE(entry.path().string());
    const absl::StatusOr<std::vector<std::uint8_t>> content = runtime::ReadFileContent(entry.path().string());
    ASSERT_TRUE(content.ok()) << content.status();
    GetParam().read(*content);
    // Every beginning of it, as a file that was cut short.
    for (std::size_t size = 0; size < content->size(); size += 1 + size / 16) {
      GetParam().read(absl::MakeConstSpan(*content).first(size));
    }
    ++count;
  }
  EXPECT_GE(count, 4u) << folder;
}

INSTANTIATE_TEST_SUITE_P(Readers, Corpus,
                         ::testing::Values(Reader{"safetensors", ReadSafetensors}, Reader{"npy", ReadNpy},
                                           Reader{"program", ReadProgram}, Reader{"idx", ReadIdx},
                                           Reader{"gzip_rows", ReadGzipRows}, Reader{"jpeg", ReadJpeg},
                                           Reader{"png", ReadPng}, Reader{"webp", ReadWebp}, Reader{"exif", ReadExif},
                                           Reader{"csv", ReadCsv}, Reader{"npz", ReadNpz}, Reader{"store", ReadStore},
                                           Reader{"capsule", ReadCapsule}),
                         [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace mpc::fuzz
