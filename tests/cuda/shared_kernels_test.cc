// Kernels that a device makes once, what becomes of choices that it refuses, and what it says. A library is stood in
// for: the emulated GPU has none.
#include "runtime/cuda/shared_kernels.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/own_kernel.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/step_kernels.h"
#include "runtime/program_binding.h"
#include "tests/cuda/emulated_api.h"
#include "tests/runtime/program_builder.h"

namespace mpc::runtime {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// The project's own product under the name of a library's, with a workspace of which it writes every byte.
class NamedKernel : public cuda::Kernel {
 public:
  NamedKernel(std::unique_ptr<cuda::Kernel> kernel, std::string choice, std::size_t workspace)
      : kernel_(std::move(kernel)), choice_(std::move(choice)), workspace_(workspace) {}
  std::size_t workspace_bytes() const override { return workspace_; }
  std::string choice() const override { return choice_; }
  absl::Status Enqueue(const cuda::KernelOperands& operands, cuda::LaunchQueue& queue) override {
    if (workspace_ > 0) {
      if (absl::Status status = queue.Fill(operands.workspace, 0x7f, workspace_); !status.ok()) return status;
    }
    return kernel_->Enqueue({operands.inputs, operands.outputs, nullptr}, queue);
  }

 private:
  std::unique_ptr<cuda::Kernel> kernel_;
  std::string choice_;
  std::size_t workspace_;
};

/// A library with the products "fast", which its heuristic takes, and "slow".
struct StandIn {
  std::mutex mutex;
  std::map<std::string, int> made;  ///< products, by choice
  std::set<std::string> refused;    ///< choices that this device does not offer
  std::size_t workspace = 0;        ///< of each product

  CudaDeviceOptions options() {
    return {.use_libraries = false,
            .make_kernel = [this](const KernelSpec& spec,
                                  const cuda::KernelContext& context) { return Make(spec, context); },
            .candidates = [](const KernelSpec& spec,
                             const cuda::KernelContext&) -> absl::StatusOr<std::vector<std::string>> {
              if (spec.name != "matmul") return std::vector<std::string>();
              return std::vector<std::string>{"fast", "slow", "own"};
            }};
  }

 private:
  absl::StatusOr<std::unique_ptr<cuda::Kernel>> Make(const KernelSpec& spec, const cuda::KernelContext& context) {
    cuda::KernelContext plain = context;
    plain.choice.clear();
    absl::StatusOr<std::unique_ptr<cuda::Kernel>> kernel = cuda::CreateKernel(spec, plain);
    if (spec.name != "matmul" || !kernel.ok()) return kernel;
    const std::lock_guard<std::mutex> lock(mutex);
    std::string choice = context.choice.empty() ? "fast" : context.choice;
    const bool is_offered = (choice == "fast" || choice == "slow") && refused.count(choice) == 0;
    if (choice != cuda::kOwnChoice && !is_offered) {
      if (!context.choice.empty()) return absl::FailedPreconditionError(absl::StrCat(choice, " is not offered here"));
      choice = cuda::kOwnChoice;
    }
    ++made[choice];
    if (choice != cuda::kOwnChoice) {
      return std::make_unique<NamedKernel>(*std::move(kernel), std::move(choice), workspace);
    }
    std::string reason = context.choice.empty() ? "the library has no product" : "";
    return std::make_unique<cuda::OwnKernel>(*std::move(kernel), std::move(reason));
  }
};

/// An emulated GPU with this library.
struct Gpu {
  StandIn library;
  emulation::EmulatedApi api;
  std::unique_ptr<CudaDevice> device = *CudaDevice::Open(api, library.options());

  ~Gpu() {
    device.reset();
    EXPECT_THAT(api.Problems(), IsEmpty());
    EXPECT_THAT(api.Alive(), IsEmpty());
  }
};

/// y = x x x x of 4x4 matrices: three instructions with one kernel.
ProgramBuilder Powers() {
  ProgramBuilder builder("powers");
  builder.program.device = "cuda";
  builder.program.arch = "sm_90";
  const TensorSpec matrix{DType::kF32, {4, 4}};
  const ValueId x = builder.Input("x", matrix);
  ValueId y = x;
  for (int i = 0; i < 3; ++i) {
    const ValueId next = builder.Temporary(matrix);
    builder.Call("matmul", {y, x}, {next});
    y = next;
  }
  builder.Output("y", y);
  return builder;
}

std::string ProductKey() {
  const Program program = Powers().program;
  return cuda::ChoiceKey(*MakeKernelSpec(program, program.step().instructions[0]));
}

/// Loads `program` and runs it on twice the identity.
absl::StatusOr<std::unique_ptr<Executable>> LoadAndRun(const Gpu& gpu, std::shared_ptr<const Program> program) {
  auto executable = gpu.device->Load(std::move(program), StateStore());
  if (!executable.ok()) return executable.status();
  const std::vector<float> x = {2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 2};
  const absl::Span<const std::uint8_t> input = BytesOf(x);
  if (absl::Status status = (*executable)->Run(absl::MakeConstSpan(&input, 1)); !status.ok()) return status;
  if (absl::Status status = (*executable)->Wait(); !status.ok()) return status;
  EXPECT_EQ(ValuesOf<float>((*executable)->output(0))[5], 16.0f);
  return executable;
}

TEST(SharedKernels, AreMadeOnceForAllInstructionsPlansAndPrograms) {
  Gpu gpu;
  Program program = Powers().program;
  for (const Instruction& instruction : program.step().instructions) {
    const auto plan = gpu.device->Plan(program, instruction);
    ASSERT_TRUE(plan.ok()) << plan.status();
    EXPECT_EQ(plan->choice, std::pair(ProductKey(), std::string("fast")));
    program.choices = {plan->choice};
  }
  for (int load = 0; load < 2; ++load) {
    const auto executable = LoadAndRun(gpu, std::make_shared<const Program>(program));
    ASSERT_TRUE(executable.ok()) << executable.status();
  }
  EXPECT_EQ(gpu.library.made, (std::map<std::string, int>{{"fast", 1}}));
}

TEST(SharedKernels, ThatTuningTriedAreNotMadeAgain) {
  Gpu gpu;
  Program program = Powers().program;
  for (const Instruction& instruction : program.step().instructions) {
    const auto plan = gpu.device->Plan(program, instruction, {.tune = true});
    ASSERT_TRUE(plan.ok()) << plan.status();
    program.choices = {plan->choice};
  }
  ASSERT_TRUE(LoadAndRun(gpu, std::make_shared<const Program>(program)).ok());
  EXPECT_EQ(gpu.library.made, (std::map<std::string, int>{{"fast", 1}, {"slow", 1}, {"own", 1}}));
}

TEST(SharedKernels, AreToldApartByEverythingThatAKernelIsMadeFrom) {
  const TensorSpec vector{DType::kF32, {5}};
  const auto scaled = [&](double value) {
    return KernelSpec{"mul_scalar", {vector}, {vector}, {}, {{"value", value}}};
  };
  const cuda::KernelContext context;
  const std::string key = SharedKernelKey(scaled(0.1), context);
  EXPECT_EQ(SharedKernelKey(scaled(0.1), context), key);
  EXPECT_NE(SharedKernelKey(scaled(0.1 + 1e-12), context), key) << "a choice table's key has six digits";
  KernelSpec unused = scaled(0.1);
  unused.output_used = {false};
  EXPECT_NE(SharedKernelKey(unused, context), key);
  KernelSpec lists = scaled(0.1);
  lists.attributes.Set("list", std::vector<double>{1, 0.2});
  KernelSpec other_lists = lists;
  other_lists.attributes.Set("list", std::vector<double>{1, 0.2 + 1e-12});
  EXPECT_NE(SharedKernelKey(lists, context), SharedKernelKey(other_lists, context));
  for (const auto& change : std::vector<void (*)(cuda::KernelContext&)>{
           [](cuda::KernelContext& c) { c.choice = "fast"; }, [](cuda::KernelContext& c) { c.allow_tf32 = true; },
           [](cuda::KernelContext& c) { c.workspace_cap = 1; }, [](cuda::KernelContext& c) { c.use_libraries = false; },
           [](cuda::KernelContext& c) { c.target.multiprocessors = 1; },
           [](cuda::KernelContext& c) { c.target.compute_capability = 80; }}) {
    cuda::KernelContext changed;
    change(changed);
    EXPECT_NE(SharedKernelKey(scaled(0.1), changed), key);
  }
}

TEST(StepKernels, AreMadeSeveralAtATimeEachThreadWithHandlesOfItsOwn) {
  ProgramBuilder builder("two");
  const TensorSpec vector{DType::kF32, {5}};
  const ValueId x = builder.Input("x", vector);
  builder.Call("neg", {x}, {builder.Temporary(vector)});
  builder.Call("exp", {x}, {builder.Temporary(vector)});
  std::mutex mutex;
  std::condition_variable both;
  std::map<void*, std::set<std::thread::id>> users;
  SharedKernels shared([&](const KernelSpec& spec, const cuda::KernelContext& context) {
    std::unique_lock<std::mutex> lock(mutex);
    users[context.handles.cudnn].insert(std::this_thread::get_id());
    both.notify_all();
    // One thread alone would wait here until the time is over.
    both.wait_for(lock, std::chrono::seconds(20), [&] { return users.size() == 2; });
    return cuda::CreateKernel(spec, context);
  });
  emulation::EmulatedApi api;
  int first = 0, second = 0;
  const std::vector<cuda::LibraryHandles> handles = {{nullptr, &first}, {nullptr, &second}};
  StepKernels kernels(builder.program, {.use_libraries = false}, shared);
  EXPECT_EQ(kernels.LongToMake(), 0u) << "neither is of a library";
  kernels.MakeAll(api, handles);
  EXPECT_EQ(users.size(), 2u);
  for (const auto& [handle, threads] : users) EXPECT_EQ(threads.size(), 1u);
  for (const Instruction& instruction : builder.program.step().instructions) {
    EXPECT_TRUE(kernels.KernelFor(*MakeKernelSpec(builder.program, instruction)).ok());
  }
}

/// What the load of `choice` is, and what it says.
struct Replacement {
  std::string choice, said;
};

Replacement Replace(Gpu& gpu, const std::string& choice) {
  Program program = Powers().program;
  program.choices = {{"rate.low_flops", "1"}, {ProductKey(), choice}};
  testing::internal::CaptureStderr();
  const auto executable = LoadAndRun(gpu, std::make_shared<const Program>(program));
  Replacement result{"", testing::internal::GetCapturedStderr()};
  EXPECT_TRUE(executable.ok()) << executable.status();
  if (!executable.ok()) return result;
  const auto& choices = (*executable)->program().choices;
  EXPECT_EQ(choices.size(), 2u);
  EXPECT_EQ(choices[0], program.choices[0]);
  return {choices[1].second, result.said};
}

TEST(StepKernels, ReplaceARefusedChoiceByTheHeuristicsThenByTheOwnKernelAndSaySoOnce) {
  Gpu gpu;
  const Replacement kept = Replace(gpu, "slow");
  EXPECT_EQ(kept.choice, "slow");
  EXPECT_THAT(kept.said, IsEmpty());
  const Replacement replaced = Replace(gpu, "eng99");
  EXPECT_EQ(replaced.choice, "fast");
  EXPECT_THAT(replaced.said, AllOf(HasSubstr("warning: program \"powers\": this device refuses 1 of 1 choices"),
                                   HasSubstr("eng99 became fast: eng99 is not offered here")));
  EXPECT_THAT(Replace(gpu, "eng99").said, IsEmpty()) << "it was said";
  Gpu bare;
  bare.library.refused = {"fast", "slow"};
  const Replacement own = Replace(bare, "slow");
  EXPECT_EQ(own.choice, "own");
  EXPECT_THAT(own.said, AllOf(HasSubstr("slow became own"), Not(HasSubstr("GFLOP")))) << "little work";
}

TEST(StepKernels, CountThePlansThatAreWorthThreads) {
  ProgramBuilder builder("two");
  const TensorSpec image{DType::kF16, {4, 8, 8, 32}}, filter{DType::kF16, {32, 32, 1, 1}};
  const ValueId x = builder.Input("x", image);
  const ValueId w = builder.Input("w", filter);
  for (int i = 0; i < 2; ++i) {
    builder.Call("conv2d", {x, w}, {builder.Temporary(image)}, {{"data_format", std::string("NHWC")}});
  }
  builder.Call("conv2d_grad_input", {x, w}, {builder.Temporary(image)}, {{"data_format", std::string("NHWC")}});
  const cuda::KernelContext context{.use_libraries = false};
  SharedKernels shared(
      [](const KernelSpec&, const cuda::KernelContext&) { return std::make_unique<NamedKernel>(nullptr, "eng1", 0); });
  EXPECT_EQ(StepKernels(builder.program, context, shared).LongToMake(), 2u) << "two instructions have one plan";
  const KernelSpec forward = *MakeKernelSpec(builder.program, builder.program.step().instructions[0]);
  ASSERT_TRUE(shared.Get(forward, context).ok());
  EXPECT_EQ(StepKernels(builder.program, context, shared).LongToMake(), 1u);
  builder.program.choices = {
      {cuda::ChoiceKey(*MakeKernelSpec(builder.program, builder.program.step().instructions[2])), "own"}};
  EXPECT_EQ(StepKernels(builder.program, context, shared).LongToMake(), 0u);
}

TEST(StepKernels, FillInWhatTheProgramLeftOpen) {
  Gpu gpu;
  const auto executable = LoadAndRun(gpu, Powers().Build());
  ASSERT_TRUE(executable.ok()) << executable.status();
  EXPECT_EQ((*executable)->program().choices,
            (std::vector<std::pair<std::string, std::string>>{{ProductKey(), "fast"}}));
}

TEST(StepKernels, GetTheWorkspaceThatTheyWantBeyondWhatTheProgramPlans) {
  for (const std::size_t planned : {0, 64}) {
    Gpu gpu;
    gpu.library.workspace = 5000;
    ProgramBuilder builder = Powers();
    builder.program.arena_bytes += 64;
    for (Instruction& instruction : builder.program.step().instructions) {
      instruction.workspace_bytes = planned;
      instruction.workspace_offset = builder.program.arena_bytes - 64;
    }
    const auto executable = LoadAndRun(gpu, builder.Build());
    ASSERT_TRUE(executable.ok()) << executable.status();
    EXPECT_GE((*executable)->memory().other, 5000u);
    EXPECT_LT((*executable)->memory().other, 10000u) << "the kernels run one after another and share it";
  }
}

/// A product of `rows` x 1024 x 1024.
KernelSpec Product(std::int64_t rows) {
  return {"matmul", {{DType::kF16, {rows, 1024}}, {DType::kF16, {1024, 1024}}}, {{DType::kF16, {rows, 1024}}}, {}, {}};
}

TEST(StepKernels, WarnOfMuchWorkThatFallsToOwnKernels) {
  StandIn library;
  library.refused = {"fast"};
  const auto target = *CudaDevice::ForTarget("sm_90", library.options());
  const auto said = [&](std::int64_t rows, const std::string& choice) {
    ProgramBuilder builder("product");
    const KernelSpec spec = Product(rows);
    const ValueId a = builder.Input("a", spec.inputs[0]);
    const ValueId b = builder.Input("b", spec.inputs[1]);
    builder.Call("matmul", {a, b}, {builder.Temporary(spec.outputs[0])});
    if (!choice.empty()) builder.program.choices = {{cuda::ChoiceKey(spec), choice}};
    testing::internal::CaptureStderr();
    EXPECT_TRUE(target->Plan(builder.program, builder.program.step().instructions[0]).ok());
    return testing::internal::GetCapturedStderr();
  };
  EXPECT_THAT(said(400, ""), IsEmpty()) << "0.8 GFLOP";
  EXPECT_THAT(said(1000, "own"), IsEmpty()) << "it was asked for";
  EXPECT_THAT(said(500, ""), AllOf(HasSubstr("warning: 1.0 GFLOP of each run go to mpc's own kernel"),
                                   HasSubstr("matmul(tensor<500x1024xf16>"), HasSubstr("the library has no product")));
  EXPECT_THAT(said(500, ""), IsEmpty()) << "it was said";
}

TEST(MatrixFlops, AreTwoForEachMultiplyAdd) {
  EXPECT_EQ(MatrixFlops(Product(10)), 2.0 * 10 * 1024 * 1024);
  KernelSpec transposed{"matmul", {{DType::kF32, {7, 3}}, {DType::kF32, {7, 5}}}, {{DType::kF32, {3, 5}}}, {}, {}};
  transposed.attributes.Set("transpose_a", true);
  EXPECT_EQ(MatrixFlops(transposed), 2.0 * 3 * 5 * 7);
  // Two groups, 4 channels to 6, 3x3 windows, 8x8 results.
  const TensorSpec x{DType::kF16, {2, 16, 16, 4}}, filter{DType::kF16, {6, 2, 3, 3}}, y{DType::kF16, {2, 8, 8, 6}};
  const double convolution = 2.0 * (2 * 8 * 8) * (6 * 2 * 3 * 3);
  EXPECT_EQ(MatrixFlops({"conv2d", {x, filter}, {y}, {}, {}}), convolution);
  EXPECT_EQ(MatrixFlops({"conv2d_grad_weight", {x, y}, {filter}, {}, {}}), convolution);
  EXPECT_EQ(MatrixFlops({"conv2d_grad_input", {y, filter}, {x}, {}, {}}), convolution);
  const TensorSpec query{DType::kBF16, {2, 3, 10, 8}}, key{DType::kBF16, {2, 3, 20, 8}};
  const double scores = 2.0 * (2 * 3 * 10 * 20) * 8;
  EXPECT_EQ(MatrixFlops({"attention", {query, key, key}, {query}, {}, {}}), 2 * scores);
  EXPECT_EQ(MatrixFlops({"attention_grad", {query, query, key, key}, {query, key, key}, {}, {}}), 5 * scores);
  const TensorSpec qkv{DType::kBF16, {2, 10, 72}}, joined{DType::kBF16, {2, 10, 24}};
  EXPECT_EQ(MatrixFlops({"packed_attention", {qkv}, {joined}, {}, {{"heads", 3}}}), scores);
  EXPECT_EQ(MatrixFlops({"packed_attention_grad", {joined, qkv, joined}, {qkv}, {}, {{"heads", 3}}}), 2.5 * scores);
  EXPECT_EQ(MatrixFlops({"add", {x, x}, {x}, {}, {}}), 0);
}

}  // namespace
}  // namespace mpc::runtime
