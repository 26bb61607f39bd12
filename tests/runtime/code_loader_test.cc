// Host code from memory, and the kernels that it becomes.
#include "runtime/code_loader.h"

#include <elf.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "kernels/cpu/kernel.h"
#include "runtime/file_content.h"
#include "tests/runtime/program_builder.h"

namespace mpc::runtime {
namespace {

using ::testing::HasSubstr;

const Device& Cpu() { return **GetDevice("cpu"); }

/// tests/runtime/example_code.c.
CodeBlob Example() { return {"example", "elf", ReadFileContent(MPC_EXAMPLE_CODE).value(), {"example_0", "example_1"}}; }

std::string ErrorOf(const CodeBlob& blob) {
  const absl::Status status = LoadCode(blob).status();
  EXPECT_FALSE(status.ok());
  return std::string(status.message());
}

TEST(CodeLoader, FindsTheFunctionsOfASharedObject) {
  const absl::StatusOr<std::unique_ptr<LoadedCode>> code = LoadCode(Example());
  ASSERT_TRUE(code.ok()) << code.status();
  EXPECT_NE((*code)->Find("example_0").value(), (*code)->Find("example_1").value());
  EXPECT_EQ((*code)->Find("example_2").status().code(), absl::StatusCode::kNotFound);
}

TEST(CodeLoader, EachBlobIsCodeOfItsOwn) {
  const auto first = LoadCode(Example()).value();
  const auto second = LoadCode(Example()).value();
  const auto call = [](const LoadedCode& code) {
    const float x[4] = {1, 2, 3, 4};
    float sum = 0;
    void* const operands[] = {const_cast<float*>(x)};
    reinterpret_cast<void (*)(void* const*, void*, std::int64_t)>(code.Find("example_0").value())(operands, &sum, 0);
    return reinterpret_cast<std::int64_t (*)()>(code.Find("example_calls").value())();
  };
  EXPECT_EQ(call(*first), 1);
  EXPECT_EQ(call(*first), 2);
  EXPECT_EQ(call(*second), 1) << "another copy of its variables";
}

TEST(CodeLoader, RefusesWhatIsNoSharedObjectOfThisProcessor) {
  CodeBlob blob = Example();
  blob.bytes = {1, 2, 3};
  EXPECT_THAT(ErrorOf(blob), HasSubstr("code \"example\": its 3 bytes are no ELF file"));
  const auto with_header = [](const std::function<void(Elf64_Ehdr&)>& change) {
    CodeBlob damaged = Example();
    change(*reinterpret_cast<Elf64_Ehdr*>(damaged.bytes.data()));
    return damaged;
  };
  EXPECT_THAT(ErrorOf(with_header([](Elf64_Ehdr& header) { header.e_type = ET_REL; })),
              HasSubstr("no shared object for x86-64: ELF type 1"));
  EXPECT_THAT(ErrorOf(with_header([](Elf64_Ehdr& header) { header.e_machine = EM_AARCH64; })),
              HasSubstr("machine 183"));
  EXPECT_THAT(ErrorOf(with_header([](Elf64_Ehdr& header) { header.e_phoff = ~0ull; })), HasSubstr("table of segments"));
}

TEST(CodeLoader, RefusesATruncatedSharedObjectAtEveryLength) {
  const CodeBlob whole = Example();
  // The table of sections, which loading does not read, lies behind the last segment.
  std::size_t needed = 0;
  const auto* header = reinterpret_cast<const Elf64_Ehdr*>(whole.bytes.data());
  const auto* segments = reinterpret_cast<const Elf64_Phdr*>(whole.bytes.data() + header->e_phoff);
  for (unsigned i = 0; i < header->e_phnum; ++i) {
    needed = std::max<std::size_t>(needed, segments[i].p_offset + segments[i].p_filesz);
  }
  ASSERT_GT(needed, 0u);
  for (std::size_t size = 0; size < needed; size += 7) {
    CodeBlob blob = whole;
    blob.bytes.resize(size);
    EXPECT_FALSE(LoadCode(blob).ok()) << size;
  }
}

TEST(CodeLoader, SaysWhatItLoads) {
  CodeBlob blob = Example();
  blob.format = "ptx";
  EXPECT_THAT(ErrorOf(blob), HasSubstr("is in format \"ptx\"; this process loads \"elf\""));
  blob.format = "object";
  EXPECT_THAT(ErrorOf(blob), HasSubstr("\"object\" only where a compiler made it"));
}

TEST(CodeLoader, TakesOtherFormatsFromWhoRegistersThem) {
  RegisterCodeLoader("renamed elf", [](const CodeBlob& blob) {
    CodeBlob elf = blob;
    elf.format = "elf";
    return LoadCode(elf);
  });
  CodeBlob blob = Example();
  blob.format = "renamed elf";
  EXPECT_TRUE(LoadCode(blob).ok());
}

constexpr std::int64_t kBlocks = 10000;
const TensorSpec kVector{DType::kF32, {4 * kBlocks}};

/// y = x + (x0 + x1 + x2 + x3), with `y` over `x` on request.
ProgramBuilder ExampleProgram(bool in_place = false) {
  ProgramBuilder builder("predict");
  const ValueId input = builder.Input("x", kVector);
  const ValueId x = builder.Temporary(kVector);
  const ValueId y = in_place ? x : builder.Temporary(kVector);
  const ValueId scratch = builder.Temporary(kVector);
  builder.Call("neg", {input}, {x});
  builder.Call("generated.example", {x}, {y},
               {{"blocks", std::vector<std::int64_t>{kBlocks, kBlocks}},
                {"threads", std::vector<std::int64_t>{1, 1}},
                {"shared_bytes", std::vector<std::int64_t>{0, 0}},
                {"work", 4 * kBlocks}});
  if (in_place) builder.program.step().instructions[1].attributes.Set("aliases", std::vector<std::int64_t>{0, 0});
  builder.program.step().instructions[1].workspace_offset = builder.program.values[scratch].offset;
  builder.program.step().instructions[1].workspace_bytes = kVector.bytes();
  builder.program.code.push_back(Example());
  builder.Output("y", y);
  return builder;
}

std::vector<float> Numbers() {
  std::vector<float> x(4 * kBlocks);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 97) - 40;
  return x;
}

TEST(GeneratedHostKernel, RunsItsStagesOneAfterTheOtherOnAnyNumberOfThreads) {
  const std::vector<float> x = Numbers();
  const float sum = -(x[0] + x[1] + x[2] + x[3]);
  const int threads = cpu::NumThreads();
  for (const int count : {1, 2}) {
    cpu::SetNumThreads(count);
    for (const bool in_place : {false, true}) {
      auto executable = Cpu().Load(ExampleProgram(in_place).Build(), StateStore());
      ASSERT_TRUE(executable.ok()) << executable.status();
      ASSERT_TRUE((*executable)->Run({BytesOf(x)}).ok());
      const std::vector<float> y = ValuesOf<float>((*executable)->output(0));
      for (std::size_t i = 0; i < x.size(); ++i) ASSERT_EQ(y[i], -x[i] + sum) << i;
    }
  }
  cpu::SetNumThreads(threads);
}

TEST(GeneratedHostKernel, WritesOverAnInputOnlyWhereItsInstructionSaysSo) {
  ProgramBuilder builder = ExampleProgram(true);
  builder.program.step().instructions[1].attributes.Set("aliases", std::vector<std::int64_t>{1, 0, 0, 1});
  EXPECT_THAT(std::string(Cpu().Load(builder.Build(), StateStore()).status().message()),
              HasSubstr("output 0 overwrites input 0"));
}

TEST(GeneratedHostKernel, IsPlannedAsItsInstructionSays) {
  const ProgramBuilder builder = ExampleProgram();
  const auto plan = Cpu().Plan(builder.program, builder.program.step().instructions[1]);
  ASSERT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->workspace_bytes, kVector.bytes());
}

TEST(GeneratedHostKernel, ThatCannotBeCalledSaysWhy) {
  const auto load = [](const std::function<void(Program&)>& damage) {
    ProgramBuilder builder = ExampleProgram();
    damage(builder.program);
    const absl::Status status = Cpu().Load(builder.Build(), StateStore()).status();
    EXPECT_FALSE(status.ok());
    return std::string(status.message());
  };
  EXPECT_THAT(load([](Program& p) { p.code.clear(); }),
              HasSubstr("no code of the program has a function \"example_0\""));
  EXPECT_THAT(load([](Program& p) { p.code[0].kernels.pop_back(); }), HasSubstr("a function \"example_1\""));
  EXPECT_THAT(load([](Program& p) { p.code[0].kernels.push_back("example_2"); }),
              HasSubstr("code \"example\": there is no function \"example_2\""));
  EXPECT_THAT(load([](Program& p) { p.code.push_back(p.code[0]); }),
              HasSubstr("another blob has a kernel \"example_0\""));
  EXPECT_THAT(load([](Program& p) { p.code[0].bytes.resize(100); }),
              HasSubstr("program \"predict\": code \"example\": its table of segments"));
  EXPECT_THAT(load([](Program& p) { p.code[0].bytes.clear(); }), HasSubstr("has no bytes"));
  EXPECT_THAT(load([](Program& p) { p.code[0].format = "exe"; }), HasSubstr("is in format \"exe\"; known are"));
  EXPECT_THAT(
      load([](Program& p) { p.step().instructions[1].attributes.Set("threads", std::vector<std::int64_t>{1}); }),
      HasSubstr("for each of its stages"));
}

}  // namespace
}  // namespace mpc::runtime
