// What an .mpcx file keeps, and what happens to damaged ones.
#include "runtime/program_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>

#include "runtime/checksum.h"
#include "runtime/program_check.h"
#include "tests/runtime/package_equality.h"
#include "tests/runtime/program_builder.h"

namespace mpc::runtime {
namespace {

using ::testing::HasSubstr;

using Bytes = std::vector<std::uint8_t>;

const TensorSpec kRow = {DType::kF32, {4}};

/// Every field of every struct is set to something that is not its default.
Program FullProgram() {
  ProgramBuilder builder("train_step");
  const ValueId weight = builder.State("weight", kRow, true);
  const ValueId low = builder.Derived(weight, DType::kBF16, true);
  const ValueId input = builder.Input("data", kRow);
  const std::vector<float> ones = {1, 2, 3, 4};
  const ValueId constant = builder.Constant(kRow, ones.data());
  builder.Filled({DType::kF32, {40}}, 1.5f);
  const ValueId sum = builder.Temporary(kRow);
  builder.Call("add", {input, constant}, {sum},
               {{"flag", true},
                {"off", false},
                {"count", std::int64_t{-7}},
                {"nan", std::numeric_limits<double>::quiet_NaN()},
                {"minus_zero", -0.0},
                {"text", "grüße"},
                {"empty", ""},
                {"integers", std::vector<std::int64_t>{1, -2}},
                {"numbers", std::vector<double>{-0.0, 1e300}}});
  builder.Call("cast", {sum}, {low});
  builder.Call("maybe", {sum}, {kNoValue, weight});
  const ValueId carried = builder.Temporary(kRow);
  builder.Repeat(3, {sum}, {carried}, {{"relu", {carried}, {carried}, {}, 0, 0, "net/body"}},
                 {{constant, carried, "it is a constant"}});
  builder.Output("loss", sum);
  Program& program = builder.program;
  program.step().copies.push_back({sum, weight, "read after it is written"});
  program.step().instructions[0].scope = "net/add";
  program.step().instructions[1].workspace_bytes = 64;
  program.step().instructions[1].phase = kLastPhase;
  program.choices = {{"conv2d", "algorithm 3"}};
  program.allow_tf32 = true;
  program.arch = "sm_90";
  program.required_cpu_features = {"avx2", "fma"};
  program.code = {{"region", "cubin", {0x7f, 0, 1, 255}, {"generated.region0", "generated.region1"}}};
  return program;
}

InitialDraw FullDraw() {
  ProgramBuilder builder("init_state");
  const ValueId seed = builder.Input("seed", {DType::kI64, {}});
  const ValueId drawn = builder.Temporary(kRow);
  builder.Call("random", {seed}, {drawn});
  builder.Output("weight", drawn);
  return {builder.program, std::numeric_limits<std::uint64_t>::max()};
}

Package FullPackage() {
  Package package;
  package.metadata = {{"model", "Net"}, {"empty", ""}};
  package.programs.push_back(FullProgram());
  ProgramBuilder predict("predict");
  const ValueId scale = predict.State("scale", {DType::kF32, {}}, false);
  predict.State("slot", {DType::kF16, {2, 3}}, true);
  predict.Output("predictions", scale);
  package.programs.push_back(predict.program);
  package.draws.push_back(FullDraw());
  package.initial_values.push_back({"scale", Role::kScaler, {DType::kF32, {}}, {0, 0, 128, 63}});
  package.initial_values.push_back({"slot", Role::kSlot, {DType::kF16, {2, 3}}, {0, 60}});
  return package;
}

Bytes Serialized() { return SerializePackage(FullPackage()).value(); }

absl::StatusOr<Package> Parse(const Bytes& bytes) { return ParsePackage(bytes, "net.mpcx"); }
std::string ParseError(const Bytes& bytes) { return std::string(Parse(bytes).status().message()); }

/// With the checksum that its content has.
Bytes Repaired(Bytes bytes) {
  Checksum checksum;
  checksum.Add(bytes.data() + 4, 12);
  checksum.Add(bytes.data() + 24, bytes.size() - 24);
  for (int i = 0; i < 4; ++i) bytes[16 + i] = static_cast<std::uint8_t>(checksum.value() >> (8 * i));
  return bytes;
}

TEST(ProgramFile, KeepsEveryField) {
  const absl::StatusOr<Package> read = Parse(Serialized());
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(SamePackage(*read, FullPackage()));
  // The comparison sees differences.
  Package other = FullPackage();
  other.programs[0].step().instructions[0].attributes.Set("minus_zero", 0.0);
  EXPECT_FALSE(SamePackage(*read, other));
  other = FullPackage();
  other.programs[0].sequences[1].copies.clear();
  EXPECT_FALSE(SamePackage(*read, other));
}

TEST(ProgramFile, EqualPackagesGiveEqualBytes) { EXPECT_EQ(Serialized(), Serialized()); }

// Before there were fills, every constant was given byte by byte.
TEST(ProgramFile, ConstantsThatAnOlderFileGivesHaveTheSameBits) {
  const absl::StatusOr<Package> package = ReadProgramFile(MPC_TEST_FILES "/given_constants.mpcx");
  ASSERT_TRUE(package.ok()) << package.status();
  const Program& program = package->programs.at(0);
  EXPECT_EQ(program.constants.size(), 2u * 192);
  EXPECT_TRUE(program.fills.empty());
  StateStore none;
  const auto loaded = (*GetDevice("cpu"))->Load(std::make_shared<const Program>(program), none);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  std::vector<float> x(40), expected(40);
  for (int i = 0; i < 40; ++i) {
    x[i] = static_cast<float>(i - 20);
    expected[i] = 1.5f * (x[i] + 0.25f * static_cast<float>(i));
  }
  const absl::Span<const std::uint8_t> inputs[] = {BytesOf(x)};
  ASSERT_TRUE((*loaded)->Run(inputs).ok());
  EXPECT_EQ(ValuesOf<float>((*loaded)->output(0)), expected);

  // Without fills a file has the bytes that it had.
  std::ifstream file(MPC_TEST_FILES "/given_constants.mpcx", std::ios::binary);
  const Bytes before{std::istreambuf_iterator<char>(file), {}};
  EXPECT_EQ(SerializePackage(*package).value(), before);
}

TEST(ProgramFile, AFillTakesNoBytesOfTheFile) {
  Package package = FullPackage();
  const std::size_t before = SerializePackage(package).value().size();
  package.programs[0].fills[0].bytes = std::size_t{50257} * 768 * 4;
  const Bytes bytes = SerializePackage(package).value();
  EXPECT_EQ(bytes.size(), before);
  EXPECT_EQ(Parse(bytes)->programs[0].constant_bytes(), 64 + std::size_t{50257} * 768 * 4);
}

TEST(ProgramFile, IsWrittenWholeOrNotAtAll) {
  std::string folder = (std::filesystem::temp_directory_path() / "mpc-package-XXXXXX").string();
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/net.mpcx";
  ASSERT_TRUE(WriteProgramFile(path, FullPackage()).ok());
  EXPECT_TRUE(SamePackage(ReadProgramFile(path).value(), FullPackage()));
  Package broken = FullPackage();
  broken.initial_values.clear();
  EXPECT_FALSE(WriteProgramFile(path, broken).ok());
  EXPECT_TRUE(ReadProgramFile(path).ok());
  EXPECT_FALSE(WriteProgramFile(folder + "/missing/net.mpcx", FullPackage()).ok());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 1);
  EXPECT_EQ(ReadProgramFile(folder + "/none").status().code(), absl::StatusCode::kNotFound);
  std::filesystem::remove_all(folder);
}

TEST(ProgramFile, ForeignFilesAreNamedByWhatTheyBeginWith) {
  EXPECT_EQ(ParseError({}), "net.mpcx is not an .mpcx file: it is empty");
  EXPECT_EQ(ParseError({0x7f, 'E', 'L', 'F', 2, 1, 1, 0, 0, 0}),
            "net.mpcx is not an .mpcx file: it begins with \"\\177ELF\\002\\001\\001\\000\", not with \"MPCX\"");
  EXPECT_THAT(ParseError({'M', 'P'}), HasSubstr("is truncated: it has 2 bytes, its header alone takes 24"));
}

TEST(ProgramFile, EveryTruncatedFileIsAnErrorWithBothSizes) {
  const Bytes good = Serialized();
  for (std::size_t size = 0; size < good.size(); ++size) {
    const std::string error = ParseError({good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)});
    EXPECT_THAT(error, HasSubstr(size == 0 ? "it is empty" : "is truncated")) << size;
  }
  const std::string tells = "its header tells of " + std::to_string(good.size() - 24) + " bytes behind it, it has ";
  EXPECT_THAT(ParseError({good.begin(), good.begin() + 100}), HasSubstr(tells + "76"));
  Bytes longer = good;
  longer.push_back(0);
  EXPECT_THAT(ParseError(longer), HasSubstr("is too long: " + tells + std::to_string(good.size() - 23)));
}

TEST(ProgramFile, EveryFlippedBitIsAnError) {
  const Bytes good = Serialized();
  for (std::size_t i = 0; i < good.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      Bytes damaged = good;
      damaged[i] = static_cast<std::uint8_t>(damaged[i] ^ (1 << bit));
      EXPECT_FALSE(Parse(damaged).ok()) << "byte " << i << ", bit " << bit;
    }
  }
  Bytes damaged = good;
  damaged[good.size() / 2] ^= 1;
  EXPECT_THAT(ParseError(damaged), HasSubstr("net.mpcx is damaged: its checksum is "));
}

TEST(ProgramFile, ANewerVersionIsAnError) {
  Bytes newer = Serialized();
  newer[4] = 3;
  EXPECT_EQ(ParseError(newer), "net.mpcx has format version 3; this mpc reads version 2; a newer one may read it");
}

// Version 1 saved positions in images for max pooling, and had kernels that are generated now.
TEST(ProgramFile, AnOlderVersionIsAnError) {
  Bytes older = Serialized();
  older[4] = 1;
  EXPECT_EQ(ParseError(older), "net.mpcx has format version 1; this mpc reads version 2");
}

// A checksum does not protect from who wants to do harm: tables are verified on their own.
TEST(ProgramFile, MalformedTablesUnderAGoodChecksumAreErrorsOrOtherPackages) {
  const Bytes good = Serialized();
  const auto expect_safe = [](const Bytes& bytes) {
    const absl::StatusOr<Package> read = Parse(bytes);
    if (!read.ok()) return;
    EXPECT_TRUE(CheckPackage(*read).ok());
  };
  for (std::size_t i = 24; i < good.size(); ++i) {
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      Bytes damaged = good;
      damaged[i] = static_cast<std::uint8_t>(value);
      expect_safe(Repaired(damaged));
    }
  }
  std::mt19937 engine(1);
  for (int trial = 0; trial < 20'000; ++trial) {
    Bytes damaged = good;
    for (std::uint32_t count = 1 + engine() % 8; count > 0; --count) {
      damaged[24 + engine() % (damaged.size() - 24)] = static_cast<std::uint8_t>(engine());
    }
    expect_safe(Repaired(damaged));
  }
  // Tables alone, cut short.
  for (std::size_t size = 24; size < good.size(); ++size) {
    Bytes damaged(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    for (int i = 0; i < 8; ++i) damaged[8 + i] = static_cast<std::uint8_t>((size - 24) >> (8 * i));
    expect_safe(Repaired(damaged));
  }
}

TEST(ProgramFile, ARoleThatNoStateHasIsAnErrorByName) {
  Bytes bytes = Serialized();
  const std::string role = "scaler";
  const auto found = std::search(bytes.begin(), bytes.end(), role.begin(), role.end());
  ASSERT_NE(found, bytes.end());
  *found = 'S';
  EXPECT_THAT(ParseError(Repaired(bytes)), HasSubstr("has the role \"Scaler\", which is none of state"));
}

TEST(ProgramFile, ProgramsThatTheRuntimeRefusesAreErrorsOnBothSides) {
  Package package = FullPackage();
  package.programs[0].arena_bytes = 0;
  EXPECT_THAT(std::string(SerializePackage(package).status().message()),
              HasSubstr("program \"train_step\" is malformed"));
  // The one place where the size of the arena is written.
  Bytes bytes = Serialized();
  std::uint8_t arena[8];
  const std::uint64_t size = FullProgram().arena_bytes;
  std::memcpy(arena, &size, sizeof(arena));
  const auto found = std::search(bytes.begin() + 24, bytes.end(), std::begin(arena), std::end(arena));
  ASSERT_NE(found, bytes.end());
  std::fill_n(found, 2, 0);
  EXPECT_THAT(ParseError(Repaired(bytes)),
              ::testing::AllOf(HasSubstr("net.mpcx is malformed"), HasSubstr("end outside the arena")));
}

TEST(Package, EveryStateBeginsOnce) {
  const auto error = [](const Package& package) { return std::string(CheckPackage(package).message()); };
  Package package = FullPackage();
  EXPECT_TRUE(CheckPackage(package).ok());
  package.draws.clear();
  EXPECT_THAT(error(package), HasSubstr("state \"weight\" has 0 initial values"));
  package = FullPackage();
  package.initial_values.push_back(package.initial_values[0]);
  EXPECT_THAT(error(package), HasSubstr("state \"scale\" has 2 initial values"));
  package = FullPackage();
  package.initial_values[1].bytes.push_back(0);
  EXPECT_THAT(error(package), HasSubstr("\"slot\", tensor<2x3xf16>, has 3 bytes"));
  package = FullPackage();
  package.initial_values[0].spec.dtype = DType::kI32;
  EXPECT_THAT(error(package), HasSubstr("\"scale\" is tensor<i32>, the state tensor<f32>"));
}

TEST(Package, ProgramsShareTheirState) {
  const auto error = [](const Package& package) { return std::string(CheckPackage(package).message()); };
  Package package = FullPackage();
  package.programs[1].state[0].name = "weight";
  EXPECT_THAT(error(package), HasSubstr("state \"weight\" is parameter tensor<4xf32> in one program, parameter "
                                        "tensor<f32> in \"predict\""));
  package = FullPackage();
  package.programs[1].name = "train_step";
  EXPECT_THAT(error(package), HasSubstr("there are two programs \"train_step\""));
  package = FullPackage();
  package.draws[0].program.inputs.clear();
  EXPECT_FALSE(CheckPackage(package).ok());
  EXPECT_THAT(error({}), HasSubstr("there is no program"));
}

TEST(Package, StateIsListedOnceWithoutWhatIsDerived) {
  std::vector<std::string> names;
  for (const StateBinding& binding : FullPackage().State()) names.push_back(binding.name);
  EXPECT_THAT(names, ::testing::ElementsAre("weight", "scale", "slot"));
}

}  // namespace
}  // namespace mpc::runtime
