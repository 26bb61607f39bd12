// What several threads may use at once. The thread sanitizer watches (tools/sanitize.sh tsan).
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "runtime/code_loader.h"
#include "runtime/file_content.h"
#include "runtime/kernel_tuner.h"
#include "tests/runtime/on_threads.h"
#include "tests/runtime/program_builder.h"

namespace mpc::runtime {
namespace {

constexpr int kThreads = 4;

TEST(Threads, LoadCodeWhileLoadersAreRegistered) {
  const CodeBlob blob = {"example", "elf", ReadFileContent(MPC_EXAMPLE_CODE).value(), {"example_0", "example_1"}};
  test::OnThreads(kThreads, [&](int thread) {
    RegisterCodeLoader("threads " + std::to_string(thread), [](const CodeBlob&) {
      return absl::StatusOr<std::unique_ptr<LoadedCode>>(absl::UnimplementedError("a loader of this test"));
    });
    const absl::StatusOr<std::unique_ptr<LoadedCode>> code = LoadCode(blob);
    ASSERT_TRUE(code.ok()) << code.status();
    EXPECT_TRUE((*code)->Find("example_0").ok());
  });
}

TEST(Threads, TimeTheCandidatesOfAKernelOnce) {
  KernelTuner tuner;
  std::map<std::string, int> timed;
  PlanOptions options;
  options.tune = true;
  test::OnThreads(kThreads, [&](int) {
    for (int key = 0; key < 20; ++key) {
      const std::string name = std::to_string(key);
      const auto choice = tuner.Choose(name, {"fast", "slow"}, options, [&](const std::string& candidate) {
        ++timed[name + candidate];
        return absl::StatusOr<double>(candidate == "fast" ? 1.0 : 2.0);
      });
      ASSERT_TRUE(choice.ok()) << choice.status();
      EXPECT_EQ(choice->choice, "fast");
    }
  });
  EXPECT_EQ(timed.size(), 40u);
  for (const auto& [candidate, times] : timed) EXPECT_EQ(times, 1) << candidate;
}

TEST(Threads, GiveNoTwoContentsOfStateTheSameVersion) {
  std::vector<std::vector<std::uint64_t>> versions(kThreads);
  test::OnThreads(kThreads, [&](int thread) {
    StateStore store;
    const std::shared_ptr<StateEntry> entry = AddEntry(store, "weight", {1, 2, 3, 4});
    for (int i = 0; i < 100; ++i) {
      ASSERT_TRUE(entry->Write(BytesOf(std::vector<float>(4, static_cast<float>(i)))).ok());
      versions[static_cast<std::size_t>(thread)].push_back(entry->version());
    }
  });
  std::set<std::uint64_t> all;
  for (const std::vector<std::uint64_t>& each : versions) all.insert(each.begin(), each.end());
  EXPECT_EQ(all.size(), 100u * kThreads);
}

/// weight += x of 100,000 elements: enough for loops on several threads.
TEST(Threads, RunStepsOfTheirOwnBesideEachOther) {
  constexpr std::int64_t kElements = 100'000;
  const TensorSpec vector{DType::kF32, {kElements}};
  ProgramBuilder builder("train_step");
  const ValueId weight = builder.State("weight", vector, true);
  builder.Call("add", {weight, builder.Input("x", vector)}, {weight});
  const std::shared_ptr<const Program> program = builder.Build();
  test::OnThreads(kThreads, [&](int thread) {
    StateStore store;
    const std::shared_ptr<StateEntry> entry = AddEntry(store, "weight", std::vector<float>(kElements, 0.0f));
    const absl::StatusOr<const Device*> cpu = GetDevice("cpu");
    ASSERT_TRUE(cpu.ok()) << cpu.status();
    const absl::StatusOr<std::unique_ptr<Executable>> executable = (*cpu)->Load(program, store);
    ASSERT_TRUE(executable.ok()) << executable.status();
    const std::vector<float> x(kElements, static_cast<float>(thread + 1));
    for (int step = 0; step < 10; ++step) {
      const absl::Status status = (*executable)->Run({BytesOf(x)});
      ASSERT_TRUE(status.ok()) << status;
    }
    std::vector<std::uint8_t> content(vector.bytes());
    ASSERT_TRUE(entry->Read(absl::MakeSpan(content)).ok());
    EXPECT_EQ(ValuesOf<float>(content), std::vector<float>(kElements, 10.0f * static_cast<float>(thread + 1)));
  });
}

}  // namespace
}  // namespace mpc::runtime
