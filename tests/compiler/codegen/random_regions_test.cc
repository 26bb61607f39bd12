// Regions of random training steps, as generated code that runs: each computes what its operations do one by one, in
// every order of its tiles (on two threads too), or of blocks and threads.
#include <gtest/gtest-spi.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "compiler/codegen/fusion_key.h"
#include "llvm/ADT/StringMap.h"
#include "tests/compiler/codegen/fusion_form.h"
#include "tests/compiler/codegen/operation_check.h"
#include "tests/compiler/isolated_fusion.h"
#include "tests/compiler/operation_case.h"
#include "tests/compiler/random_step.h"
#include "tests/kernels/kernel_run.h"

namespace mpc::test {
namespace {

constexpr std::uint64_t kGraphs = MPC_RANDOM_GRAPHS;
/// Graphs whose regions are one module.
constexpr std::uint64_t kGraphsAtOnce = 20;

/// Every eighth graph has regions of several tiles.
int MostRows(std::uint64_t seed) { return seed % 8 == 3 ? 400 : 24; }

/// A region, and the same with the results of its reductions, with which its operations are checked one by one.
struct Subject {
  Subject(FusionOp fusion, std::uint64_t graph) : seed(graph), region(fusion), observed(region.WithReductions()) {}

  std::uint64_t seed;
  IsolatedFusion region, observed;
  std::size_t region_code = 0, observed_code = 0;  ///< where it was loaded
  bool same_tiling = false;                        ///< of both
};

std::vector<Bits> InputBits(const IsolatedFusion& region, std::uint64_t seed, InputFill fill) {
  std::vector<Bits> inputs;
  for (const reference::Tensor& tensor : region.RandomInputs(seed, fill)) {
    reference::ToStorage(tensor, inputs.emplace_back(tensor.spec.bytes()).data());
  }
  return inputs;
}

std::vector<Bits> Run(const FusionForm& form, const LoadedFusion& code, FusionOp fusion,
                      const std::vector<Bits>& inputs, int order) {
  std::vector<GuardedBuffer> buffers;
  for (const Bits& input : inputs) {
    std::memcpy(buffers.emplace_back(input.size()).data(), input.data(), input.size());
  }
  for (mlir::Value result : fusion->getResults()) buffers.emplace_back(SpecOf(result).bytes());
  GuardedBuffer workspace(code.code.workspace_bytes);
  std::vector<void*> operands;
  for (GuardedBuffer& buffer : buffers) operands.push_back(buffer.data());
  const absl::Status status = form.run(code, operands.data(), workspace.data(), order);
  EXPECT_TRUE(status.ok()) << status;
  EXPECT_TRUE(workspace.GuardIntact()) << "beyond the workspace";
  std::vector<Bits> outputs;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    EXPECT_TRUE(buffers[i].GuardIntact()) << "beyond operand " << i;
    if (i < inputs.size()) {
      EXPECT_EQ(buffers[i].Bits(), inputs[i]) << "input " << i << " was written";
    } else {
      outputs.push_back(buffers[i].Bits());
    }
  }
  return outputs;
}

void ExpectSame(FusionOp fusion, const std::vector<Bits>& ours, const std::vector<Bits>& theirs) {
  for (auto [i, result] : llvm::enumerate(fusion->getResults())) {
    EXPECT_TRUE(SameValues(SpecOf(result), ours[i], theirs[i])) << "result " << i;
  }
}

void Check(const FusionForm& form, const LoadedFusions& loaded, const Subject& subject) {
  for (InputFill fill : {InputFill::kNormal, InputFill::kSpecial, InputFill::kHuge}) {
    SCOPED_TRACE("inputs of kind " + std::to_string(static_cast<int>(fill)));
    const std::vector<Bits> inputs = InputBits(subject.region, subject.seed, fill);
    const LoadedFusion& code = loaded.regions()[subject.region_code];
    const std::vector<Bits> outputs = Run(form, code, subject.region.fusion(), inputs, 0);
    for (int order = 1; order < form.orders; ++order) {
      SCOPED_TRACE("order " + std::to_string(order));
      EXPECT_EQ(Run(form, code, subject.region.fusion(), inputs, order), outputs);
    }
    const LoadedFusion& observed_code = loaded.regions()[subject.observed_code];
    const std::vector<Bits> observed = Run(form, observed_code, subject.observed.fusion(), inputs, 0);
    // What is yielded beside the region's own results may change the order of its sums. Then it is checked as far as
    // its own results let: which are all, unless something reads a reduction's result that stays inside.
    if (subject.same_tiling) {
      SCOPED_TRACE("with the results of reductions yielded");
      ExpectSame(subject.region.fusion(), outputs, observed);
    } else {
      ExpectOperations(subject.region.fusion(), inputs, outputs);
    }
    EXPECT_EQ(ExpectOperations(subject.observed.fusion(), inputs, observed), 0) << "operations without operands";
  }
}

/// What was run, over all threads.
struct Tally {
  std::atomic<std::uint64_t> regions{0}, operations{0}, stages{0}, tiled{0}, same_tiling{0};
};

std::vector<Subject> SubjectsOf(std::vector<compiler::Module>& steps, std::uint64_t first) {
  std::vector<Subject> subjects;
  for (auto [i, step] : llvm::enumerate(steps)) {
    for (FusionOp fusion : RegionsOf(step)) subjects.emplace_back(fusion, first + i);
  }
  return subjects;
}

/// Each different region once, and where it is.
std::vector<FusionOp> Distinct(std::vector<Subject>& subjects) {
  std::vector<FusionOp> regions;
  llvm::StringMap<std::size_t> known;
  const auto number = [&](FusionOp fusion) {
    const auto [position, is_new] = known.try_emplace(codegen::describeFusion(fusion), regions.size());
    if (is_new) regions.push_back(fusion);
    return position->second;
  };
  for (Subject& subject : subjects) {
    subject.region_code = number(subject.region.fusion());
    subject.observed_code = number(subject.observed.fusion());
  }
  return regions;
}

/// Some of `regions` cannot be compiled: says which.
void ReportRefused(const FusionForm& form, const std::vector<FusionOp>& regions, std::uint64_t first) {
  for (FusionOp region : regions) {
    const auto loaded = LoadedFusions::Create({region}, form.target, form.provided);
    if (loaded.ok()) continue;
    std::string text;
    llvm::raw_string_ostream(text) << *IsolatedFusion(region).module;
    ADD_FAILURE() << "a region of the graphs from " << first << ": " << loaded.status() << "\n" << text;
  }
}

void CheckGraphs(const FusionForm& form, std::uint64_t first, std::uint64_t end, Tally& tally) {
  std::vector<compiler::Module> steps;
  for (std::uint64_t seed = first; seed < end; ++seed) {
    steps.push_back(FinalStep(seed, /*fusion=*/true, MostRows(seed)));
  }
  std::vector<Subject> subjects = SubjectsOf(steps, first);
  for (Subject& subject : subjects) {
    subject.same_tiling = form.same_tiling(form.target, subject.region.fusion(), subject.observed.fusion());
  }
  const std::vector<FusionOp> distinct = Distinct(subjects);
  const auto loaded = LoadedFusions::Create(distinct, form.target, form.provided);
  if (!loaded.ok()) return ReportRefused(form, distinct, first);
  for (const Subject& subject : subjects) {
    testing::TestPartResultArray problems;
    {
      testing::ScopedFakeTestPartResultReporter intercepted(
          testing::ScopedFakeTestPartResultReporter::INTERCEPT_ONLY_CURRENT_THREAD, &problems);
      Check(form, **loaded, subject);
    }
    if (problems.size() > 0) {
      std::string text;
      llvm::raw_string_ostream(text) << *subject.observed.module;
      FAIL() << problems.size() << " in a region of graph " << subject.seed << ": "
             << problems.GetTestPartResult(0).message() << "\n"
             << text;
    }
    const codegen::FusionCode& code = (*loaded)->regions()[subject.region_code].code;
    ++tally.regions;
    tally.same_tiling += subject.same_tiling;
    tally.operations += subject.region.fusion().getBody().front().getOperations().size() - 1;
    tally.stages += code.stages.size();
    tally.tiled +=
        std::any_of(code.stages.begin(), code.stages.end(), [](const auto& stage) { return stage.blocks > 1; });
  }
}

TEST(RandomRegions, GeneratedCodeComputesWhatTheirOperationsDo) {
  Tally tally;
  std::atomic<std::uint64_t> next{0};
  // Every fourth in the last form, whose results are stored as those of large tensors are.
  const std::vector<FusionForm> forms = FusionForms();
  const auto form_of = [&](std::uint64_t first) -> const FusionForm& {
    return first / kGraphsAtOnce % 4 == 3 ? forms.back() : forms.front();
  };
  const auto work = [&] {
    for (std::uint64_t first = next.fetch_add(kGraphsAtOnce); first < kGraphs && !HasFailure();
         first = next.fetch_add(kGraphsAtOnce)) {
      CheckGraphs(form_of(first), first, std::min(first + kGraphsAtOnce, kGraphs), tally);
    }
  };
  std::thread other(work);
  work();
  other.join();
  if (HasFailure()) return;
  // The comparison says something: regions are many, hold several operations, and some have several tiles.
  EXPECT_GT(tally.regions, 2 * kGraphs);
  EXPECT_GT(tally.operations, 3 * tally.regions);
  EXPECT_GT(tally.stages, tally.regions);
  EXPECT_GT(tally.tiled, kGraphs / 20);
  EXPECT_GT(tally.same_tiling, tally.regions * 9 / 10) << "most are checked in every operation as they are";
  std::cout << tally.regions << " regions of " << kGraphs << " graphs with " << tally.operations << " operations, "
            << tally.stages << " stages, " << tally.tiled << " of several blocks, " << tally.same_tiling
            << " checked in every operation\n";
}

}  // namespace
}  // namespace mpc::test
